"""One kernel of kernels/bench/ with its macros, and the launch of it over a matrix of floats.

`plan` works out grid, arguments and shared memory for arrays of any kind: numpy's for the emulator,
CuPy's for a GPU. Tensor maps are records here; who launches has them encoded. Nothing is compiled
and nothing launched.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lesson.errors import LaunchError
from lesson.tensor_map import TensorMap

FOLDER = Path(__file__).resolve().parent.parent / "kernels" / "bench"
HEADER = "bench.cuh"
KERNEL = "k"
FLAT_WIDTH = 256  # floats in a row of the one-column matrix: a box is at most 256 elements wide


@dataclass(frozen=True)
class Variant:
    """A kernel file with macros, and how it is launched.

    `blocks_per_sm` > 0: so many blocks a multiprocessor, tiles in turn; 0: a block for `chunk`
    tiles. `promotion` is the L2 promotion of its tensor maps.
    """

    file: str
    macros: tuple[tuple[str, int], ...]
    blocks_per_sm: int = 0
    chunk: int = 1
    promotion: str = "NONE"

    @property
    def family(self) -> str:
        """The file's name without its ending."""
        return self.file.removesuffix(".cu")

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self["THREADS"]

    def __getitem__(self, macro: str) -> int:
        return dict(self.macros)[macro]

    def get(self, macro: str, default: int) -> int:
        """The value of a macro."""
        return dict(self.macros).get(macro, default)

    def with_macros(self, **macros: int) -> Variant:
        """A copy with these macros set."""
        merged = tuple(sorted({**dict(self.macros), **macros}.items()))
        return Variant(self.file, merged, self.blocks_per_sm, self.chunk, self.promotion)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block, with what aligning it may cost."""
        if self.file == "cp_async.cu":
            return self["STAGES"] * self["TILE"] * 4
        if self.file.startswith("tma_ring"):
            return self["STAGES"] * self["ROWS"] * FLAT_WIDTH * 4 + 128
        if self.file == "transpose_tma.cu":
            return self["TILE"] ** 2 * 4 + 1024
        return 0

    @property
    def tile_floats(self) -> int:
        """Floats of a tile."""
        if self.file.startswith("transpose"):
            return self["TILE"] ** 2
        if "TILE" in dict(self.macros):
            return self["TILE"]
        return self["ROWS"] * self.get("WIDTH", FLAT_WIDTH)

    @property
    def tiles_together(self) -> int:
        """Tiles that a block takes, of the kernels whose grid covers the matrix."""
        if self.file == "tma_one_tile.cu":
            return self.get("TILES", 1) * (self.threads // self.get("TEAM", self.threads))
        return self.chunk

    @property
    def label(self) -> str:
        """What tells it from the others of its family, in one line."""
        words = [f"{name}={value}" for name, value in self.macros]
        if self.blocks_per_sm:
            words.append(f"blocks/SM={self.blocks_per_sm}")
        elif self.chunk > 1:
            words.append(f"chunk={self.chunk}")
        if self.promotion != "NONE":
            words.append(f"promotion={self.promotion}")
        return " ".join(words)

    def as_json(self) -> dict[str, Any]:
        """What evidence keeps of it."""
        return {
            "file": self.file,
            "macros": dict(self.macros),
            "blocks_per_sm": self.blocks_per_sm,
            "chunk": self.chunk,
            "promotion": self.promotion,
        }


def variant(
    file: str, *, per_sm: int = 0, chunk: int = 1, promo: str = "NONE", **macros: int
) -> Variant:
    """A variant, its macros as keywords."""
    return Variant(file, tuple(sorted(macros.items())), per_sm, chunk, promo)


def from_json(record: dict[str, Any]) -> Variant:
    """The inverse of `Variant.as_json`."""
    return Variant(
        record["file"],
        tuple(sorted(record["macros"].items())),
        record["blocks_per_sm"],
        record["chunk"],
        record["promotion"],
    )


@cache
def source(file: str) -> str:
    """The text to compile: the file with the shared header in the place of its #include."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    header = (FOLDER / HEADER).read_text(encoding="utf-8")
    return text.replace(f'#include "{HEADER}"', header)


def source_hashes() -> dict[str, str]:
    """sha256 of every file of kernels/bench/."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(FOLDER.glob("*.cu*"))
    }


@dataclass(frozen=True)
class Plan:
    """One launch. `args` are arrays, numpy scalars and TensorMap records over the arrays."""

    grid: tuple[int, ...]
    block: int
    args: tuple[Any, ...]
    shared_bytes: int


def plan(v: Variant, x: Any, y: Any, width: int, height: int, multiprocessors: int) -> Plan:
    """The launch that reads the width x height floats of `x` and writes those of `y`.

    `x` and `y` are one-dimensional. Raises LaunchError for a matrix that is no multiple of what
    this kernel takes at a time.
    """
    floats = width * height
    if v.file in ("tma_one_tile.cu", "plain_tile.cu") and not v.get("FLAT", 0):
        args, grid = _matrix(v, x, y, width, height)
    elif v.file.startswith("transpose"):
        args, grid = _transpose(v, x, y, width, height)
    else:
        _whole(v, floats, v.tile_floats)
        args, grid = _linear(v, x, y, floats, multiprocessors)
    return Plan(grid, v.threads, args, v.shared_bytes)


def _whole(v: Variant, size: int, step: int) -> None:
    if size % step:
        raise LaunchError(
            f"the matrix must be a multiple of {step} floats, got {size}. {v.file} {v.label}. "
            "Choose another size."
        )


def _map(
    array: Any,
    v: Variant,
    dims: tuple[int, ...],
    strides: tuple[int, ...],
    box: tuple[int, ...],
    swizzle: str = "NONE",
) -> TensorMap:
    return TensorMap(
        dtype="FLOAT32", dims=dims, strides_bytes=strides, box=box, swizzle=swizzle,
        l2_promotion=v.promotion, base=array,
    )  # fmt: skip


def _flat_map(array: Any, v: Variant, floats: int) -> TensorMap:
    width = v.get("WIDTH", FLAT_WIDTH)
    return _map(array, v, (width, floats // width), (width * 4,), (width, v["ROWS"]))


def _matrix(
    v: Variant, x: Any, y: Any, width: int, height: int
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    across = v["WIDTH"] * v.tiles_together
    grid = (-(-width // across), -(-height // v["ROWS"]))
    ends = np.int32(width), np.int32(height)
    if v.file == "plain_tile.cu":
        return (x, y, *ends), grid
    maps = [_map(a, v, (width, height), (width * 4,), (v["WIDTH"], v["ROWS"])) for a in (x, y)]
    return (maps[0], maps[1] if v.get("STORE", 0) else y, *ends), grid


def _transpose(
    v: Variant, x: Any, y: Any, width: int, height: int
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    tile = v["TILE"]
    _whole(v, width, tile * max(1, v.get("RASTER", 0)))
    _whole(v, height, tile)
    if v.file == "transpose_padded.cu":
        return (x, y, np.int32(width), np.int32(height)), (width // tile, height // tile)
    maps = [
        _map(
            array, v, (32, rows, columns // 32), (columns * 4, 128), (32, tile, tile // 32),
            "128B" if v["SWIZZLE"] else "NONE",
        )
        for array, columns, rows in ((x, width, height), (y, height, width))
    ]  # fmt: skip
    across, down = width // tile, height // tile
    return (*maps, np.int32(across), np.int32(down)), (across * down,)


def _linear(
    v: Variant, x: Any, y: Any, floats: int, multiprocessors: int
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Tiles that lie one after another."""
    tiles = floats // v.tile_floats
    grid = (v.blocks_per_sm * multiprocessors or -(-tiles // v.tiles_together),)
    if v.file == "bulk_one_tile.cu":
        return (x, y), grid
    if v.file == "tma_one_tile.cu":
        out = _flat_map(y, v, floats) if v.get("STORE", 0) else y
        return (
            _flat_map(x, v, floats),
            out,
            np.int32(v["WIDTH"]),
            np.int32(floats // v["WIDTH"]),
        ), grid
    if not v.file.startswith("tma_ring"):
        return (x, y, np.int32(tiles)), grid
    out = _flat_map(y, v, floats) if v.file == "tma_ring_store.cu" else y
    chunk = 0 if v.blocks_per_sm else v.chunk
    return (_flat_map(x, v, floats), out, np.int32(tiles), np.int32(chunk)), grid
