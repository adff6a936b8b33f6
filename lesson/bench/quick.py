"""A few points of the sweep over threads, measured on this machine's GPU in seconds.

Takes the settings that the recorded sweep found best, over 256 MiB. For a reader who wants to see
it happen; `live` is the whole measurement.
"""

from __future__ import annotations

import statistics

from lesson import gpu, gpu_status
from lesson.bench import evidence, peers, timing, variants
from lesson.bench.build import Builder
from lesson.bench.contenders import MIB
from lesson.bench.device import Bench
from lesson.bench.measure import side_of
from lesson.bench.variants import Variant
from lesson.errors import LessonError

KERNELS = ("plain 16-byte", "TMA ring")
THREADS = (32, 128, 512)
NBYTES = 256 * MIB
_REPEATS = 12


def settings() -> dict[tuple[str, int], Variant]:
    """(kernel, threads of the only block on a multiprocessor) -> the best recorded setting."""
    families = evidence.load()["sweep"]["families"]
    return {
        (name, point["threads"]): variants.from_json(point["variant"])
        for name in KERNELS
        for point in families[name]["points"]
        if point["blocks_per_sm"] == 1 and point["threads"] in THREADS
    }


def shares() -> dict[tuple[str, int], float]:
    """The share of cudaMemcpy that each point reaches here. One that does not fit is left out.

    Raises TargetError without a GPU, MemoryError where the arrays do not fit, and LessonError
    where a kernel leaves a wrong element: then no time means anything.
    """
    found = gpu.require(gpu_status.status())
    builder = Builder(f"sm_{found.capability[0]}{found.capability[1]}", processes=1)
    bench = Bench(NBYTES // 4, builder)
    copy = peers.memcpy(bench.x, bench.y)
    out = {}
    for where, v in settings().items():
        try:
            call = bench.bind(v, *side_of(NBYTES))
        except RuntimeError:  # CUDA's: this chip has less shared memory than an H200
            continue
        wrong = bench.wrong(call, NBYTES // 4)
        if wrong:
            raise LessonError(f"{v.file} must add 1 everywhere, got {wrong} other elements.")
        ours, theirs = (
            statistics.median(timing.alone(bench.cupy, each, _REPEATS)) for each in (call, copy)
        )
        out[where] = theirs / ours
    bench.release()
    return out
