"""Tensor stores and reductions, shared to global memory.

Follows PTX ISA, `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor` (tile mode), and the
recordings of an H200. A store is cut at 16-byte units, not at elements: at the right edge of a
tensor whose rows are no whole units, it writes into the gap behind the row. A reduction does so
too. Where rows overlap (a stride below a row) a reduction adds them one after another, outermost
dimension last; which row of a plain store survives there is not modelled.
"""

from __future__ import annotations

import itertools

import numpy as np

from lesson.emulator import tma_convert
from lesson.emulator.tma_layout import (
    UNIT_NBYTES,
    Geometry,
    Range,
    geometry,
    inside,
    shared_units,
)
from lesson.emulator.tma_load import as_units, check_shared, global_view, places
from lesson.tensor_map import TensorMap


def store(
    tmap: TensorMap,
    coords: tuple[int, ...],
    gmem: np.ndarray,
    base: int,
    smem: np.ndarray,
    src_offset: int,
    src_address: int,
) -> int:
    """Copies a box out of `smem` to `coords`; returns the bytes of the whole box.

    `gmem` and `smem` are uint8 arrays, `base` and `src_offset` indices into them, `src_address`
    the shared address of the source, whose bits the swizzle reads. The start must be legal.
    """
    g = geometry(tmap)
    coords = g.lead + coords
    ranges = inside(g, coords, UNIT_NBYTES)
    rows = _rows(g, smem, src_offset, src_address)
    if ranges is not None:
        view = global_view(g, coords, ranges, gmem, base, np.uint8)
        view[...] = rows[places(g, ranges, g.row_nbytes)]
    return g.nbytes


def reduce(
    op: str,
    tmap: TensorMap,
    coords: tuple[int, ...],
    gmem: np.ndarray,
    base: int,
    smem: np.ndarray,
    src_offset: int,
    src_address: int,
) -> int:
    """Like `store`, but global memory becomes `op` of what it held and what `smem` holds.

    `op` is one of add, min, max, inc, dec, and, or, xor, and one that the type has.
    """
    g = geometry(tmap)
    coords = g.lead + coords
    ranges = inside(g, coords, UNIT_NBYTES)
    rows = _rows(g, smem, src_offset, src_address)
    if ranges is None:
        return g.nbytes
    kind = tma_convert.storage(tmap.dtype)
    combine = tma_convert.reduction(op, tmap.dtype)
    held = global_view(g, coords, ranges, gmem, base, kind)
    given = rows.view(kind)[places(g, ranges, g.counts[0])]
    with np.errstate(all="ignore"):
        if not _rows_overlap(g, ranges):
            held[...] = combine(held, given)
            return g.nbytes
        for at in itertools.product(*map(range, held.shape[:-1])):
            held[at] = combine(held[at], given[at])
    return g.nbytes


def _rows(g: Geometry, smem: np.ndarray, offset: int, address: int) -> np.ndarray:
    """The box as it lies in shared memory, row after row without swizzle, as bytes."""
    check_shared(g, smem, offset)
    shape = (*g.outer_shape, g.row_nbytes)
    if not g.span_nbytes:
        return np.ndarray(shape, np.uint8, smem, offset)
    units = shared_units(g, address) + offset // UNIT_NBYTES
    return as_units(smem)[units].view(np.uint8).reshape(shape)


def _rows_overlap(g: Geometry, ranges: list[Range]) -> bool:
    """Whether two rows inside the box share bytes of global memory (or may: it errs to True)."""
    hops = [
        (g.steps[k] * g.strides_bytes[k], ranges[k][1] - ranges[k][0])
        for k in range(1, g.rank)
        if ranges[k][1] - ranges[k][0] > 1
    ]
    reach = (ranges[0][1] - ranges[0][0]) * g.itemsize
    for hop, count in sorted(hops):
        if hop < reach:
            return True
        reach += hop * (count - 1)
    return False
