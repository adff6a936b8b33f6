"""What is likely wrong with a tensor map that the driver accepts: one function a suspicion.

Each compares the map with itself, or with the array that it is meant to map, and says why it
suspects. The driver checks none of this: it never sees the array. A map of `TensorMap.from_array`
with a box inside the tensor raises no suspicion. Not judged here: the kernel's use of the map.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from lesson.tensor_map import DType, Interleave, TensorMap
from lesson.tensor_map_array import ArrayLayout, dense_strides

UNIT_NBYTES = 16


@dataclass(frozen=True)
class Suspicion:
    """Why a legal map is likely not what was meant. `kind` is a stable short name."""

    kind: str
    says: str
    cure: str

    def __str__(self) -> str:
        return f"{self.says} {self.cure}"


Judge = Callable[[TensorMap, ArrayLayout | None], Suspicion | None]


def _row_nbytes(tmap: TensorMap) -> int:
    return tmap.dims[0] * tmap.itemsize


def _elements(count: int, tmap: TensorMap) -> str:
    return f"{count} x {tmap.dtype.value.lower()}"


def _shape_fits(tmap: TensorMap, layout: ArrayLayout) -> bool:
    return tmap.dims == layout.shape[::-1]


def dtype_of_another_size(tmap: TensorMap, layout: ArrayLayout | None) -> Suspicion | None:
    """The element of the map is not as large as the array's: boxes are half or twice as large."""
    if layout is None or tmap.dtype.is_packed or tmap.itemsize == layout.itemsize:
        return None
    share = f"{tmap.itemsize} bytes where the array has {layout.itemsize} ({layout.dtype_name})"
    return Suspicion(
        "dtype-size",
        f"An element of the map is {tmap.dtype.value}, {share}: a box of {tmap.box[0]} elements "
        f"brings {tmap.box[0] * tmap.itemsize} bytes a row, not {tmap.box[0] * layout.itemsize}.",
        "Take the type of the array, or view the array as the type of the map.",
    )


def dtype_of_another_format(tmap: TensorMap, layout: ArrayLayout | None) -> Suspicion | None:
    """float16 and BFLOAT16 are of one size and of another format: sums would be wrong."""
    if layout is None:
        return None
    pairs = {("float16", DType.BFLOAT16), ("bfloat16", DType.FLOAT16)}
    if (layout.dtype_name, tmap.dtype) not in pairs:
        return None
    return Suspicion(
        "dtype-format",
        f"The map says {tmap.dtype.value}, the array holds {layout.dtype_name}: a load brings the "
        "right bits, a reduction computes with them as other numbers.",
        "Take the type of the array.",
    )


def sizes_in_bytes(tmap: TensorMap, layout: ArrayLayout | None) -> Suspicion | None:
    """global_dim[0] is the row of the array in bytes."""
    if layout is None or not layout.shape or layout.itemsize == 1 or tmap.dims[0] < 2:
        return None
    if tmap.dims[0] != layout.shape[-1] * layout.itemsize or tmap.itemsize != layout.itemsize:
        return None
    return Suspicion(
        "sizes-in-bytes",
        f"global_dim[0] is {tmap.dims[0]}, the row of the array in bytes; it counts elements, and "
        f"a row has {layout.shape[-1]}. Columns behind the row are then inside the tensor: they "
        "bring the next rows where zeros were meant.",
        f"Say {layout.shape[-1]}.",
    )


def x_and_y_swapped(tmap: TensorMap, layout: ArrayLayout | None) -> Suspicion | None:
    """The map's sizes are the array's shape in numpy's order."""
    if layout is None or tmap.dims != layout.shape or tmap.dims == layout.shape[::-1]:
        return None
    right = layout.shape[::-1]
    return Suspicion(
        "x-y-swapped",
        f"global_dim is {tmap.dims}, the shape of the array in numpy's order. A map has the "
        f"innermost dimension first: {right[0]} columns, then {right[1]} rows.",
        f"Say {right}; box, strides and coordinates go the same way round.",
    )


def innermost_dimension_has_gaps(tmap: TensorMap, layout: ArrayLayout | None) -> Suspicion | None:
    """Neighbours in a row of the array are not neighbours in memory."""
    if layout is None or not layout.shape or layout.shape[-1] < 2:
        return None
    if layout.strides_bytes[-1] == layout.itemsize:
        return None
    return Suspicion(
        "innermost-gaps",
        f"Neighbours in a row of the array lie {layout.strides_bytes[-1]} bytes apart (it is a "
        "transposed or strided view); in dimension 0 of a map they always touch.",
        "Copy the view with ascontiguousarray, or map the array that it is a view of.",
    )


def strides_in_elements(tmap: TensorMap, layout: ArrayLayout | None) -> Suspicion | None:
    """The strides are those of the tensor, counted in elements."""
    if tmap.rank < 2 or tmap.itemsize == 1:
        return None
    dense = tuple(math.prod(tmap.dims[: k + 1]) for k in range(tmap.rank - 1))
    meant = tuple(s * tmap.itemsize for s in tmap.strides_bytes)
    own = None if layout is None else layout.strides_bytes[:-1][::-1]
    if own is not None and tmap.strides_bytes == own:
        return None
    if tmap.strides_bytes != dense and meant != own:
        return None
    return Suspicion(
        "strides-in-elements",
        f"global_strides[0] is {tmap.strides_bytes[0]}, a row counted in elements; it counts "
        f"bytes, and {_elements(tmap.strides_bytes[0], tmap)} are {meant[0]}. Each row of the box "
        f"then starts {tmap.strides_bytes[0] // tmap.itemsize} elements behind the one before.",
        f"Multiply by the itemsize: {', '.join(map(str, meant))}.",
    )


def stride_of_a_view_ignored(tmap: TensorMap, layout: ArrayLayout | None) -> Suspicion | None:
    """The array is a view with gaps between its rows; the map's rows have none."""
    if layout is None or not _shape_fits(tmap, layout) or tmap.itemsize != layout.itemsize:
        return None
    dense = dense_strides(layout.shape, layout.itemsize)
    if layout.strides_bytes == dense or tmap.strides_bytes != dense[:-1][::-1]:
        return None
    k = next(k for k in range(len(dense)) if layout.strides_bytes[k] != dense[k])
    outer = tmap.rank - 2 - k
    if outer < 0 or layout.shape[k] < 2:
        return None
    return Suspicion(
        "view-stride",
        f"global_strides[{outer}] is {tmap.strides_bytes[outer]}, as if the array had no gaps; it "
        f"is a view, and its own stride there is {layout.strides_bytes[k]} bytes.",
        f"Say {layout.strides_bytes[k]}, or let TensorMap.from_array read the view.",
    )


def strides_not_those_of_the_array(tmap: TensorMap, layout: ArrayLayout | None) -> Suspicion | None:
    """Same shape, other strides."""
    if layout is None or not _shape_fits(tmap, layout):
        return None
    for k, stride in enumerate(tmap.strides_bytes):
        own = layout.strides_bytes[tmap.rank - 2 - k]
        if stride != own and tmap.dims[k + 1] > 1:
            return Suspicion(
                "other-strides",
                f"global_strides[{k}] is {stride}, the array's own stride there is {own} bytes.",
                f"Say {own}.",
            )
    return None


def rows_overlap(tmap: TensorMap, layout: ArrayLayout | None) -> Suspicion | None:
    """A row begins before the one below it ends. A stride of 0 repeats a row on purpose."""
    if tmap.rank < 2 or not 0 < tmap.strides_bytes[0] < _row_nbytes(tmap) or tmap.dims[1] < 2:
        return None
    if layout is not None and tmap.strides_bytes[0] in layout.strides_bytes[:-1]:
        return None
    return Suspicion(
        "rows-overlap",
        f"global_strides[0] is {tmap.strides_bytes[0]} bytes, and a row of "
        f"{_elements(tmap.dims[0], tmap)} takes {_row_nbytes(tmap)}: each row begins before the "
        "one before it ends.",
        f"Say {_row_nbytes(tmap)} or more, unless the rows are meant to overlap.",
    )


def box_beyond_the_tensor(tmap: TensorMap, _layout: ArrayLayout | None) -> Suspicion | None:
    """The box is larger than the tensor, by more than a row's rounding to 16 bytes."""
    has_slices = tmap.interleave is not Interleave.NONE
    for k, (box, size) in enumerate(zip(tmap.box, tmap.dims, strict=True)):
        if has_slices and k == tmap.rank - 2:
            continue
        is_row = k == 0 and not has_slices
        step = 1 if is_row else tmap.element_strides[k]
        reach = (-(-box // step) - 1) * step + 1
        unit = max(1, UNIT_NBYTES // tmap.itemsize) if is_row else 1
        if reach > -(-size // unit) * unit:
            return Suspicion(
                "box-beyond-tensor",
                f"box_dim[{k}] is {box}, the tensor has {size}: part of every box lies outside. It "
                "is filled and its bytes are counted all the same.",
                f"Lower box_dim[{k}] to {-(-size // unit) * unit}, if no larger tile was meant.",
            )
    return None


def slices_without_effect(tmap: TensorMap, _layout: ArrayLayout | None) -> Suspicion | None:
    """The box asks for several slices of channels: a copy moves one, as recorded."""
    k = tmap.rank - 2
    if tmap.interleave is Interleave.NONE or k < 0 or tmap.box[k] == 1:
        return None
    return Suspicion(
        "slices-ignored",
        f"box_dim[{k}] is {tmap.box[k]}, and under interleave a copy moves one slice of channels, "
        "whatever the box says there.",
        "Say 1, and issue a copy a slice.",
    )


def step_without_effect(tmap: TensorMap, _layout: ArrayLayout | None) -> Suspicion | None:
    """elementStrides[0] does nothing where channels are not interleaved."""
    if tmap.interleave is not Interleave.NONE or tmap.element_strides[0] == 1:
        return None
    return Suspicion(
        "step-ignored",
        f"element_strides[0] is {tmap.element_strides[0]}, and a copy ignores it without "
        f"interleave: it moves all {tmap.box[0]} elements of a row and counts their bytes.",
        "Say 1, and pick the elements out of shared memory.",
    )


def swizzle_span_not_filled(tmap: TensorMap, _layout: ArrayLayout | None) -> Suspicion | None:
    """A row narrower than the swizzle span: rows in shared memory lie a span apart."""
    row, span = tmap.box[0] * tmap.itemsize, tmap.swizzle.span_nbytes
    if tmap.interleave is not Interleave.NONE or row >= span or math.prod(tmap.box[1:]) < 2:
        return None
    return Suspicion(
        "span-not-filled",
        f"A box row has {row} bytes under swizzle {tmap.swizzle.value}: in shared memory rows lie "
        f"{span} bytes apart all the same, with gaps that keep what they held.",
        f"Widen the box to {span // tmap.itemsize} elements, or make the shared array "
        f"{span} bytes a row.",
    )


# In each group the first that speaks is the most specific, and the others stay silent.
GROUPS: tuple[tuple[Judge, ...], ...] = (
    (dtype_of_another_size, dtype_of_another_format),
    (x_and_y_swapped, sizes_in_bytes),
    (
        innermost_dimension_has_gaps,
        strides_in_elements,
        stride_of_a_view_ignored,
        strides_not_those_of_the_array,
        rows_overlap,
    ),
    (box_beyond_the_tensor,),
    (slices_without_effect,),
    (step_without_effect,),
    (swizzle_span_not_filled,),
)
