"""Kernel arguments: into global memory and parameter space, and back.

Follows the CUDA Driver API, `cuLaunchKernel`, and the PTX ISA, "Kernel Function Parameters". An
array becomes a pointer to its copy in the arena, and is written back when the launch ends. Arrays
that are views of one owner share its memory, as on a device. A tensor map becomes 128 opaque bytes:
a magic word, then its number. Where the parameter is a pointer, they lie in global memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lesson.emulator.memory import GlobalMemory, Segment
from lesson.emulator.words import shown
from lesson.errors import LaunchError
from lesson.tensor_map import TensorMap, refuse

if TYPE_CHECKING:
    from lesson.emulator.ptx import Variable

MAP_NBYTES = 128
MAP_MAGIC = 0x54454E534F524D41
POINTER_NBYTES = 8


def _owner(array: NDArray[Any]) -> NDArray[Any]:
    """The array whose memory this one is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _span(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of an array that owns its memory, in memory order."""
    if array.dtype.hasobject:
        raise LaunchError(
            f"an array must hold numbers, got Python objects (dtype {array.dtype}). Convert it "
            "with astype first."
        )
    if array.size and not array.flags.forc:
        raise LaunchError(
            "an array must be contiguous, or a view of one that is, got strides "
            f"{array.strides}. Copy it first."
        )
    return array.reshape(-1, order="A").view(np.uint8) if array.size else np.zeros(0, np.uint8)


@dataclass(slots=True)
class Held:
    """One array in the arena."""

    owner: NDArray[Any]
    data: NDArray[np.uint8]
    segment: Segment


@dataclass(slots=True)
class Arguments:
    """What a launch passes: blocks of memory, tensor maps, and the bytes of the parameters."""

    held: dict[int, Held] = field(default_factory=dict)
    maps: list[TensorMap] = field(default_factory=list)
    map_bases: list[tuple[Segment, int]] = field(default_factory=list)
    maps_in_memory: list[tuple[Segment, bytes]] = field(default_factory=list)

    def hold(self, memory: GlobalMemory, array: NDArray[Any], name: str) -> tuple[Segment, int]:
        """The allocation of an array and the offset of its first element there."""
        owner = _owner(array)
        found = self.held.get(id(owner))
        if found is None:
            data = _span(owner)
            segment = memory.allocate(data.size, name)
            found = self.held[id(owner)] = Held(owner, data, segment)
        start = owner.__array_interface__["data"][0]
        return found.segment, array.__array_interface__["data"][0] - start

    @property
    def count(self) -> int:
        """How many tensor maps the launch was given."""
        return len(self.maps)

    def tensor(self, number: int) -> tuple[TensorMap, Segment, int]:
        """A tensor map, the allocation of its array, and the offset of its first element there."""
        return self.maps[number], *self.map_bases[number]

    def copy_in(self, memory: GlobalMemory) -> None:
        """Arrays to the arena."""
        for each in self.held.values():
            memory.bytes_of(each.segment)[:] = each.data
        for segment, data in self.maps_in_memory:
            memory.bytes_of(segment)[:] = np.frombuffer(data, np.uint8)

    def copy_out(self, memory: GlobalMemory) -> None:
        """The arena to the arrays; one that may not be written must not have changed."""
        for each in self.held.values():
            if not each.segment.is_written:
                continue
            now = memory.bytes_of(each.segment)
            if each.data.flags.writeable:
                each.data[:] = now
            elif not np.array_equal(each.data, now):
                raise LaunchError(
                    f"{each.segment.name} must be writeable, got a read-only array that the "
                    "kernel wrote."
                )


def pack(
    arguments: Arguments, memory: GlobalMemory, formals: tuple[Variable, ...], args: tuple[Any, ...]
) -> list[bytes]:
    """Each argument as bytes of parameter space; reserves the memory that they point to."""
    if len(args) != len(formals):
        names = ", ".join(formal.name for formal in formals) or "none"
        raise LaunchError(
            f"a launch must pass {len(formals)} arguments ({names}), got {len(args)}."
        )
    return [
        _packed(arguments, memory, n, formal, arg)
        for n, (formal, arg) in enumerate(zip(formals, args, strict=True))
    ]


def _packed(
    arguments: Arguments, memory: GlobalMemory, n: int, formal: Variable, arg: Any
) -> bytes:
    what = f"argument {n} ({formal.name})"
    if isinstance(arg, np.ndarray):
        segment, offset = arguments.hold(memory, arg, what)
        data = (segment.address + offset).to_bytes(POINTER_NBYTES, "little")
    elif isinstance(arg, TensorMap):
        data = map_bytes(arguments, memory, arg, what)
        if formal.nbytes == POINTER_NBYTES:
            segment = memory.allocate(MAP_NBYTES, f"the tensor map of {what}")
            arguments.maps_in_memory.append((segment, data))
            data = segment.address.to_bytes(POINTER_NBYTES, "little")
    elif isinstance(arg, np.generic):
        data = arg.tobytes()
    elif isinstance(arg, bytes | bytearray):
        data = bytes(arg)
    elif arg is None:
        data = bytes(POINTER_NBYTES)
    else:
        data = _number_bytes(arg, formal, what)
    if len(data) != formal.nbytes:
        raise LaunchError(
            f"{what} must be {formal.nbytes} bytes (.{formal.type}), got {len(data)} bytes from "
            f"a {type(arg).__name__}. "
            "Pass a numpy scalar of the kernel's own type."
        )
    return data


def _number_bytes(arg: Any, formal: Variable, what: str) -> bytes:
    """A Python number as the parameter's type has it."""
    if isinstance(arg, float):
        if formal.nbytes in (4, 8):
            return np.array(arg, f"<f{formal.nbytes}").tobytes()
    elif isinstance(arg, int):
        if formal.type in ("f32", "f64"):
            return np.array(arg, f"<f{formal.nbytes}").tobytes()
        if -(1 << 8 * formal.nbytes - 1) <= arg < 1 << 8 * formal.nbytes:
            return (arg & (1 << 8 * formal.nbytes) - 1).to_bytes(formal.nbytes, "little")
        raise LaunchError(f"{what} must fit in {formal.nbytes} bytes, got {shown(arg)}.")
    raise LaunchError(
        f"{what} must be an array, a tensor map, a number or bytes, got {type(arg).__name__} for "
        f"{formal.nbytes} bytes (.{formal.type})."
    )


def map_bytes(arguments: Arguments, memory: GlobalMemory, tmap: TensorMap, what: str) -> bytes:
    """The opaque bytes of a tensor map, which must be one that the driver encodes."""
    if not isinstance(tmap.base, np.ndarray):
        raise LaunchError(
            f"the tensor map of {what} must have a numpy array as its base, got "
            f"{type(tmap.base).__name__}."
        )
    if not tmap.__dict__.get("_is_legal"):  # it is frozen: what was legal once stays so
        refuse(tmap)
        object.__setattr__(tmap, "_is_legal", True)
    segment, offset = arguments.hold(memory, tmap.base, f"the tensor of {what}")
    number = len(arguments.maps)
    arguments.maps.append(tmap)
    arguments.map_bases.append((segment, offset + tmap.base_offset_bytes))
    words = np.zeros(MAP_NBYTES // 8, np.uint64)
    words[:2] = MAP_MAGIC, number
    return words.tobytes()
