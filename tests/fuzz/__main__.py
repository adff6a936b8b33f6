"""Run many malformed inputs; exit 1 if one gives anything but a result or a LessonError.

python -m tests.fuzz --count 100000 --seed 1 [--jobs 1] [--only NUMBER] [--show 5]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator

from tests.fuzz.cases import Outcome, run_case, start_clock, tick

CHUNK = 500


def outcomes(seed: int, first: int, last: int) -> list[tuple[int, Outcome]]:
    """The cases of a stretch of numbers."""
    start_clock()
    found = []
    for number in range(first, last):
        tick()
        found.append((number, run_case(seed, number)))
    tick(0)
    return found


def stretches(seed: int, count: int, jobs: int) -> Iterator[list[tuple[int, Outcome]]]:
    """All cases, stretch after stretch, by one process or several."""
    work = [(seed, first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
    if jobs == 1:
        yield from (outcomes(*each) for each in work)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.starmap(outcomes, work, chunksize=1)


def report(seed: int, count: int, jobs: int, show: int) -> int:
    """Run the cases; print failures, then how often each kind came to what."""
    start = time.perf_counter()
    seen: Counter[tuple[str, str]] = Counter()
    failures, shown = 0, set()
    for stretch in stretches(seed, count, jobs):
        for number, outcome in stretch:
            seen[outcome.kind, outcome.result] += 1
            if outcome.failure:
                failures += 1
                place = _place(outcome.failure)
                if place not in shown and len(shown) < show:
                    shown.add(place)
                    print(f"--- case {number} of seed {seed}, {outcome.kind}\n{outcome.failure}")
    for kind in sorted({kind for kind, _ in seen}):
        results = sorted((n, result) for (k, result), n in seen.items() if k == kind)
        print(f"{kind}: " + ", ".join(f"{result} {n}" for n, result in reversed(results)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"{count} cases of seed {seed}, {failures} failures, "
        f"{time.perf_counter() - start:.0f} s, peak memory {peak} MiB"
    )
    return int(failures > 0)


def _place(failure: str) -> tuple[str, str]:
    """The innermost place in the package that a traceback names, and what was raised."""
    lines = failure.strip().split("\n")
    own = [line.strip() for line in lines if "/lesson/" in line]
    return (own or [""])[-1], lines[-1].split(":")[0]


def main(arguments: list[str] | None = None) -> int:
    """The command line described above."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="run one case alone and show what comes of it")
    parser.add_argument("--show", type=int, default=20, help="how many different failures to print")
    given = parser.parse_args(arguments)
    if given.only is None:
        return report(given.seed, given.count, given.jobs, given.show)
    outcome = run_case(given.seed, given.only)
    print(f"{outcome.kind}: {outcome.result}\n{outcome.failure}")
    return int(bool(outcome.failure))


if __name__ == "__main__":
    sys.exit(main())
