"""What a tensor map can read from an array: shape, strides, element type and address.

Reads numpy arrays, and anything on the device that has `__cuda_array_interface__` (CuPy arrays do).
It reads and never copies; whether the driver accepts what is read, `tensor_map_rules` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lesson.errors import TensorMapError
from lesson.tensor_map_enums import DType

_BY_NUMPY_NAME = {
    "uint8": DType.UINT8, "int8": DType.UINT8, "bool": DType.UINT8,
    "uint16": DType.UINT16, "int16": DType.UINT16,
    "uint32": DType.UINT32, "int32": DType.INT32,
    "uint64": DType.UINT64, "int64": DType.INT64,
    "float16": DType.FLOAT16, "float32": DType.FLOAT32, "float64": DType.FLOAT64,
    "bfloat16": DType.BFLOAT16,
}  # fmt: skip


@dataclass(frozen=True)
class ArrayLayout:
    """Shape and strides as numpy has them (outermost first, strides in bytes).

    `address` is the device pointer; for a numpy array it is the offset in bytes from the start of
    the memory that the array is a view of, because that start is what the emulator aligns.
    """

    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    dtype_name: str
    itemsize: int
    address: int
    on_device: bool

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie row after row without a gap."""
        return self.strides_bytes == dense_strides(self.shape, self.itemsize)

    @property
    def transposed(self) -> ArrayLayout:
        """The layout of the array's transpose: the same memory with its dimensions reversed."""
        return replace(self, shape=self.shape[::-1], strides_bytes=self.strides_bytes[::-1])


def without_slices(layout: ArrayLayout, slice_nbytes: int) -> ArrayLayout:
    """The layout that an interleaved map speaks of: the innermost dimension is one slice.

    Raises TensorMapError where it is not, or where slices do not touch.
    """
    row = layout.shape[-1:] == (slice_nbytes // layout.itemsize,)
    if not row or layout.strides_bytes[-2:] not in (
        (slice_nbytes, layout.itemsize),
        (layout.itemsize,),
    ):
        raise TensorMapError(
            f"the innermost dimension of an array under interleave {slice_nbytes}B must be a slice "
            f"of {slice_nbytes // layout.itemsize} channels, one slice behind the other, got shape "
            f"{layout.shape} with strides {layout.strides_bytes}. Lay the channels out in slices: "
            "NC/8HWC8."
        )
    return replace(layout, shape=layout.shape[:-1], strides_bytes=layout.strides_bytes[:-1])


def dense_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a gapless row-major array, outermost first."""
    return tuple(itemsize * math.prod(shape[k + 1 :]) for k in range(len(shape)))


def read_layout(array: Any) -> ArrayLayout:
    """The layout of a numpy or CuPy array. Raises TensorMapError for anything else."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        dtype = np.dtype(getattr(array, "dtype", interface["typestr"]))
        shape = tuple(int(n) for n in interface["shape"])
        given = interface.get("strides")
        strides = dense_strides(shape, dtype.itemsize) if given is None else given
        return ArrayLayout(
            shape, tuple(strides), dtype.name, dtype.itemsize, interface["data"][0], True
        )
    if isinstance(array, np.ndarray):
        return ArrayLayout(
            array.shape,
            array.strides,
            array.dtype.name,
            array.itemsize,
            offset_in_owner(array),
            False,
        )
    raise TensorMapError(
        f"array must be a numpy or CuPy array, got {type(array).__name__}. "
        "Make one of it with numpy.asarray."
    )


def offset_in_owner(array: np.ndarray) -> int:
    """Bytes from the start of the array that owns the memory to the first element of `array`."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return address_of(array) - address_of(owner)


def address_of(array: np.ndarray) -> int:
    """Where the first element of a numpy array lies."""
    return array.__array_interface__["data"][0]


def dtype_of(layout: ArrayLayout) -> DType:
    """The map's element type for an array's; the copy moves bits, so a sign does not matter.

    Raises TensorMapError where there is none.
    """
    found = _BY_NUMPY_NAME.get(layout.dtype_name)
    if found is None:
        raise TensorMapError(
            f"dtype must be one that a tensor map has, got {layout.dtype_name}. View the array as "
            "one of its size (complex64 as two float32), or name the map's type with dtype=."
        )
    return found
