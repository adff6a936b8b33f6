"""Kernel arguments as plain bytes: what a launch on the GPU needs, in this process or in another.

The arguments are those that the emulator takes: numpy arrays (changed in place, as device arrays
are; views of one array share its memory), TensorMap records whose `base` is such an array, numpy
scalars, Python numbers, and bytes for a struct by value. `pack` turns them into the memory of each
array and a short record an argument, which can be pickled; nothing here knows of CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lesson.errors import LaunchError
from lesson.tensor_map import TensorMap

_TYPES = re.compile(r"\.(pred|[busf](?:8|16|32|64)|f16x2|b128)\Z")
_MAP_NBYTES = 128


@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter as the PTX declares it; `type` is "b8" for a struct by value."""

    type: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of a byte of a buffer."""

    buffer: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class MapOver:
    """A tensor map over a buffer: the driver's 128 bytes by value, or their address."""

    tmap: TensorMap  # without its base
    buffer: int
    offset_bytes: int
    by_value: bool


@dataclass(frozen=True, slots=True)
class Value:
    """The bytes of a number or struct."""

    data: bytes


Spec = Pointer | MapOver | Value


@dataclass(slots=True)
class Packed:
    """The memory of each distinct array as flat bytes (views of it), and the arguments."""

    buffers: list[np.ndarray]
    specs: list[Spec]


def parameters(ptx: str, kernel: str) -> tuple[Parameter, ...]:
    """What the PTX declares that a kernel takes."""
    entry = re.search(rf"\.entry\s+{re.escape(kernel)}\s*(?:\(([^)]*)\))?", ptx)
    if not entry:
        names = ", ".join(re.findall(r"\.entry\s+([\w$]+)", ptx)) or "none"
        raise LaunchError(
            f"kernel must be one that the PTX holds, got {kernel!r}. It holds: {names}. "
            'Declare it extern "C" __global__, so that its name stays as written.'
        )
    text = re.sub(r"//[^\n]*", "", entry[1] or "")
    return tuple(_parameter(part) for part in text.split(",") if part.strip())


def pack(args: Sequence[Any], declared: Sequence[Parameter], kernel: str) -> Packed:
    """Bytes for every argument; LaunchError names the first that does not fit its parameter."""
    if len(args) != len(declared):
        raise LaunchError(
            f"arguments of {kernel} must be as many as its parameters ({len(declared)}), got "
            f"{len(args)}. Pass one for each, in order."
        )
    packed = Packed([], [])
    owners: dict[int, int] = {}
    for position, (arg, parameter) in enumerate(zip(args, declared, strict=True)):
        where = f"argument {position} of {kernel}"
        packed.specs.append(_spec(arg, parameter, where, packed, owners))
    return packed


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array whose memory a view looks at."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def address_of(array: np.ndarray) -> int:
    """Where the first element lies."""
    return array.__array_interface__["data"][0]


def _parameter(text: str) -> Parameter:
    """From `.param .align 64 .b8 name[128]`, `.param .u64 .ptr .global .align 1 name` and so on."""
    words = text.replace("[", " [").split()
    types = [found[1] for word in words if (found := _TYPES.match(word))]
    count = re.search(r"\[\s*(\d+)\s*\]", text)
    if not types:
        raise LaunchError(f"a parameter must have a PTX type, got `{text.strip()}`. Recompile it.")
    item = {"pred": 8, "f16x2": 32}.get(types[0]) or int(re.sub(r"\D", "", types[0]))
    return Parameter(types[0], item // 8 * int(count[1]) if count else item // 8)


def _spec(
    arg: Any, parameter: Parameter, where: str, packed: Packed, owners: dict[int, int]
) -> Spec:
    if isinstance(arg, TensorMap):
        return _map(arg, parameter, where, packed, owners)
    if isinstance(arg, np.ndarray):
        _require(parameter.nbytes == 8, where, "a number or struct", "an array (a pointer)")
        return _pointer(arg, where, packed, owners)
    if isinstance(arg, bytes | bytearray | np.void):
        return Value(_sized(bytes(arg), parameter, where))
    if isinstance(arg, np.generic):
        return Value(_sized(arg.tobytes(), parameter, where))
    if isinstance(arg, bool | int | float):
        return Value(_number(arg, parameter, where))
    device = getattr(arg, "__cuda_array_interface__", None)
    if device is not None:
        return Value(int(device["data"][0]).to_bytes(8, "little"))
    raise LaunchError(
        f"{where} must be a numpy array, TensorMap, number or bytes, got {type(arg).__name__}. "
        "Convert it first."
    )


def _pointer(array: np.ndarray, where: str, packed: Packed, owners: dict[int, int]) -> Pointer:
    owner = owner_of(array)
    _require(not owner.dtype.hasobject, where, "an array of numbers", f"dtype {array.dtype}")
    _require(owner.flags.forc, where, "an array without gaps", f"strides {owner.strides}")
    if id(owner) not in owners:
        flat = (owner if owner.flags.c_contiguous else owner.T).reshape(-1).view(np.uint8)
        owners[id(owner)] = len(packed.buffers)
        packed.buffers.append(flat)
    return Pointer(owners[id(owner)], address_of(array) - address_of(owner))


def _map(
    tmap: TensorMap, parameter: Parameter, where: str, packed: Packed, owners: dict[int, int]
) -> MapOver:
    _require(
        parameter.nbytes in (8, _MAP_NBYTES), where, f"{parameter.nbytes} bytes", "a tensor map"
    )
    by_value = parameter.nbytes == _MAP_NBYTES
    if isinstance(tmap.base, np.ndarray):
        at = _pointer(tmap.base, where, packed, owners)
        return MapOver(replace(tmap, base=None), at.buffer, at.offset_bytes, by_value)
    device = getattr(tmap.base, "__cuda_array_interface__", None)
    if device is None:
        raise LaunchError(
            f"{where} must be a tensor map over an array, got one whose base is "
            f"{type(tmap.base).__name__}. Give TensorMap(base=array)."
        )
    return MapOver(replace(tmap, base=int(device["data"][0])), -1, 0, by_value)


def _number(number: float, parameter: Parameter, where: str) -> bytes:
    kind, nbytes = parameter.type[0], parameter.nbytes
    if kind == "f":
        try:
            with np.errstate(over="ignore"):  # too large for a float32 is infinity, as in C
                return np.array(float(number), f"<f{nbytes}").tobytes()
        except OverflowError:
            _require(
                False, where, f"a .{parameter.type}", f"an integer of {number.bit_length()} bits"
            )
    _require(not isinstance(number, float), where, f"an integer (.{parameter.type})", str(number))
    bits = 8 * nbytes
    _require(-(1 << (bits - 1)) <= number < 1 << bits, where, f"a .{parameter.type}", str(number))
    return (int(number) % (1 << bits)).to_bytes(nbytes, "little")


def _sized(data: bytes, parameter: Parameter, where: str) -> bytes:
    rule = f"{parameter.nbytes} bytes (.{parameter.type})"
    _require(len(data) == parameter.nbytes, where, rule, f"{len(data)} bytes")
    return data


def _require(holds: bool, where: str, rule: str, got: str) -> None:
    if not holds:
        raise LaunchError(f"{where} must be {rule}, got {got}. Pass what the kernel declares.")
