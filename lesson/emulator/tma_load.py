"""Tensor loads, global to shared memory: the bytes of a box, its fill, its swizzle.

Follows PTX ISA, `cp.async.bulk.tensor` (tile mode) and the recordings of an H200; see `tma_layout`
for what lies where. The inside of a box is a box again, so a load is one strided copy, with a fill
before where it leaves the tensor and a permutation of 16-byte units after where it is swizzled.
"""

from __future__ import annotations

import numpy as np

from lesson.emulator import tma_convert
from lesson.emulator.tma_layout import (
    UNIT_NBYTES,
    Geometry,
    Range,
    first_byte,
    geometry,
    inside,
    last_byte,
    shared_units,
)
from lesson.errors import IllegalAddress
from lesson.tensor_map import TensorMap

UNIT = np.dtype([("low", np.uint64), ("high", np.uint64)])


def whole_box(
    g: Geometry, coords: tuple[int, ...], gmem: np.ndarray, base: int
) -> np.ndarray | None:
    """The bytes of a box that lies inside the tensor and the array, as a view; else None."""
    first = base
    for at, last, stride in zip(coords, g.last_starts, g.strides_bytes, strict=True):
        if not 0 <= at <= last:
            return None
        first += at * stride
    if first < 0 or first + g.reach_nbytes > gmem.size:
        return None
    return np.ndarray((*g.outer_shape, g.row_nbytes), np.uint8, gmem, first, (*g.hops_bytes, 1))


def global_view(
    g: Geometry,
    coords: tuple[int, ...],
    ranges: list[Range],
    gmem: np.ndarray,
    base: int,
    dtype: np.dtype | type,
) -> np.ndarray:
    """The elements inside the box as a view, outermost dimension first.

    Raises IllegalAddress where the box leaves the array that the tensor lies in.
    """
    first = base + first_byte(g, coords, ranges)
    stop = base + last_byte(g, first - base, ranges)
    if first < 0 or stop > gmem.size:
        raise IllegalAddress(
            f"the box of a tensor copy must lie in the {gmem.size} bytes of its array, got bytes "
            f"{first} to {stop} at coordinates {coords[len(g.lead) :]}. Check the map's shape and "
            "strides against the array that it maps."
        )
    outer = [ranges[k][1] - ranges[k][0] for k in range(g.rank - 1, 0, -1)]
    hops = [g.steps[k] * g.strides_bytes[k] for k in range(g.rank - 1, 0, -1)]
    row = ranges[0][1] - ranges[0][0]
    if dtype is np.uint8:
        return np.ndarray((*outer, row * g.itemsize), np.uint8, gmem, first, (*hops, 1))
    return np.ndarray((*outer, row), dtype, gmem, first, (*hops, g.itemsize))


def check_shared(g: Geometry, smem: np.ndarray, offset: int) -> None:
    """Raises IllegalAddress where the box does not fit in the block's shared memory."""
    if offset < 0 or offset + g.extent_nbytes > smem.size:
        raise IllegalAddress(
            f"the box of a tensor copy must end in the block's {smem.size} bytes of shared memory, "
            f"got {offset} to {offset + g.extent_nbytes} ({g.rows} rows of {g.pitch_nbytes} "
            "bytes). Make the shared array as large as the box, or the box smaller."
        )


def load(
    tmap: TensorMap,
    coords: tuple[int, ...],
    gmem: np.ndarray,
    base: int,
    smem: np.ndarray,
    dst_offset: int,
    dst_address: int,
) -> int:
    """Copies the box at `coords` into `smem`; returns the bytes that the mbarrier counts.

    `gmem` and `smem` are uint8 arrays, `base` and `dst_offset` indices into them, `dst_address`
    the shared address of the destination, whose bits the swizzle reads. The start must be legal
    (`start_fault`).
    """
    g = geometry(tmap)
    coords = g.lead + coords
    check_shared(g, smem, dst_offset)
    shape = (*g.outer_shape, g.row_nbytes)
    if not g.span_nbytes:
        _assemble(tmap, g, coords, gmem, base, np.ndarray(shape, np.uint8, smem, dst_offset))
        return g.nbytes
    rows = np.empty(shape, np.uint8)
    _assemble(tmap, g, coords, gmem, base, rows)
    as_units(smem)[shared_units(g, dst_address) + dst_offset // UNIT_NBYTES] = as_units(
        rows
    ).reshape(g.rows, -1)
    return g.nbytes


def as_units(memory: np.ndarray) -> np.ndarray:
    """A contiguous uint8 array as its whole 16-byte units."""
    return memory.reshape(-1)[: memory.size // UNIT_NBYTES * UNIT_NBYTES].view(UNIT)


def _assemble(
    tmap: TensorMap,
    g: Geometry,
    coords: tuple[int, ...],
    gmem: np.ndarray,
    base: int,
    rows: np.ndarray,
) -> None:
    """Fills `rows`, the box row after row, outermost dimension first."""
    is_rounded = tma_convert.rounds_on_load(tmap.dtype)
    whole = None if is_rounded else whole_box(g, coords, gmem, base)
    if whole is not None:
        rows[...] = whole
        return
    ranges = inside(g, coords, 0)
    if ranges is None:
        rows.view(np.uint16)[...] = g.fill
        return
    element: type = np.uint8
    if is_rounded:
        element, rows = np.uint32, rows.view(np.uint32)
    values = global_view(g, coords, ranges, gmem, base, element)
    if element is np.uint32:
        values = tma_convert.to_tf32(values)
    if values.shape == rows.shape:
        rows[...] = values
        return
    rows.view(np.uint16)[...] = g.fill
    rows[places(g, ranges, rows.shape[-1])] = values


def places(g: Geometry, ranges: list[Range], row_length: int) -> tuple[slice, ...]:
    """Where the inside of the box lies in an array of its rows, of `row_length` items each."""
    scale = row_length // g.counts[0]
    outer = [slice(*ranges[k]) for k in range(g.rank - 1, 0, -1)]
    return (*outer, slice(ranges[0][0] * scale, ranges[0][1] * scale))
