"""The tensor memory access engine: a tensor map, a start and a direction -> bytes moved.

Pure functions on byte arrays: when a copy lands, who may see it and what a barrier counts is not
here. Follows PTX ISA, "Data Movement and Conversion Instructions: Tensor copy" (tile mode, one to
five dimensions), as an H200 executes it. im2col, gather4 and scatter4 are not modelled: whoever
decodes the instruction asks `unmodelled_mode`.
"""

from __future__ import annotations

from lesson.emulator.tma_convert import types_of
from lesson.emulator.tma_layout import (
    UNIT_NBYTES,
    box_nbytes,
    global_extent,
    global_footprint,
    smem_footprint,
)
from lesson.emulator.tma_load import load
from lesson.emulator.tma_store import reduce, store
from lesson.tensor_map import DType, Interleave, TensorMap

__all__ = [
    "SHARED_ALIGN_NBYTES", "UNIT_NBYTES", "box_nbytes", "global_extent", "global_footprint",
    "load", "reduce", "smem_footprint", "start_fault", "store", "unmodelled_mode",
]  # fmt: skip

SHARED_ALIGN_NBYTES = 128
MAX_COPIED_DIM = 1 << 31
_UNMODELLED_MODES = ("im2col", "im2col_no_offs", "im2col::w", "im2col::w::128")
_UNMODELLED_ROWS = ("tile::gather4", "tile::scatter4")


def unmodelled_mode(mods: tuple[str, ...]) -> str:
    """What is wrong with an instruction in a mode other than tile; empty for tile mode."""
    for mod in mods:
        if mod in _UNMODELLED_MODES:
            return f"the mode of a tensor copy must be tile, not {mod} (one box a filter offset)"
        if mod in _UNMODELLED_ROWS:
            return f"the mode of a tensor copy must be tile, not {mod} (four copies of one row)"
    return ""


def start_fault(
    tmap: TensorMap, coords: tuple[int, ...], is_store: bool, op: str | None = None
) -> str | None:
    """Why the chip calls this copy an illegal instruction, or None where it does not.

    Recorded of an H200, without an exception: the instruction has the map's rank; the innermost
    start lies on a 16-byte boundary (under interleave it counts slices, and always does); a store
    or a reduction starts at no negative coordinate, a load or a prefetch may; a reduction has the
    type (`types_of`). The PTX ISA says none of it but the last. A dimension of more than 2^31
    encodes, yet each copy of such a map is an illegal instruction, a prefetch too, wherever it
    starts. `op` is the reduction's, None for others.

    Off a multiple of 128 (SHARED_ALIGN_NBYTES), without a swizzle too, an address in shared memory
    is another fault, "misaligned address"; a copy that has both is an illegal instruction.
    """
    if len(coords) != tmap.rank:
        return (
            f"the coordinates of a tensor copy must be {tmap.rank}, as many as the map has "
            f"dimensions, got {len(coords)}. Use the {tmap.rank}d form of the instruction."
        )
    if max(tmap.dims) > MAX_COPIED_DIM:
        return _too_large(tmap)
    if tmap.interleave is Interleave.NONE and coords[0] * tmap.itemsize % UNIT_NBYTES:
        return _off_the_unit(tmap, coords[0])
    if is_store and min(coords) < 0:
        k = next(k for k, c in enumerate(coords) if c < 0)
        return (
            f"start coordinate {k} of a tensor store must be 0 or more, got {coords[k]}. Only a "
            "load may start in front of the tensor: store the part inside through plain stores."
        )
    if op is not None and tmap.dtype not in types_of(op):
        return _wrong_type(op, tmap.dtype)
    return None


def _too_large(tmap: TensorMap) -> str:
    """What is wrong with a map that no coordinate reaches all of."""
    k = next(k for k, size in enumerate(tmap.dims) if size > MAX_COPIED_DIM)
    return (
        f"global_dim[{k}] of a map that copies must be at most {MAX_COPIED_DIM} (2^31), got "
        f"{tmap.dims[k]}. The driver encodes it, but no coordinate reaches its end: map a part."
    )


def _off_the_unit(tmap: TensorMap, start: int) -> str:
    """What is wrong with an innermost start inside a unit of 16 bytes."""
    unit = UNIT_NBYTES // tmap.itemsize
    return (
        "the innermost start coordinate * itemsize must be a multiple of 16 bytes, got "
        f"{start * tmap.itemsize} ({start} x {tmap.dtype.value.lower()}). Start at "
        f"{start // unit * unit} and skip {start % unit} elements in shared memory."
    )


def _wrong_type(op: str, dtype: DType) -> str:
    """What is wrong with a reduction on a type that it does not have."""
    names = ", ".join(t.value for t in types_of(op)) or "none at all"
    cure = (
        "Encode the map as UINT64: the bits are the same."
        if dtype is DType.INT64 and op in ("and", "or", "xor")
        else "Encode the map with one of these types."
    )
    return f"the type of a reduction .{op} must be one of {names}, got {dtype.value}. {cure}"
