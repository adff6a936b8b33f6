"""The enumerations of `cuTensorMapEncodeTiled`, by the tails of the driver's names.

`Swizzle("128B")` is `CU_TENSOR_MAP_SWIZZLE_128B`, `DType("FLOAT32")` is
`CU_TENSOR_MAP_DATA_TYPE_FLOAT32`, and so on (CUDA Driver API, Tensor Map Object Management). Holds
names and sizes; rules are in `tensor_map_rules`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from lesson.errors import TensorMapError


class DType(Enum):
    """Element type, `CUtensorMapDataType`."""

    UINT8 = "UINT8"
    UINT16 = "UINT16"
    UINT32 = "UINT32"
    INT32 = "INT32"
    UINT64 = "UINT64"
    INT64 = "INT64"
    FLOAT16 = "FLOAT16"
    FLOAT32 = "FLOAT32"
    FLOAT64 = "FLOAT64"
    BFLOAT16 = "BFLOAT16"
    FLOAT32_FTZ = "FLOAT32_FTZ"
    TFLOAT32 = "TFLOAT32"
    TFLOAT32_FTZ = "TFLOAT32_FTZ"
    PACKED_16U4_ALIGN8B = "16U4_ALIGN8B"
    PACKED_16U4_ALIGN16B = "16U4_ALIGN16B"
    PACKED_16U6_ALIGN16B = "16U6_ALIGN16B"

    @property
    def itemsize(self) -> int:
        """Bytes of one element; a packed type counts 1, as no element of it is a whole byte."""
        return _ITEMSIZE.get(self.value, 1)

    @property
    def is_float(self) -> bool:
        """Whether out-of-bounds elements may be filled with NaN."""
        return "FLOAT" in self.value

    @property
    def is_packed(self) -> bool:
        """Whether 16 elements of 4 or 6 bits are packed together."""
        return self.value.startswith("16U")


_ITEMSIZE = {
    "UINT16": 2, "FLOAT16": 2, "BFLOAT16": 2,
    "UINT32": 4, "INT32": 4, "FLOAT32": 4, "FLOAT32_FTZ": 4, "TFLOAT32": 4, "TFLOAT32_FTZ": 4,
    "UINT64": 8, "INT64": 8, "FLOAT64": 8,
}  # fmt: skip


class Interleave(Enum):
    """Layout of channels in slices of 16 or 32 bytes, `CUtensorMapInterleave`."""

    NONE = "NONE"
    INTERLEAVE_16B = "16B"
    INTERLEAVE_32B = "32B"

    @property
    def slice_nbytes(self) -> int:
        """Bytes of the channels that lie together, which dimension 0 counts; 0 without."""
        return int(self.value[:2]) if self is not Interleave.NONE else 0


class Swizzle(Enum):
    """Permutation of 16-byte units in shared memory, `CUtensorMapSwizzle`."""

    NONE = "NONE"
    SWIZZLE_32B = "32B"
    SWIZZLE_64B = "64B"
    SWIZZLE_128B = "128B"
    SWIZZLE_128B_ATOM_32B = "128B_ATOM_32B"
    SWIZZLE_128B_ATOM_32B_FLIP_8B = "128B_ATOM_32B_FLIP_8B"
    SWIZZLE_128B_ATOM_64B = "128B_ATOM_64B"

    @property
    def span_nbytes(self) -> int:
        """The swizzle span: the most bytes that a box row may have; 0 without swizzle."""
        return int(self.value.split("B")[0]) if self is not Swizzle.NONE else 0


class L2Promotion(Enum):
    """How much L2 fetches at a time, `CUtensorMapL2promotion`; no bit of a result depends on it."""

    NONE = "NONE"
    L2_64B = "L2_64B"
    L2_128B = "L2_128B"
    L2_256B = "L2_256B"


class OobFill(Enum):
    """What a load puts where the box leaves the tensor, `CUtensorMapFloatOOBfill`."""

    NONE = "NONE"
    NAN_REQUEST_ZERO_FMA = "NAN_REQUEST_ZERO_FMA"


Choice = TypeVar("Choice", bound=Enum)


def choose(kind: type[Choice], argument: str, value: Any) -> Choice:
    """The member of `kind` that `value` names: a member, a tail, or the driver's whole name.

    Raises TensorMapError with the names there are.
    """
    if isinstance(value, kind):
        return value
    tail = str(getattr(value, "name", value)).upper()
    for member in kind:
        if tail == member.value or (
            tail.startswith("CU_TENSOR_MAP_") and tail.endswith(_TAIL[kind.__name__] + member.value)
        ):
            return member
    names = ", ".join(member.value for member in kind)
    raise TensorMapError(f"{argument} must be one of {names}, got {value!r}.")


_TAIL = {
    "DType": "_DATA_TYPE_",
    "Interleave": "_INTERLEAVE_",
    "Swizzle": "_SWIZZLE_",
    "L2Promotion": "_L2_PROMOTION_",
    "OobFill": "_OOB_FILL_",
}
