"""One sample in the emulator: its arrays, maps and arguments, one launch, and what came out."""

from __future__ import annotations

from typing import Any

import numpy as np

from lesson import emulator
from lesson.tensor_map import TensorMap
from tests.kernels.samples import SCALARS, MapSpec, Sample


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


def _argument(arg: Any, arrays: dict[str, np.ndarray], maps: dict[str, TensorMap]) -> Any:
    """An array, a map (by value or, where the parameter is a pointer, in memory), or a number."""
    if isinstance(arg, str):
        return maps[arg] if arg in maps else arrays[arg]
    ((kind, value),) = arg.items()
    return maps[value] if kind == "pointer" else SCALARS[kind](value)
