"""The tensor memory access engine: a tensor map, a start and a direction -> bytes moved.

Pure functions on byte arrays: when a copy lands, who may see it and what a barrier counts is not
here. Follows PTX ISA, "Data Movement and Conversion Instructions: Tensor copy" (tile mode, one to
five dimensions), as an H200 executes it. im2col, gather4, scatter4 and interleaved layouts raise
`UnsupportedPtx`.
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
from lesson.errors import UnsupportedPtx
from lesson.tensor_map import DType, TensorMap

__all__ = [
    "box_nbytes", "check_mode", "global_extent", "global_footprint", "load", "reduce",
    "smem_footprint", "start_fault", "store",
]  # fmt: skip

_UNMODELLED_MODES = {
    "im2col": "Copy in tile mode, one box a filter offset.",
    "im2col_no_offs": "Copy in tile mode, one box a filter offset.",
    "im2col::w": "Copy in tile mode, one box a filter offset.",
    "im2col::w::128": "Copy in tile mode, one box a filter offset.",
    "tile::gather4": "Copy the four rows with four instructions.",
    "tile::scatter4": "Copy the four rows with four instructions.",
}


def check_mode(mods: tuple[str, ...]) -> None:
    """Raises UnsupportedPtx if the instruction's modifiers ask for a mode other than tile."""
    for mod in mods:
        if mod in _UNMODELLED_MODES:
            raise UnsupportedPtx(
                f"the mode of a tensor copy must be tile for the emulator, got {mod}. "
                f"{_UNMODELLED_MODES[mod]}"
            )


def start_fault(
    tmap: TensorMap, coords: tuple[int, ...], is_store: bool, op: str | None = None
) -> str | None:
    """Why the chip calls this copy an illegal instruction, or None where it does not.

    Recorded of an H200, without an exception: the innermost start lies on a 16-byte boundary; a
    store or a reduction starts at no negative coordinate, a load may; and, or, xor are not for
    INT64. `op` is the reduction's, None for a load or a plain store.
    """
    if len(coords) != tmap.rank:
        return (
            f"the coordinates of a tensor copy must be {tmap.rank}, as many as the map has "
            f"dimensions, got {len(coords)}. Use the {tmap.rank}d form of the instruction."
        )
    past = coords[0] * tmap.itemsize % UNIT_NBYTES
    if past:
        unit = UNIT_NBYTES // tmap.itemsize
        return (
            "the innermost start coordinate * itemsize must be a multiple of 16 bytes, got "
            f"{coords[0] * tmap.itemsize} ({coords[0]} x {tmap.dtype.value.lower()}). Start at "
            f"{coords[0] // unit * unit} and skip {coords[0] % unit} elements in shared memory."
        )
    if is_store and min(coords) < 0:
        k = next(k for k, c in enumerate(coords) if c < 0)
        return (
            f"start coordinate {k} of a tensor store must be 0 or more, got {coords[k]}. Only a "
            "load may start in front of the tensor: store the part inside through plain stores."
        )
    if op is not None and tmap.dtype not in types_of(op):
        return _wrong_type(op, tmap.dtype)
    return None


def _wrong_type(op: str, dtype: DType) -> str:
    """What is wrong with a reduction on a type that it does not have."""
    names = ", ".join(t.value for t in types_of(op)) or "none at all"
    cure = (
        "Encode the map as UINT64: the bits are the same."
        if dtype is DType.INT64 and op in ("and", "or", "xor")
        else "Encode the map with one of these types."
    )
    return f"the type of a reduction .{op} must be one of {names}, got {dtype.value}. {cure}"
