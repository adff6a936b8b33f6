"""Reads the head of a sample kernel: what it is launched with and what must come out.

A sample is a .cu file with an entry `k` that begins with lines `// key: value`. Keys:

    sample   its name, which is the file's name too
    says     one sentence on what it shows
    arch     sm_90a where plain sm_90 does not do (default sm_90, and then every later target too)
    array N  JSON: dtype, shape (outermost first), fill, align in bytes (default 256);
             "scratch": true for memory whose contents after the run do not count
    map N    JSON: of (an array) and what differs from its dense tensor map: dtype, dims, strides
             (bytes, outer dimensions), box, elements, interleave, swizzle, l2, oob, in the words
             that end the driver's names
    symbol N JSON: the maps that a variable in constant or global memory of the module holds
    launch   JSON: grid, block (a number or a list), dynamic_smem in bytes, cluster (an attribute)
    args     JSON: names of arrays and maps; {"i32": 5} for a number; {"pointer": "m"} for a map in
             global memory
    let N    a numpy expression over the arrays as they were before, for use in those below
    expect N likewise: what array N holds afterwards, every bit; or "recorded" where numpy cannot
             know it. Arrays without it must be unchanged.

A fill is a number; "ramp" (0, 1, 2, ...) or "ramp:M" (modulo M); "hash:LOW:HIGH" (scattered
integers in [LOW, HIGH)); or "bfloat16:LOW:HIGH" (the same, as the upper halves of float32). Nothing
is random: a file and this module fix every bit of the input. Imports numpy alone, so that the
recorder can use it on any machine.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
MAP_DTYPES = {
    "uint8": "UINT8",
    "uint16": "UINT16",
    "int16": "UINT16",  # there is no INT16 map: bytes are bytes
    "uint32": "UINT32",
    "int32": "INT32",
    "uint64": "UINT64",
    "int64": "INT64",
    "float16": "FLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
}
SCALARS = {
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f32": np.float32,
    "f64": np.float64,
}


@dataclass(frozen=True)
class ArraySpec:
    """One array: how to make it, and whether its bits afterwards count."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    fill: float | str
    align: int = 256
    scratch: bool = False

    def make(self) -> np.ndarray:
        """A fresh array of this shape holding the fill."""
        n = int(np.prod(self.shape))
        return fill_values(self.fill, n, np.dtype(self.dtype)).reshape(self.shape)


@dataclass(frozen=True)
class MapSpec:
    """One tensor map over an array; names are the tails of the driver's enumerators."""

    name: str
    of: str
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    elements: tuple[int, ...]
    interleave: str = "NONE"
    swizzle: str = "NONE"
    l2: str = "NONE"
    oob: str = "NONE"


@dataclass(frozen=True)
class Sample:
    """A kernel with everything that one run of it needs."""

    name: str
    path: Path
    says: str
    arch: str
    arrays: tuple[ArraySpec, ...]
    maps: tuple[MapSpec, ...]
    symbols: dict[str, tuple[str, ...]]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem: int
    cluster: tuple[int, int, int] | None
    args: tuple[Any, ...]
    lets: tuple[tuple[str, str], ...]
    expects: dict[str, str] = field(default_factory=dict)

    def make_arrays(self) -> dict[str, np.ndarray]:
        """Every array, freshly filled."""
        return {a.name: a.make() for a in self.arrays}

    def expected(self) -> dict[str, np.ndarray]:
        """What arrays hold after a right run, by the head's own numpy expressions.

        Left out are scratch arrays, and those of which only a recording knows ("recorded").
        """
        before = self.make_arrays()
        names: dict[str, Any] = {"np": np, **before}
        for name, text in self.lets:
            names[name] = eval(text, names)
        after = {}
        for spec in self.arrays:
            if spec.scratch or self.expects.get(spec.name) == "recorded":
                continue
            value = before[spec.name]
            if spec.name in self.expects:
                value = np.asarray(eval(self.expects[spec.name], names))
                value = value.astype(spec.dtype).reshape(spec.shape)
            after[spec.name] = np.ascontiguousarray(value)
        return after


def fill_values(fill: float | str, n: int, dtype: np.dtype) -> np.ndarray:
    """`n` elements by the rule `fill`, as the head of this module describes."""
    if not isinstance(fill, str):
        return np.full(n, fill).astype(dtype)
    kind, *numbers = fill.split(":")
    i = np.arange(n, dtype=np.int64)
    if kind == "ramp":
        return (i % int(numbers[0]) if numbers else i).astype(dtype)
    low, high = int(numbers[0]), int(numbers[1])
    scattered = (i * 2654435761 + 974711) * 40503 >> 13 & 0x7FFFFFFF
    values = low + scattered % (high - low)
    if kind == "hash":
        return values.astype(dtype)
    if kind == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(dtype)
    raise ValueError(f"fill must be a number, ramp, hash or bfloat16, got {fill!r}")


def _three(value: int | list[int]) -> tuple[int, int, int]:
    dims = list(value) if isinstance(value, list) else [value]
    x, y, z = ([*dims, 1, 1, 1])[:3]
    return x, y, z


def _map(name: str, given: dict[str, Any], arrays: dict[str, ArraySpec]) -> MapSpec:
    of = arrays[given["of"]]
    dims = given.get("dims", list(reversed(of.shape)))
    itemsize = np.dtype(of.dtype).itemsize
    dense = [itemsize * int(np.prod(dims[: i + 1])) for i in range(len(dims) - 1)]
    return MapSpec(
        name=name,
        of=of.name,
        dtype=given.get("dtype", MAP_DTYPES[of.dtype]),
        dims=tuple(dims),
        strides=tuple(given.get("strides", dense)),
        box=tuple(given["box"]),
        elements=tuple(given.get("elements", [1] * len(dims))),
        **{k: given[k] for k in ("interleave", "swizzle", "l2", "oob") if k in given},
    )


def _head(path: Path) -> list[tuple[str, str, str]]:
    """(key, name, value) of each line of the head."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        m = re.match(r"(?://|#) (\w+)(?: (\w+))?: (.*)$", line)
        if not m:
            break
        lines.append((m.group(1), m.group(2) or "", m.group(3)))
    return lines


def read(path: Path) -> Sample:
    """The sample in the file `path`."""
    lines = _head(path)
    one = {key: value for key, name, value in lines if not name}
    arrays: dict[str, ArraySpec] = {}
    maps, symbols = [], {}
    for key, name, value in lines:
        if key == "array":
            given = json.loads(value)
            arrays[name] = ArraySpec(name, **{**given, "shape": tuple(given["shape"])})
        elif key == "map":
            maps.append(_map(name, json.loads(value), arrays))
        elif key == "symbol":
            symbols[name] = tuple(json.loads(value))
    if one.get("sample") != path.stem:
        raise ValueError(f"{path.name}: sample must be the file's name, got {one.get('sample')!r}")
    launch = json.loads(one["launch"])
    return Sample(
        name=path.stem,
        path=path,
        says=one["says"],
        arch=one.get("arch", "sm_90"),
        arrays=tuple(arrays.values()),
        maps=tuple(maps),
        symbols=symbols,
        grid=_three(launch["grid"]),
        block=_three(launch["block"]),
        dynamic_smem=launch.get("dynamic_smem", 0),
        cluster=_three(launch["cluster"]) if "cluster" in launch else None,
        args=tuple(json.loads(one["args"])),
        lets=tuple((name, value) for key, name, value in lines if key == "let"),
        expects={name: value for key, name, value in lines if key == "expect"},
    )


def all_samples() -> list[Sample]:
    """Every sample of this folder, by name."""
    return [read(p) for p in sorted(FOLDER.glob("*.cu")) + sorted(FOLDER.glob("triton/*.py"))]
