"""The command: a line for each set, the first differences in full, exit 1 if any differs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conformance import FILES, SETS, replay

SCHEDULES = ("eager", "late", "random")


def main(arguments: list[str] | None = None) -> int:
    """0: everything agrees. 1: something differs. 2: there is nothing to replay."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder of recordings")
    parser.add_argument("--only", choices=SETS, action="append", help="replay this set alone")
    parser.add_argument("--show", type=int, default=3, metavar="N", help="differences a set")
    parser.add_argument("--schedule", choices=SCHEDULES, default="eager", help="when copies land")
    options = parser.parse_args(arguments)
    agreed = total = 0
    for name in options.only or SETS:
        ok, count = replay_set(options.folder, name, options.schedule, options.show)
        agreed, total = agreed + ok, total + count
    if not total:
        files = sorted({file for name in options.only or SETS for file in FILES[name]})
        print(f"{options.folder} must hold recordings, got none of {', '.join(files)}.")
        return 2
    return int(agreed != total)


def replay_set(folder: Path, name: str, schedule: str, show: int) -> tuple[int, int]:
    """Replay one set and print its line and its first differences; how many agreed, of how many."""
    differences, count = [], 0
    for outcome in replay(folder, name, schedule):
        count += 1
        if outcome.difference is not None:
            differences.append(outcome)
    if not count:
        return 0, 0
    print(f"{name}: {count - len(differences)}/{count}", flush=True)
    for outcome in differences[:show]:
        print(f"--- {name}: {outcome.case}\n{outcome.difference}\n", flush=True)
    return count - len(differences), count


if __name__ == "__main__":
    sys.exit(main())
