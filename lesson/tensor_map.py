"""Tensor maps: the parameters of `cuTensorMapEncodeTiled`, read from an array, checked, encoded.

A `TensorMap` is a plain record of what the driver is told: element type, shape, strides, box. It
holds any values, legal or not. `check` lists every rule that they break, `refuse` raises them as
one error, `encode` asks the driver for its 128 bytes. Dimensions are innermost first, as the
driver has them: x before y. Follows the CUDA Driver API, section Tensor Map Object Management.

Not here: im2col maps (`cuTensorMapEncodeIm2col`), and what a copy does with a map (the emulator).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lesson.errors import TensorMapError
from lesson.tensor_map_array import ArrayLayout, dtype_of, read_layout, without_slices
from lesson.tensor_map_broken import ARGUMENTS, BrokenRule
from lesson.tensor_map_enums import DType, Interleave, L2Promotion, OobFill, Swizzle, choose
from lesson.tensor_map_rules import RULES

__all__ = [
    "BrokenRule", "DType", "Interleave", "L2Promotion", "OobFill", "Swizzle", "TensorMap",
    "accepts", "check", "encode", "refuse",
]  # fmt: skip


@dataclass(frozen=True)
class TensorMap:
    """What `cuTensorMapEncodeTiled` is told; nothing is checked before `check`.

    dims, box and element_strides count elements, innermost first; strides_bytes gives the outer
    dimensions only, because the innermost one is always contiguous. `base` is the array whose
    first element the map starts at (numpy, CuPy, or a device address), `base_offset_bytes` is
    added to it. `given_rank` is for a rank that is not the number of dimensions. The enumerations
    may be given by name ("128B"); an unknown name raises TensorMapError, and so does an offset or
    a rank that is no whole number.
    """

    dtype: DType
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    interleave: Interleave = Interleave.NONE
    swizzle: Swizzle = Swizzle.NONE
    l2_promotion: L2Promotion = L2Promotion.NONE
    oob_fill: OobFill = OobFill.NONE
    base: Any = field(default=None, compare=False, repr=False)
    base_offset_bytes: int = 0
    given_rank: int | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "dtype", choose(DType, "dtype", self.dtype))
        put(self, "interleave", choose(Interleave, "interleave", self.interleave))
        put(self, "swizzle", choose(Swizzle, "swizzle", self.swizzle))
        put(self, "l2_promotion", choose(L2Promotion, "l2_promotion", self.l2_promotion))
        put(self, "oob_fill", choose(OobFill, "oob_fill", self.oob_fill))
        for name in ("dims", "strides_bytes", "box", "element_strides"):
            put(self, name, _whole_numbers(getattr(self, name)))
        if not self.element_strides:
            put(self, "element_strides", (1,) * len(self.dims))
        put(self, "base_offset_bytes", _whole_number("base_offset_bytes", self.base_offset_bytes))
        if self.given_rank is not None:
            put(self, "given_rank", _whole_number("given_rank", self.given_rank))

    def __getstate__(self) -> dict[str, Any]:
        # What an engine has worked out from a map it leaves on the map, and that stays here.
        return {name: value for name, value in self.__dict__.items() if name[0] != "_"}

    @property
    def rank(self) -> int:
        """Number of dimensions that the driver is told."""
        return len(self.dims) if self.given_rank is None else self.given_rank

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def address(self) -> int:
        """Address of the first element in bytes.

        On the device the true one; for a numpy array the offset from the start of its memory, and
        without a base the offset alone: both take it that the memory itself is aligned.
        """
        if self.base is None:
            return self.base_offset_bytes
        if isinstance(self.base, (int, np.integer)):
            return int(self.base) + self.base_offset_bytes
        return read_layout(self.base).address + self.base_offset_bytes

    @classmethod
    def from_array(
        cls,
        array: Any,
        box: tuple[int, ...],
        *,
        dtype: DType | str | None = None,
        element_strides: tuple[int, ...] = (),
        interleave: Interleave | str = Interleave.NONE,
        swizzle: Swizzle | str = Swizzle.NONE,
        l2_promotion: L2Promotion | str = L2Promotion.NONE,
        oob_fill: OobFill | str = OobFill.NONE,
    ) -> TensorMap:
        """The map of a numpy or CuPy array, of a view of one too.

        Shape, strides and start are the array's own; `box` counts elements, innermost first. Name
        `dtype` where the array only holds the bits (uint16 for BFLOAT16, float32 for TFLOAT32).
        Under interleave the array's innermost dimension is one slice of channels, and no dimension
        of the map. Raises TensorMapError where no map can say what the array is: its innermost
        dimension has gaps, or its elements are no type of a map. Other rules wait for `check`.
        """
        layout = read_layout(array)
        chosen = _element_type(layout, dtype)
        _refuse_gaps(layout)
        interleave = choose(Interleave, "interleave", interleave)
        if interleave.slice_nbytes:
            layout = without_slices(layout, interleave.slice_nbytes)
        return cls(
            dtype=chosen,
            dims=layout.shape[::-1],
            strides_bytes=layout.strides_bytes[:-1][::-1],
            box=box,
            element_strides=element_strides,
            interleave=interleave,
            swizzle=swizzle,  # type: ignore[arg-type]
            l2_promotion=l2_promotion,  # type: ignore[arg-type]
            oob_fill=oob_fill,  # type: ignore[arg-type]
            base=array,
        )


def _element_type(layout: ArrayLayout, dtype: DType | str | None) -> DType:
    """The type that was named, if it has the size of the array's; else the array's."""
    chosen = dtype_of(layout) if dtype is None else choose(DType, "dtype", dtype)
    if chosen.itemsize != layout.itemsize and not chosen.is_packed:
        raise TensorMapError(
            f"dtype must have the array's {layout.itemsize} bytes an element, got "
            f"{chosen.value} ({chosen.itemsize} bytes). View the array as another type first."
        )
    return chosen


def _refuse_gaps(layout: ArrayLayout) -> None:
    """Raises where neighbours in a row do not touch: a map cannot say so."""
    if not layout.shape or layout.shape[-1] < 2 or layout.strides_bytes[-1] == layout.itemsize:
        return
    cure = (
        "map its transpose, array.T, and give x and y the other way round."
        if layout.strides_bytes[0] == layout.itemsize
        else "copy it with ascontiguousarray, or map the array that it is a view of."
    )
    raise TensorMapError(
        f"the innermost stride of the array must be its itemsize, {layout.itemsize} bytes, got "
        f"{layout.strides_bytes[-1]}. A tensor map has no stride for dimension 0: {cure}"
    )


def _whole_number(name: str, value: Any) -> int:
    """A Python int; raises TensorMapError for what is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise TensorMapError(
            f"{name} must be a whole number, got {value!r}. Pass an int."
        ) from None


def _whole_numbers(values: Any) -> tuple[Any, ...]:
    """A tuple of Python ints; what is no whole number stays as it is, for `check` to name."""
    if isinstance(values, (int, np.integer)):
        return (int(values),)
    if not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        return (values,)
    out = []
    for value in values:
        try:
            out.append(operator.index(value))
        except TypeError:
            out.append(value)
    return tuple(out)


def check(tmap: TensorMap, address: int | None = None) -> list[BrokenRule]:
    """Every rule that the map breaks, in the order of the driver's arguments; empty if legal.

    `address` is that of the first element, in bytes; by default the map's own.
    """
    where = tmap.address if address is None else address
    return [replace(b, name=rule.__name__) for rule in RULES for b in rule(tmap, where)]


def accepts(tmap: TensorMap, address: int | None = None) -> bool:
    """Whether the driver would encode this map."""
    return not check(tmap, address)


def refuse(tmap: TensorMap, address: int | None = None) -> None:
    """Raises TensorMapError with one line a broken rule; does nothing for a legal map."""
    broken = check(tmap, address)
    if broken:
        raise TensorMapError("\n".join(str(b) for b in broken), tuple(broken))


def encode(tmap: TensorMap) -> np.ndarray:
    """The driver's 128 bytes for this map, as 16 x uint64. Needs a GPU and an array on it.

    Raises TensorMapError where the driver refuses, with every rule that explains why.
    """
    from cuda.bindings import driver

    address = tmap.address
    if not _can_be_sent(tmap, address):
        refuse(tmap, address)
    answer = "no answer"
    held = []
    for _ in range(8):
        error, made = driver.cuTensorMapEncodeTiled(*_driver_arguments(driver, tmap, address))
        answer = getattr(error, "name", str(error))
        if answer == "CUDA_SUCCESS":
            return np.array([int(word) for word in made.opaque], np.uint64)
        refuse(tmap, address)
        # The driver wants its result at a multiple of 64 and cuda.bindings does not see to it: an
        # object of the same kind, held, makes the next one lie elsewhere.
        held.append(driver.CUtensorMap())
    raise TensorMapError(
        f"the tensor map must be one that the driver accepts, got {answer} though no known rule is "
        "broken. Is a CUDA context current, and the device of compute capability 9.0 or higher?"
    )


def _can_be_sent(tmap: TensorMap, address: int) -> bool:
    """Whether the arguments are numbers of C's types, as many of each as the driver will read."""
    if not (isinstance(tmap.rank, int) and 0 <= tmap.rank <= 5 and isinstance(address, int)):
        return False
    values = [(address, 64)]
    for name in ARGUMENTS:
        entries = getattr(tmap, name)
        if len(entries) != tmap.rank - (name == "strides_bytes"):
            return False
        values += [(n, 64 if name in ("dims", "strides_bytes") else 32) for n in entries]
    return all(isinstance(n, int) and 0 <= n < 1 << bits for n, bits in values)


def _driver_arguments(driver: Any, tmap: TensorMap, address: int) -> tuple[Any, ...]:
    """The arguments of `cuda.bindings.driver.cuTensorMapEncodeTiled`."""

    def member(enumeration: str, prefix: str, choice: Any) -> Any:
        return getattr(getattr(driver, enumeration), f"CU_TENSOR_MAP_{prefix}_{choice.value}")

    # A rank-1 map has no strides, yet cuda.bindings turns an empty list into a null pointer, which
    # the driver refuses: one that it does not read takes its place.
    strides = tmap.strides_bytes or (16,)
    return (
        member("CUtensorMapDataType", "DATA_TYPE", tmap.dtype),
        tmap.rank,
        address,
        [driver.cuuint64_t(n) for n in tmap.dims],
        [driver.cuuint64_t(n) for n in strides],
        [driver.cuuint32_t(n) for n in tmap.box],
        [driver.cuuint32_t(n) for n in tmap.element_strides],
        member("CUtensorMapInterleave", "INTERLEAVE", tmap.interleave),
        member("CUtensorMapSwizzle", "SWIZZLE", tmap.swizzle),
        member("CUtensorMapL2promotion", "L2_PROMOTION", tmap.l2_promotion),
        member("CUtensorMapFloatOOBfill", "FLOAT_OOB_FILL", tmap.oob_fill),
    )
