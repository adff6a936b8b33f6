"""Samples in the emulator: arrays, maps and arguments, one launch, and what an H200 left instead.

    python -m tests.kernels.replay [--schedule eager] [--seeds N] [--batch-blocks N] [NAME ...]

runs every text of tests/data/kernels/ptx.json.gz under every schedule of the copy engine (the
random one with N seeds), compares every bit of every array with the recording, prints a line a
schedule, `NAME: agreed/total`, and each difference in full, and exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from typing import Any

import numpy as np

from lesson import emulator
from lesson.errors import LessonError, UnsupportedPtx
from lesson.tensor_map import TensorMap
from tests.kernels import pack
from tests.kernels.samples import SCALARS, MapSpec, Sample, all_samples

SCHEDULES = ("eager", "late", "random")
REFUSED = {
    "triton_softmax": "ex2.approx.f32: the PTX ISA bounds its error and does not fix its bits",
}
"""Samples that the emulator refuses by UnsupportedPtx, and why (see docs/emulator.md)."""


def tensor_map(spec: MapSpec, base: np.ndarray) -> TensorMap:
    """The head's map as the lesson's record."""
    return TensorMap(
        dtype=spec.dtype,
        dims=spec.dims,
        strides_bytes=spec.strides,
        box=spec.box,
        element_strides=spec.elements,
        interleave=spec.interleave,
        swizzle=spec.swizzle,
        l2_promotion=spec.l2,
        oob_fill=spec.oob,
        base=base,
    )


def run(sample: Sample, ptx: str, schedule: str = "eager", **options: Any) -> dict[str, np.ndarray]:
    """Every array that counts, after one launch on fresh memory."""
    arrays = sample.make_arrays()
    maps = {m.name: tensor_map(m, arrays[m.of]) for m in sample.maps}
    emulator.launch(
        ptx,
        "k",
        sample.grid,
        sample.block,
        [_argument(a, arrays, maps) for a in sample.args],
        shared_bytes=sample.dynamic_smem,
        cluster=sample.cluster,
        schedule=schedule,
        symbols={name: [maps[m] for m in members] for name, members in sample.symbols.items()},
        **options,
    )
    scratch = {a.name for a in sample.arrays if a.scratch}
    return {name: array for name, array in arrays.items() if name not in scratch}


def difference(sample: Sample, ptx: str, schedule: str = "eager", **options: Any) -> str:
    """What differs from the H200 in one run; empty if nothing does."""
    try:
        after = run(sample, ptx, schedule, **options)
    except UnsupportedPtx as error:
        return "" if sample.name in REFUSED else f"refused: {error}"
    except LessonError as error:
        return f"{type(error).__name__}: {error}"
    if sample.name in REFUSED:
        return "ran, though it is listed as refused"
    for name, got in after.items():
        want = recorded()[f"{sample.name}/{name}"]
        differs = np.flatnonzero(bits(got) != bits(want))
        if differs.size:
            return f"{name}: {differs.size} of {got.nbytes} bytes differ, first {differs[0]}"
    return ""


@functools.cache
def recorded() -> dict[str, np.ndarray]:
    """`sample/array` -> what the H200 left in it."""
    with np.load(pack.DATA / "outputs.npz") as file:
        return dict(file)


def bits(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, in order."""
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _argument(arg: Any, arrays: dict[str, np.ndarray], maps: dict[str, TensorMap]) -> Any:
    """An array, a map (by value or, where the parameter is a pointer, in memory), or a number."""
    if isinstance(arg, str):
        return maps[arg] if arg in maps else arrays[arg]
    ((kind, value),) = arg.items()
    return maps[value] if kind == "pointer" else SCALARS[kind](value)


def replay_all(schedule: str, names: list[str], **options: Any) -> tuple[int, int]:
    """Every text of some samples under one schedule: how many agree, how many there are."""
    agreed = total = 0
    texts = pack.load()
    for sample in all_samples():
        if (names and sample.name not in names) or sample.name in REFUSED:
            continue
        for variant, text in texts[sample.name].items():
            wrong = difference(sample, text, schedule, **options)
            agreed, total = agreed + (not wrong), total + 1
            if wrong:
                print(f"{sample.name}, {variant}, {schedule}: {wrong}")
    return agreed, total


def main(arguments: list[str] | None = None) -> int:
    """The command line described above."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.replay")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these samples alone")
    parser.add_argument("--schedule", choices=SCHEDULES, action="append")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of the random schedule")
    parser.add_argument("--batch-blocks", type=int, help="blocks that run together")
    given = parser.parse_args(arguments)
    is_right = True
    for schedule in given.schedule or SCHEDULES:
        for seed in range(given.seeds if schedule == "random" else 1):
            start = time.perf_counter()
            options = {"seed": seed, "batch_blocks": given.batch_blocks}
            agreed, total = replay_all(schedule, given.names, **options)
            is_right &= agreed == total
            name = f"{schedule}, seed {seed}" if schedule == "random" else schedule
            print(f"{name}: {agreed}/{total} ({time.perf_counter() - start:.0f} s)")
    for name, why in REFUSED.items():
        print(f"not run: {name} ({why})")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
