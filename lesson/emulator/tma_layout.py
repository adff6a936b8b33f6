"""Where the elements of a box lie: in global memory, in shared memory, and which are inside.

Follows PTX ISA, "Tensors" (tiled mode: bounding box, traversal strides, out-of-boundary access,
swizzling modes) and the recordings of an H200, which settle what the text leaves open:

* without interleave elementStrides[0] is ignored; an outer step e makes ceil(box / e) rows;
* under swizzle a row in shared memory is as long as the swizzle span, however narrow the box is;
* bits 4 and up of a shared address are XORed with its bits 7 and up: 1, 2 or 3 of them;
* a load is cut to the tensor element by element, a store in 16-byte units.

Under interleave the channels of a slice, 16 or 32 bytes, are a dimension in front of dimension 0
that the map does not name: as recorded, coordinates, sizes, box and steps of dimension 0 count
slices, so that no start is off the 16-byte boundary; of the last dimension but one, the slices of
channels, a copy moves one, whatever the box says; a barrier counts the bytes that so are moved; and
rows lie without gaps under a swizzle.

Not modelled, and refused by name: the 128B_ATOM swizzles and the packed types of later chips.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from lesson.errors import UnsupportedPtx
from lesson.tensor_map import OobFill, TensorMap

UNIT_NBYTES = 16
SWIZZLE_PERIOD_NBYTES = 1024
_SWIZZLE_BITS = {0: 0, 32: 1, 64: 2, 128: 3}
_NAN_FILL = 0x7FF7


@dataclass(frozen=True)
class Geometry:
    """What every copy of one map has in common; per dimension innermost first.

    An interleaved map has a dimension more here, and `lead` is the coordinate there: (0,), else ().

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
    lead: tuple[int, ...]

    @cached_property
    def extent_nbytes(self) -> int:
        """Shared memory from the first byte of the box to behind the last row, in whole spans."""
        whole = self.span_nbytes or 1
        return -(-self.rows * self.pitch_nbytes // whole) * whole

    @cached_property
    def last_starts(self) -> tuple[int, ...]:
        """The largest start in each dimension from which the whole box lies inside the tensor."""
        spans = [(n - 1) * step + 1 for n, step in zip(self.counts, self.steps, strict=True)]
        return tuple(size - span for size, span in zip(self.dims, spans, strict=True))

    @cached_property
    def hops_bytes(self) -> tuple[int, ...]:
        """From one element of a whole box to the next in global memory, outermost first."""
        hops = [a * b for a, b in zip(self.steps, self.strides_bytes, strict=True)]
        return tuple(hops[:0:-1])

    @cached_property
    def reach_nbytes(self) -> int:
        """Global memory from the first byte of a whole box to behind its last one."""
        hops = zip(self.outer_shape, self.hops_bytes, strict=True)
        return sum((n - 1) * hop for n, hop in hops) + self.row_nbytes


def geometry(tmap: TensorMap) -> Geometry:
    """The geometry of a legal map. Raises UnsupportedPtx for a layout that is not modelled.

    It is worked out once and kept on the map itself: a table of maps would keep their arrays alive.
    """
    known: Geometry | None = tmap.__dict__.get("_geometry")
    if known is None:
        known = _geometry(tmap)
        object.__setattr__(tmap, "_geometry", known)
    return known


def _geometry(tmap: TensorMap) -> Geometry:
    _refuse_what_is_not_modelled(tmap)
    slice_nbytes = tmap.interleave.slice_nbytes
    dims, strides_bytes = tmap.dims, (tmap.itemsize, *tmap.strides_bytes)
    steps = (1, *tmap.element_strides[1:])
    counts = tuple(-(-b // e) for b, e in zip(tmap.box, steps, strict=True))
    if slice_nbytes:
        channels = slice_nbytes // tmap.itemsize
        steps = (1, *tmap.element_strides)
        counts = (channels, -(-tmap.box[0] // steps[1]), *counts[1:-2], 1, counts[-1])
        dims, strides_bytes = (channels, *dims), (tmap.itemsize, slice_nbytes, *tmap.strides_bytes)
    row_nbytes = counts[0] * tmap.itemsize
    span = tmap.swizzle.span_nbytes
    rows = math.prod(counts[1:])
    return Geometry(
        rank=len(dims),
        itemsize=tmap.itemsize,
        dims=dims,
        counts=counts,
        steps=steps,
        strides_bytes=strides_bytes,
        row_nbytes=row_nbytes,
        rows=rows,
        pitch_nbytes=row_nbytes if slice_nbytes else span or row_nbytes,
        span_nbytes=span,
        nbytes=row_nbytes * rows,
        fill=0 if tmap.oob_fill is OobFill.NONE else _NAN_FILL,
        outer_shape=counts[:0:-1],
        lead=(0,) if slice_nbytes else (),
    )


def _refuse_what_is_not_modelled(tmap: TensorMap) -> None:
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
def swizzled_units(
    span_nbytes: int, pitch_nbytes: int, units_a_row: int, rows: int, address_mod: int
) -> np.ndarray:
    """For each 16-byte unit of the box, where it goes: units counted from address 0 mod 1024.

    Shape (rows, units_a_row). `address_mod` is the destination's address modulo 1024, the period
    of the pattern.
    """
    row = np.arange(rows, dtype=np.int64)[:, None] * pitch_nbytes
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
    units_a_row = g.row_nbytes // UNIT_NBYTES
    units = swizzled_units(g.span_nbytes, g.pitch_nbytes, units_a_row, g.rows, mod)
    return units - mod // UNIT_NBYTES


def box_nbytes(tmap: TensorMap) -> int:
    """Bytes that a copy of the map counts: those of the whole box, inside the tensor or not."""
    return geometry(tmap).nbytes


def smem_footprint(tmap: TensorMap, offset: int) -> list[Range]:
    """The byte ranges of shared memory that a copy at `offset` touches, merged and sorted.

    `offset` counts from where shared addresses are a multiple of 1024.
    """
    g = geometry(tmap)
    if not g.span_nbytes or (g.row_nbytes == g.span_nbytes and not g.lead):
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
    coords = g.lead + coords
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
    coords = g.lead + coords
    ranges = inside(g, coords, UNIT_NBYTES if is_store else 0)
    if ranges is None:
        return np.zeros(0, np.int64)
    at = np.full(1, first_byte(g, coords, ranges), np.int64)
    for k in range(g.rank - 1, 0, -1):
        count = ranges[k][1] - ranges[k][0]
        hop = g.steps[k] * g.strides_bytes[k]
        at = (at[:, None] + np.arange(count, dtype=np.int64) * hop).ravel()
    row = np.arange((ranges[0][1] - ranges[0][0]) * g.itemsize, dtype=np.int64)
    found = (at[:, None] + row).ravel()
    return found if np.all(np.diff(at) >= row.size) else np.unique(found)
