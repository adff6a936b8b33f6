"""Where the elements of a box lie: in global memory, in shared memory, and which are inside.

Follows PTX ISA, "Tensors" (tiled mode: bounding box, traversal strides, out-of-boundary access,
swizzling modes) and the recordings of an H200, which settle what the text leaves open:

* without interleave elementStrides[0] is ignored; an outer step e makes ceil(box / e) rows;
* under swizzle a row in shared memory is as long as the swizzle span, however narrow the box is;
* bits 4 and up of a shared address are XORed with its bits 7 and up: 1, 2 or 3 of them;
* a load is cut to the tensor element by element, a store in 16-byte units.

Not modelled, and refused by name: interleaved layouts, the 128B_ATOM swizzles, packed types.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lesson.errors import UnsupportedPtx
from lesson.tensor_map import Interleave, OobFill, Swizzle, TensorMap

UNIT_NBYTES = 16
SWIZZLE_PERIOD_NBYTES = 1024
_SWIZZLE_BITS = {0: 0, 32: 1, 64: 2, 128: 3}
_NAN_FILL = 0x7FF7


@dataclass(frozen=True)
class Geometry:
    """What every copy of one map has in common; per dimension innermost first.

    counts: elements that the copy moves; steps: how far apart they are in the tensor;
    strides_bytes: of all dimensions; pitch_nbytes: from one row to the next in shared memory;
    fill: the 16-bit pattern outside the tensor; outer_shape: counts of the rows, outermost first.
    """

    rank: int
    itemsize: int
    dims: tuple[int, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    row_nbytes: int
    rows: int
    pitch_nbytes: int
    span_nbytes: int
    nbytes: int
    fill: int
    outer_shape: tuple[int, ...]

    @property
    def extent_nbytes(self) -> int:
        """Shared memory from the first byte of the box to behind the last row."""
        return self.rows * self.pitch_nbytes


@lru_cache(maxsize=512)
def geometry(tmap: TensorMap) -> Geometry:
    """The geometry of a legal map. Raises UnsupportedPtx for a layout that is not modelled."""
    _refuse_what_is_not_modelled(tmap)
    steps = (1, *tmap.element_strides[1:])
    counts = tuple(-(-b // e) for b, e in zip(tmap.box, steps, strict=True))
    row_nbytes = counts[0] * tmap.itemsize
    span = tmap.swizzle.span_nbytes
    nan = tmap.oob_fill is not OobFill.NONE
    return Geometry(
        rank=tmap.rank,
        itemsize=tmap.itemsize,
        dims=tmap.dims,
        counts=counts,
        steps=steps,
        strides_bytes=(tmap.itemsize, *tmap.strides_bytes),
        row_nbytes=row_nbytes,
        rows=math.prod(counts[1:]),
        pitch_nbytes=span or row_nbytes,
        span_nbytes=span,
        nbytes=row_nbytes * math.prod(counts[1:]),
        fill=_NAN_FILL if nan else 0,
        outer_shape=counts[:0:-1],
    )


def _refuse_what_is_not_modelled(tmap: TensorMap) -> None:
    if tmap.interleave is not Interleave.NONE:
        raise UnsupportedPtx(
            f"interleave must be NONE for the emulator to copy, got {tmap.interleave.value}. The "
            "map itself is legal: run it on a GPU, or lay the channels out without slices."
        )
    if "ATOM" in tmap.swizzle.value:
        raise UnsupportedPtx(
            "swizzle must be NONE, 32B, 64B or 128B for the emulator to copy, got "
            f"{tmap.swizzle.value}. Use 128B."
        )
    if tmap.dtype.is_packed:
        raise UnsupportedPtx(
            "dtype must be a type of whole bytes for the emulator to copy, got "
            f"{tmap.dtype.value}. Copy the packed bytes as UINT8."
        )


Range = tuple[int, int]


def inside(g: Geometry, coords: tuple[int, ...], unit_nbytes: int) -> list[Range] | None:
    """Per dimension, which places of the box lie inside the tensor; None if the box misses it.

    `unit_nbytes` rounds the innermost dimension of the tensor up: a store writes whole units.
    """
    ranges = []
    for k in range(g.rank):
        size, step, start = g.dims[k], g.steps[k], coords[k]
        if k == 0 and unit_nbytes > g.itemsize:
            size = -(-size * g.itemsize // unit_nbytes) * unit_nbytes // g.itemsize
        low = 0 if start >= 0 else -(start // step)
        high = min(g.counts[k], -((start - size) // step))
        if low >= high:
            return None
        ranges.append((low, high))
    return ranges


def first_byte(g: Geometry, coords: tuple[int, ...], ranges: list[Range]) -> int:
    """Offset in bytes from the tensor's first element to the first element inside the box."""
    return sum((coords[k] + ranges[k][0] * g.steps[k]) * g.strides_bytes[k] for k in range(g.rank))


def last_byte(g: Geometry, first: int, ranges: list[Range]) -> int:
    """Offset in bytes to behind the last element inside the box."""
    reach = sum(
        (ranges[k][1] - ranges[k][0] - 1) * g.steps[k] * g.strides_bytes[k] for k in range(g.rank)
    )
    return first + reach + g.itemsize


@lru_cache(maxsize=256)
def swizzled_units(span_nbytes: int, units_a_row: int, rows: int, address_mod: int) -> np.ndarray:
    """For each 16-byte unit of the box, where it goes: units counted from address 0 mod 1024.

    Shape (rows, units_a_row). `address_mod` is the destination's address modulo 1024, the period
    of the pattern.
    """
    row = np.arange(rows, dtype=np.int64)[:, None] * span_nbytes
    address = address_mod + row + np.arange(units_a_row, dtype=np.int64) * UNIT_NBYTES
    mask = (1 << _SWIZZLE_BITS[span_nbytes]) - 1
    units = (address ^ (((address >> 7) & mask) << 4)) // UNIT_NBYTES
    units.flags.writeable = False
    return units


def shared_units(g: Geometry, address: int) -> np.ndarray:
    """For each 16-byte unit of the box, its place in units from the destination; may be negative.

    Shape (rows, units of a row).
    """
    mod = address % SWIZZLE_PERIOD_NBYTES
    units = swizzled_units(g.span_nbytes, g.row_nbytes // UNIT_NBYTES, g.rows, mod)
    return units - mod // UNIT_NBYTES


def box_nbytes(tmap: TensorMap) -> int:
    """Bytes that a copy of the map counts: those of the whole box, inside the tensor or not."""
    return geometry(tmap).nbytes


def smem_footprint(tmap: TensorMap, offset: int) -> list[Range]:
    """The byte ranges of shared memory that a copy at `offset` touches, merged and sorted.

    `offset` counts from where shared addresses are a multiple of 1024.
    """
    g = geometry(tmap)
    if g.row_nbytes == g.pitch_nbytes:
        return [(offset, offset + g.extent_nbytes)]
    units = np.unique(shared_units(g, offset))
    breaks = np.flatnonzero(np.diff(units) != 1)
    starts = units[np.concatenate(([0], breaks + 1))] * UNIT_NBYTES + offset
    stops = (units[np.concatenate((breaks, [units.size - 1]))] + 1) * UNIT_NBYTES + offset
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def global_extent(
    tmap: TensorMap, coords: tuple[int, ...], *, is_store: bool = False
) -> Range | None:
    """First byte and behind the last one that a copy touches, from the map's base; None if none.

    Bytes between may be untouched. Cheap: no index is built.
    """
    g = geometry(tmap)
    ranges = inside(g, coords, UNIT_NBYTES if is_store else 0)
    if ranges is None:
        return None
    first = first_byte(g, coords, ranges)
    return first, last_byte(g, first, ranges)


def global_footprint(
    tmap: TensorMap, coords: tuple[int, ...], *, is_store: bool = False
) -> np.ndarray:
    """The bytes of global memory that a copy touches, as sorted offsets from the map's base."""
    g = geometry(tmap)
    ranges = inside(g, coords, UNIT_NBYTES if is_store else 0)
    if ranges is None:
        return np.zeros(0, np.int64)
    at = np.full(1, first_byte(g, coords, ranges), np.int64)
    for k in range(g.rank - 1, 0, -1):
        count = ranges[k][1] - ranges[k][0]
        hop = g.steps[k] * g.strides_bytes[k]
        at = (at[:, None] + np.arange(count, dtype=np.int64) * hop).ravel()
    row = np.arange((ranges[0][1] - ranges[0][0]) * g.itemsize, dtype=np.int64)
    return np.unique((at[:, None] + row).ravel())


def is_plain(tmap: TensorMap) -> bool:
    """Whether the box lies in shared memory row after row, without swizzle."""
    return tmap.swizzle is Swizzle.NONE
