"""Rules on the tensor in global memory: rank, address, shape, strides. One function a rule.

Source: CUDA Driver API, Tensor Map Object Management, `cuTensorMapEncodeTiled`; where a recording
of the driver disagrees, the docstring says so. `tensor_map_rules` lists all rules in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lesson.tensor_map_broken import (
    ADDRESS_BITS,
    ARGUMENTS,
    MAX_DIM,
    MAX_RANK,
    SECTION,
    STRIDE_LIMIT_BYTES,
    UNIT_NBYTES,
    BrokenRule,
    elements,
    multiple_above,
    whole,
)
from lesson.tensor_map_enums import DType, Interleave

if TYPE_CHECKING:
    from lesson.tensor_map import TensorMap


def _alignment(tmap: TensorMap) -> tuple[int, str]:
    """What address and strides must be multiples of, and under which condition."""
    if tmap.interleave is Interleave.INTERLEAVE_32B:
        return 32, " under interleave 32B"
    if tmap.dtype in (DType.PACKED_16U4_ALIGN16B, DType.PACKED_16U6_ALIGN16B):
        return 32, f" for {tmap.dtype.value}"
    return 16, ""


def arguments_are_whole_numbers(tmap: TensorMap, address: int) -> Iterator[BrokenRule]:
    """Sizes, strides and the address are integers (the types of the C function)."""
    named = [("global_address", address), ("tensor_rank", tmap.rank)]
    for name, argument in ARGUMENTS.items():
        named += [(f"{argument}[{k}]", value) for k, value in enumerate(getattr(tmap, name))]
    for argument, value in named:
        if not isinstance(value, int):
            yield BrokenRule(
                argument, repr(value), "a whole number", "Divide with //, or convert it with int.",
                SECTION, type(value).__name__,
            )  # fmt: skip


def type_is_of_compute_capability_9(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """tensorDataType: no 16U4_ALIGN8B, 16U4_ALIGN16B or 16U6_ALIGN16B on this chip.

    The manual lists them without a condition; the recorded H200 refuses all three in every form
    that the manual allows. They are of later chips.
    """
    if tmap.dtype.is_packed:
        yield BrokenRule(
            "data_type", tmap.dtype.value, "a type of whole bytes on compute capability 9.0",
            "Copy the packed bytes as UINT8.", f"{SECTION}, tensorDataType", nearest="UINT8",
        )  # fmt: skip


def rank_is_1_to_5(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """tensorRank: "non-zero and less than or equal to the maximum" of 5."""
    if isinstance(tmap.rank, int) and not 1 <= tmap.rank <= MAX_RANK:
        cure = (
            "A tensor has at least one dimension: reshape(1) a scalar."
            if tmap.rank < 1
            else "Merge neighbouring dimensions that lie without a gap, or map one slice."
        )
        nearest = 1 if tmap.rank < 1 else MAX_RANK
        yield BrokenRule(
            "tensor_rank", tmap.rank, "1 to 5", cure, f"{SECTION}, tensorRank", nearest=nearest
        )


def every_dimension_has_its_entries(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """Arrays of tensorRank entries, globalStrides one fewer; the C function reads no lengths."""
    if not isinstance(tmap.rank, int) or not 1 <= tmap.rank <= MAX_RANK:
        return
    for name, argument in ARGUMENTS.items():
        outer_only = name == "strides_bytes"
        want, got = tmap.rank - outer_only, len(getattr(tmap, name))
        if got != want:
            plural = "entry" if want == 1 else "entries"
            rule = f"{want} {plural} long (tensor_rank{' - 1' if outer_only else ''})"
            cure = (
                "Leave out the innermost stride: it is always one element."
                if outer_only and got == want + 1
                else "Give one entry a dimension, innermost first."
            )
            yield BrokenRule(argument, got, rule, cure, f"{SECTION}, {argument}", nearest=want)


def interleave_needs_three_dimensions(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """tensorRank: at least 3 if interleave is not NONE."""
    if tmap.interleave is not Interleave.NONE and tmap.rank < 3:
        yield BrokenRule(
            "interleave", tmap.interleave.value, "NONE below rank 3",
            "Use interleave NONE, or map the tensor as channels in slices: NC/8HWC8.",
            f"{SECTION}, interleave", f"rank {tmap.rank}", nearest="NONE",
        )  # fmt: skip


def global_address_is_aligned(tmap: TensorMap, address: int) -> Iterator[BrokenRule]:
    """globalAddress: a multiple of 16 bytes, of 32 under interleave 32B."""
    unit, when = _alignment(tmap)
    if isinstance(address, int) and address % unit:
        yield BrokenRule(
            "global_address", hex(address), f"a multiple of {unit} bytes{when}",
            f"Start the tensor on a {unit}-byte boundary: pad in front of it, or copy the view.",
            f"{SECTION}, globalAddress", f"{address % unit} bytes past one",
            nearest=address - address % unit,
        )  # fmt: skip


def global_address_fits_57_bits(_tmap: TensorMap, address: int) -> Iterator[BrokenRule]:
    """globalAddress: a virtual address of the chip.

    The manual gives no bound. The recording accepts 0 and 2^57 - 16, and refuses 2^57 and above.
    """
    if isinstance(address, int) and not 0 <= address < 1 << ADDRESS_BITS:
        yield BrokenRule(
            "global_address", address, f"0 to 2^{ADDRESS_BITS} - 1",
            "Take the pointer of the array.", f"{SECTION}, globalAddress",
        )  # fmt: skip


def global_dim_is_1_to_2_to_the_32(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """globalDim: "non-zero and less than or equal to 2^32"; the recording accepts 2^32 itself."""
    for k, size in whole(tmap.dims):
        if not 1 <= size <= MAX_DIM:
            cure = (
                "A tensor without elements needs no copy." if size < 1 else "Split the dimension."
            )
            yield BrokenRule(
                f"global_dim[{k}]", size, "1 to 4294967296 (2^32)", cure,
                f"{SECTION}, globalDim", nearest=1 if size < 1 else MAX_DIM,
            )  # fmt: skip


def packed_row_is_whole(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """globalDim: for packed types globalDim[0] is a multiple of 128, of 2 for 16U4_ALIGN8B."""
    unit = 2 if tmap.dtype is DType.PACKED_16U4_ALIGN8B else 128
    for k, size in whole(tmap.dims[:1]):
        if tmap.dtype.is_packed and size % unit:
            near = multiple_above(size, unit)
            yield BrokenRule(
                f"global_dim[{k}]", size, f"a multiple of {unit} for {tmap.dtype.value}",
                f"Pad the row to {near} elements.", f"{SECTION}, globalDim", nearest=near,
            )  # fmt: skip


def global_strides_are_aligned(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """globalStrides: multiples of 16 bytes, of 32 under interleave 32B.

    0 is one, and the recording accepts it: every row is then the same memory.
    """
    unit, when = _alignment(tmap)
    for k, stride in whole(tmap.strides_bytes):
        if stride % unit == 0:
            continue
        near = multiple_above(stride, unit)
        row = tmap.dims[0] if k == 0 and tmap.dims and isinstance(tmap.dims[0], int) else None
        detail, cure = "", f"Pad it to {near} bytes."
        if row is not None and stride == row and tmap.itemsize > 1:
            near = multiple_above(row * tmap.itemsize, unit)
            detail = "as many as a row has elements"
            cure = f"Strides count bytes: a row of {elements(row, tmap)} needs {near}."
        elif row is not None and stride == row * tmap.itemsize and near % tmap.itemsize == 0:
            detail = elements(row, tmap)
            cure = f"Pad each row to {near // tmap.itemsize} elements ({near} bytes)."
        yield BrokenRule(
            f"global_strides[{k}]", stride, f"a multiple of {unit} bytes{when}", cure,
            f"{SECTION}, globalStrides", detail, nearest=near,
        )  # fmt: skip


def global_strides_are_below_2_to_the_40(tmap: TensorMap, _address: int) -> Iterator[BrokenRule]:
    """globalStrides: "less than 2^40" bytes, and unsigned."""
    for k, stride in whole(tmap.strides_bytes):
        if not 0 <= stride < STRIDE_LIMIT_BYTES:
            cure = (
                "A stride cannot run backwards: copy the array, or map it the right way round."
                if stride < 0
                else "Map a part of the tensor, with a base of its own."
            )
            yield BrokenRule(
                f"global_strides[{k}]", stride, "0 to 1099511627775 bytes (below 2^40)", cure,
                f"{SECTION}, globalStrides",
                nearest=0 if stride < 0 else STRIDE_LIMIT_BYTES - UNIT_NBYTES,
            )  # fmt: skip
