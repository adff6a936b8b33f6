"""Launches named kernels once each, for a profiler or a memory checker to watch.

    python -m lesson.bench.profiled MIB NAME...

Over matrices of so many MiB; NAME is a copy or a transpose of `contenders`, or the JSON of a
variant. Compares what each left, and exits with status 1 if an element is wrong.
"""

from __future__ import annotations

import json
import sys

from lesson import gpu_status
from lesson.bench import contenders, variants
from lesson.bench.build import Builder
from lesson.bench.contenders import MIB
from lesson.bench.device import Bench
from lesson.bench.measure import side_of
from lesson.bench.variants import Variant


def find(name: str) -> Variant:
    """The variant of this name, or the one that this JSON describes."""
    if name.startswith("{"):
        return variants.from_json(json.loads(name))
    return (contenders.COPIES | contenders.TRANSPOSES)[name]


def main(arguments: list[str]) -> int:
    """One launch and one comparison for each name."""
    import cupy

    nbytes = int(arguments[0]) * MIB
    wanted = [find(name) for name in arguments[1:]]
    # No pool: each array is an allocation of its own, whose ends a memory checker can guard.
    cupy.cuda.set_allocator(None)
    device = gpu_status.status().device
    major, minor = device.capability if device else gpu_status.TMA_CAPABILITY
    bench = Bench(nbytes // 4, Builder(f"sm_{major}{minor}", processes=1))
    width, height = side_of(nbytes)
    wrong = 0
    for v in wanted:
        call = bench.bind(v, width, height)
        if v.file.startswith("transpose"):
            bad = bench.wrong_transposed(call, width, height)
        else:
            bad = bench.wrong(call, width * height)
        print(f"{bad} wrong: {v.file} {v.label}", flush=True)
        wrong += bad
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
