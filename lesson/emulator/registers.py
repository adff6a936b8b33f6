"""Types and storage of registers, and the conversions between a register and an instruction's type.

PTX ISA, "Fundamental Types" and "Operand Size Exceeding Instruction-Type Size". A register holds
raw bits: bool for .pred, else an unsigned integer of 16, 32 or 64 bits; 8-bit values live in 16.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lesson.emulator.ptx import Imm

Values = NDArray[np.generic]
Convert = Callable[[Values], Values]

BOOL, U16, U32, U64 = (np.dtype(t) for t in (np.bool_, np.uint16, np.uint32, np.uint64))
_WIDTH_DTYPE = {8: U16, 16: U16, 32: U32, 64: U64}
WIDTH = {
    **{f"{kind}{width}": width for kind in "bus" for width in (8, 16, 32, 64)},
    **{"f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32, "f32": 32, "f64": 64, "tf32": 32},
    **{
        "e4m3x2": 16,
        "e5m2x2": 16,
        "u16x2": 32,
        "s16x2": 32,
        "f32x2": 64,
        "ue8m0x2": 16,
        "s2f6x2": 16,
    },
}
_FLOAT = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def storage(kind: str) -> np.dtype:
    """The dtype that holds a value of a PTX type; KeyError for a type that no register has."""
    return BOOL if kind == "pred" else _WIDTH_DTYPE[WIDTH[kind]]


def immediate(value: Imm, kind: str) -> Values:
    """A constant as the bits of a type, shape (1,)."""
    dtype = storage(kind)
    if kind == "pred":
        return np.array([bool(value.value)])
    if value.kind == "int" and kind not in _FLOAT and kind != "bf16":
        return np.array([int(value.value) & (1 << WIDTH[kind]) - 1], dtype)
    if value.kind == "f32bits" and WIDTH[kind] == 32:
        return np.array([value.value], dtype)
    if value.kind == "f64bits" and WIDTH[kind] == 64:
        return np.array([value.value], dtype)
    if value.kind == "int" and kind in ("f16", "bf16"):
        return np.array([int(value.value) & 0xFFFF], dtype)
    number = _number(value)
    if kind not in _FLOAT:
        kind = {32: "f32", 64: "f64"}[WIDTH[kind]]
    with np.errstate(all="ignore"):
        return np.array([number], _FLOAT[kind]).view(dtype)


def _number(value: Imm) -> float:
    """The number that a floating point constant means."""
    if value.kind == "f32bits":
        return float(np.array([value.value], np.uint32).view(np.float32)[0])
    if value.kind == "f64bits":
        return float(np.array([value.value], np.uint64).view(np.float64)[0])
    return float(value.value)


def cut(register: np.dtype, kind: str) -> Convert | None:
    """From a register's bits to an operand of a type: the low bits."""
    dtype = storage(kind)
    if kind.endswith("8") and WIDTH[kind] == 8:
        return lambda values: (values & values.dtype.type(0xFF)).astype(U16)
    return None if register == dtype else lambda values: values.astype(dtype)


def extend(kind: str, register: np.dtype) -> Convert | None:
    """From a result of a type to a register, which may be wider: by sign for s8, s16 and s32."""
    dtype = storage(kind)
    if kind == "s8":
        signed = np.dtype(f"i{register.itemsize}")
        return lambda values: values.astype(np.uint8).view(np.int8).astype(signed).view(register)
    if register == dtype:
        return None
    if kind in ("s16", "s32") and register.itemsize > dtype.itemsize:
        narrow, wide = np.dtype(f"i{dtype.itemsize}"), np.dtype(f"i{register.itemsize}")
        return lambda values: values.view(narrow).astype(wide).view(register)
    return lambda values: values.astype(register)
