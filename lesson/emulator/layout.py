"""Where variables lie: kernel parameters, the frame of a device function, shared memory.

PTX ISA, "Kernel Function Parameters" and "Device Function Parameters". A frame begins with the
results and the parameters, so that a caller knows where they are from the prototype alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lesson.emulator.ptx import Function, Variable
from lesson.errors import LimitExceeded

MAX_FRAME_NBYTES = 512 << 10


class Place(NamedTuple):
    """Byte offset and size of a variable."""

    offset: int
    nbytes: int


def _aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align


def param_layout(formals: Iterable[Variable], offset: int = 0) -> dict[str, Place]:
    """Variables one behind the other, each at its alignment."""
    places: dict[str, Place] = {}
    for formal in formals:
        offset = _aligned(offset, max(formal.align, 1))
        places[formal.name] = Place(offset, formal.nbytes)
        offset += formal.nbytes
    return places


def end_of(places: dict[str, Place]) -> int:
    """First byte behind all variables."""
    return max((place.offset + place.nbytes for place in places.values()), default=0)


def call_layout(
    returns: tuple[Variable, ...], params: tuple[Variable, ...]
) -> tuple[list[Place], list[Place]]:
    """Where a callee's results and parameters lie in its frame; offset -1 for one in a register."""
    spots: list[Place] = []
    offset = 0
    for formal in (*returns, *params):
        if formal.space == "param":
            offset = _aligned(offset, max(formal.align, 1))
            spots.append(Place(offset, formal.nbytes))
            offset += formal.nbytes
        else:
            spots.append(Place(-1, 0))
    return spots[: len(returns)], spots[len(returns) :]


def frame_layout(function: Function) -> dict[str, Place]:
    """Results and parameters of a device function, then local variables, parameters of calls."""
    formals = () if function.is_entry else (*function.returns, *function.params)
    places = param_layout(v for v in formals if v.space == "param")
    inner = [v for v in function.variables.values() if v.space in ("local", "param")]
    places |= param_layout(inner, end_of(places))
    if end_of(places) > MAX_FRAME_NBYTES:
        raise LimitExceeded(
            f"local memory of {function.name} must be at most {MAX_FRAME_NBYTES} bytes a thread, "
            f"got {end_of(places)}. "
            "Make its local arrays smaller."
        )
    return places
