"""Rules on the box and on how it is laid out: sizes, steps, swizzle, interleave, fill.

Source: CUDA Driver API, Tensor Map Object Management, `cuTensorMapEncodeTiled`; where a recording
of the driver disagrees, the docstring says so. `tensor_map_rules` lists all rules in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lesson.tensor_map_broken import (
    BOX_LIMIT_NBYTES,
    MAX_BOX_DIM,
    MAX_ELEMENT_STRIDE,
    SECTION,
    UNIT_NBYTES,
    BrokenRule,
    elements,
    multiple_above,
    whole,
)
from lesson.tensor_map_enums import DType, Interleave, OobFill, Swizzle

if TYPE_CHECKING:
    from lesson.tensor_map import TensorMap


def _row(tmap: TensorMap) -> int | None:
    """box_dim[0] where it is a whole number."""
    return tmap.box[0] if tmap.box and isinstance(tmap.box[0], int) else None


def _widest_row(tmap: TensorMap) -> int:
    """The most elements that a row of the box may have."""
    if tmap.interleave is Interleave.NONE and tmap.swizzle is not Swizzle.NONE:
        return min(MAX_BOX_DIM, tmap.swizzle.span_nbytes // tmap.itemsize)
    return MAX_BOX_DIM


def box_dim_is_1_to_256(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """boxDim: "non-zero and less than or equal to 256"."""
    for k, size in whole(tmap.box):
        if not 1 <= size <= MAX_BOX_DIM:
            nearest = 1 if size < 1 else MAX_BOX_DIM
            if k == 0:
                widest = _widest_row(tmap)
                nearest = min(widest, max(1, UNIT_NBYTES // tmap.itemsize)) if size < 1 else widest
            cure = (
                f"Take {nearest} or more."
                if size < 1
                else f"Take {nearest}, and issue {-(-size // nearest)} copies."
            )
            yield BrokenRule(
                f"box_dim[{k}]", size, "1 to 256", cure, f"{SECTION}, boxDim", nearest=nearest
            )


def box_row_is_whole_units(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """boxDim: boxDim[0] * element size is a multiple of 16 bytes.

    The manual asks it under interleave NONE alone; the recording refuses every other row too.
    """
    row = _row(tmap)
    if row is None or tmap.dtype.is_packed or row * tmap.itemsize % UNIT_NBYTES == 0:
        return
    near = multiple_above(row, UNIT_NBYTES // tmap.itemsize)
    widest = _widest_row(tmap)
    cure = f"Widen the box to {near} elements."
    if near > widest:
        near, cure = widest, f"Narrow the box to {widest} elements."
    yield BrokenRule(
        "box_dim[0] * itemsize", row * tmap.itemsize, "a multiple of 16 bytes", cure,
        f"{SECTION}, boxDim", elements(row, tmap), nearest=near,
    )  # fmt: skip


def packed_box_row_is_128(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """boxDim: boxDim[0] is 128 for the packed types that are aligned to 16 bytes."""
    row = _row(tmap)
    aligned = (DType.PACKED_16U4_ALIGN16B, DType.PACKED_16U6_ALIGN16B)
    if row is not None and tmap.dtype in aligned and row != 128:
        yield BrokenRule(
            "box_dim[0]", row, f"128 for {tmap.dtype.value}", "Take 128.", f"{SECTION}, boxDim",
            nearest=128,
        )  # fmt: skip


def box_fits(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """The elements that a copy picks are at most 228 KiB, the shared memory of an SM of 9.0.

    The manual does not say so. The recording refuses the next size above 233472 bytes, whatever
    type, rank, swizzle or interleave. It counts boxDim[k] / elementStrides[k], rounded down, in
    every dimension: in dimension 0 too, though a copy without interleave ignores that step, and
    below what an outer step moves, which is rounded up. A dimension shorter than its step so counts
    0, and the whole box with it: such a map encodes, however large its other dimensions are, though
    a copy moves one element there.
    """
    sizes = [size for _, size in whole(tmap.box)]
    steps = [step for _, step in whole(tmap.element_strides)]
    if min(sizes, default=0) < 1 or min(steps, default=0) < 1 or len(sizes) != len(steps):
        return
    picked = [size // step for size, step in zip(sizes, steps, strict=True)]
    nbytes = math.prod(picked) * tmap.itemsize
    if nbytes <= BOX_LIMIT_NBYTES:
        return
    outer = max(range(len(sizes)), key=lambda k: (k > 0, picked[k], k))
    fitting = max(1, BOX_LIMIT_NBYTES // (nbytes // picked[outer]))
    nearest = min(sizes[outer], (fitting + 1) * steps[outer] - 1)
    factors = [f"box_dim[{k}]" + (f" / {step}" if step > 1 else "") for k, step in enumerate(steps)]
    yield BrokenRule(
        " * ".join([*factors, "itemsize"]), nbytes, f"at most {BOX_LIMIT_NBYTES} bytes",
        f"Lower box_dim[{outer}] to {nearest}, or the others with it.", f"{SECTION}, boxDim",
        f"{' x '.join(map(str, picked))} x {tmap.dtype.value.lower()}",
    )  # fmt: skip


def swizzle_is_of_compute_capability_9(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """swizzle: no SWIZZLE_128B_ATOM_32B, _ATOM_32B_FLIP_8B or _ATOM_64B on this chip.

    The manual lists them without a condition; the recorded H200 refuses all three, for every type
    and every row from 16 to 256 bytes. They are of later chips.
    """
    if "ATOM" in tmap.swizzle.value:
        yield BrokenRule(
            "swizzle", tmap.swizzle.value, "NONE, 32B, 64B or 128B on compute capability 9.0",
            "Use 128B.", f"{SECTION}, swizzle", nearest="128B",
        )  # fmt: skip


def box_row_fits_the_swizzle_span(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """swizzle: under interleave NONE, boxDim[0] * element size is at most the swizzle size."""
    row, span = _row(tmap), tmap.swizzle.span_nbytes
    if row is None or not span or tmap.interleave is not Interleave.NONE or tmap.dtype.is_packed:
        return
    if row * tmap.itemsize > span:
        near = span // tmap.itemsize
        yield BrokenRule(
            "box_dim[0] * itemsize", row * tmap.itemsize,
            f"at most {span} bytes under swizzle {tmap.swizzle.value}",
            f"Narrow the box to {near} elements, or use swizzle NONE.",
            f"{SECTION}, swizzle", elements(row, tmap), nearest=near,
        )  # fmt: skip


def element_strides_are_1_to_8(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """elementStrides: "non-zero and less than or equal to 8".

    The manual calls elementStrides[0] ignored under interleave NONE. The copy does ignore it, but
    the recorded driver refuses a map where it is 0 or above 8.
    """
    for k, step in whole(tmap.element_strides):
        if not 1 <= step <= MAX_ELEMENT_STRIDE:
            near = 1 if step < 1 else MAX_ELEMENT_STRIDE
            yield BrokenRule(
                f"element_strides[{k}]", step, "1 to 8", f"Take {near}, and 1 to skip nothing.",
                f"{SECTION}, elementStrides", nearest=near,
            )  # fmt: skip


def nan_fill_needs_a_float_type(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """oobFill: NAN_REQUEST_ZERO_FMA only for floating-point types."""
    if tmap.oob_fill is not OobFill.NONE and not tmap.dtype.is_float:
        yield BrokenRule(
            "oob_fill", tmap.oob_fill.value, "NONE for a type that has no NaN",
            "Use oob_fill NONE: outside the tensor a load brings zeros.", f"{SECTION}, oobFill",
            tmap.dtype.value, nearest="NONE",
        )  # fmt: skip
