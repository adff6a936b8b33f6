"""Measure the copies on this GPU, or show what an H200 said: `python -m lesson bench`.

On a Hopper GPU (or a later one) it measures, in about two minutes, writes the record and draws it.
Elsewhere, or with --recorded, it draws the recorded evidence of an H200 and says so.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from lesson import gpu_status
from lesson.bench import evidence, report
from lesson.errors import TargetError


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Register `bench`."""
    parser = commands.add_parser(
        "bench", help="measure copies with and without TMA, and draw them", description=__doc__
    )
    parser.add_argument("--json", action="store_true", help="print the whole record as JSON")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder to write to")
    parser.add_argument("--recorded", action="store_true", help="do not measure here")
    parser.add_argument("--only", metavar="SECTION", action="append", help="measure only this")
    parser.add_argument(
        "--tune", type=float, default=0, metavar="SECONDS", help="search for the best tile first"
    )
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Measure or load; draw; print."""
    status = gpu_status.status()
    live = status.ok and not options.recorded
    options.out.mkdir(parents=True, exist_ok=True)
    if live:
        record = _measure(options)
    else:
        record = evidence.load()
        why = "--recorded was given" if options.recorded else status.reason
        print(f"Nothing is measured here: {why}", file=sys.stderr)
    pictures = report.draw(record, options.out, live=live)
    if options.json:
        print(json.dumps(record))
    else:
        print(report.text(record, live=live))
        print("Pictures: " + ", ".join(str(path) for path in pictures))
    return 0


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    from lesson.bench import live
    from lesson.bench.measure import SECTIONS

    known = (*SECTIONS, *live.TOOLS)
    unknown = sorted(set(options.only or ()) - set(known))
    if unknown:
        raise TargetError(
            f"--only must be one of {', '.join(known)}, got {unknown[0]!r}. Choose one of them."
        )
    path = options.out / "bench.json"

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    record = live.run(
        say, tuple(options.only or known), options.tune, lambda r: evidence.save(r, path)
    )
    evidence.save(record, path)
    say(f"Record: {path}")
    return record
