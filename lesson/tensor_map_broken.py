"""A broken rule of the tensor map as a record and as a sentence, and what all rules share.

The sentence follows the package's grammar: thing must be rule, got value. Cure. Judges nothing
itself. Numbers are those of the CUDA Driver API, `cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lesson.tensor_map import TensorMap

SECTION = "CUDA Driver API, Tensor Map Object Management, cuTensorMapEncodeTiled"
MAX_RANK = 5
ADDRESS_BITS = 57
MAX_DIM = 1 << 32
STRIDE_LIMIT_BYTES = 1 << 40
MAX_BOX_DIM = 256
MAX_ELEMENT_STRIDE = 8
UNIT_NBYTES = 16
BOX_LIMIT_NBYTES = 228 << 10
ARGUMENTS = {
    "dims": "global_dim",
    "strides_bytes": "global_strides",
    "box": "box_dim",
    "element_strides": "element_strides",
}


@dataclass(frozen=True)
class BrokenRule:
    """One rule that one argument breaks: `argument` must be `rule`, got `value`. `cure`

    `detail` says where the value comes from, `section` which text states the rule, `name` is the
    rule's function, `nearest` the nearest legal value where there is one.
    """

    argument: str
    value: Any
    rule: str
    cure: str
    section: str
    detail: str = ""
    name: str = ""
    nearest: int | str | None = None

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.argument} must be {self.rule}, got {self.value}{detail}. {self.cure}"


Rule = Callable[["TensorMap", int], Iterator[BrokenRule]]


def whole(values: tuple[Any, ...]) -> Iterator[tuple[int, int]]:
    """The entries that are whole numbers, each with its place."""
    return ((k, value) for k, value in enumerate(values) if isinstance(value, int))


def multiple_above(value: int, unit: int) -> int:
    """The smallest multiple of `unit` that is not below `value`."""
    return -(-value // unit) * unit


def elements(count: int, tmap: TensorMap) -> str:
    """Such as `5 x float32`."""
    return f"{count} x {tmap.dtype.value.lower()}"
