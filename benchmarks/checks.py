"""What the checks cost: the lesson's kernel in the emulator with and without them, side by side.

`python -m benchmarks.checks [--json] [--rounds N]`. Time of the processor, and runs alternate, so
that a busy machine slows both alike; the ratio is that of the medians. The bar is 3.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

from lesson import compile as compiler
from lesson import emulator, targets
from lesson.check import SCHEDULES
from lesson.emulator.ordering import Ordering
from lesson.kernel_source import TileKernel

BAR = 3.0


def seconds(ptx: str, kernel: str, schedule: str, is_checked: bool) -> float:
    """One launch of the full grid."""
    tensor_map = targets.lesson_map()
    args = [tensor_map, np.zeros_like(tensor_map.base)]
    observers = (Ordering(compares_values=False),) if is_checked else ()
    start = time.process_time()
    emulator.launch(
        ptx,
        kernel,
        targets.full_grid(),
        (targets.threads_per_block(),),
        args,
        schedule=schedule,
        observers=observers,
    )
    return time.process_time() - start


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Medians and their ratio, a schedule each."""
    source = TileKernel().source()
    ptx = compiler.to_ptx(source.text, name=source.name).text
    found = {}
    for schedule in SCHEDULES:
        seconds(ptx, source.kernel, schedule, True)
        pairs = [
            (
                seconds(ptx, source.kernel, schedule, False),
                seconds(ptx, source.kernel, schedule, True),
            )
            for _ in range(rounds)
        ]
        plain, checked = (statistics.median(times) for times in zip(*pairs, strict=True))
        found[schedule] = {
            "plain_ms": round(plain * 1e3, 2),
            "checked_ms": round(checked * 1e3, 2),
            "ratio": round(checked / plain, 2),
        }
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    found = measure(options.rounds)
    if options.json:
        print(json.dumps({"bar": BAR, "schedules": found}, indent=1))
        return
    for schedule, row in found.items():
        print(f"{schedule:7} {row['plain_ms']:8} ms  {row['checked_ms']:8} ms  x {row['ratio']}")


if __name__ == "__main__":
    main()
