"""Integers packed in 32 bits: two 16-bit lanes, and dot products of bytes.

Models add, min and max of .u16x2 and .s16x2 (with .relu), dp4a and dp2a. Follows the PTX ISA,
"Integer Arithmetic Instructions".
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.forms import Fn, Form, Table, is_signed, on_lanes

TABLE = Table()
define = TABLE.define

PAIRS = ("u16x2", "s16x2")


def lane_dtype(form: Form) -> type[np.generic]:
    return np.int16 if form.signed else np.uint16


@define("add", PAIRS, "T T -> T")
def add(form: Form) -> Fn:
    return on_lanes(np.add, np.uint16)


@define("min", PAIRS, "T T -> T", flags="relu")
def minimum(form: Form) -> Fn | None:
    return extremum(form, np.minimum)


@define("max", PAIRS, "T T -> T", flags="relu")
def maximum(form: Form) -> Fn | None:
    return extremum(form, np.maximum)


def extremum(form: Form, fn: np.ufunc) -> Fn | None:
    if "relu" not in form.flags:
        return on_lanes(fn, lane_dtype(form))
    if not form.signed:
        return None
    return on_lanes(lambda a, b: np.maximum(fn(a, b), np.int16(0)), np.int16)


def parts(a: np.ndarray, kind: str, nbits: int) -> np.ndarray:
    """The 8- or 16-bit parts of 32-bit words as int64, of shape (n, parts), lowest first."""
    dtype = np.dtype(f"{'i' if is_signed(kind) else 'u'}{nbits // 8}")
    return np.ascontiguousarray(a).view(dtype).reshape(len(a), -1).astype(np.int64)


def dot(x: np.ndarray, y: np.ndarray, c: np.ndarray) -> np.ndarray:
    """c plus the sum of products, modulo 2**32."""
    return (x * y).sum(axis=-1).astype(np.uint32) + c


@define("dp4a", ("u32", "s32"), "U T b32 -> b32")
def dp4a(form: Form) -> Fn:
    """Four products of bytes; each operand has its own signedness."""
    a_kind, b_kind = form.types
    return lambda a, b, c: dot(parts(a, a_kind, 8), parts(b, b_kind, 8), c)


@define("dp2a.lo dp2a.hi", ("u32", "s32"), "U T b32 -> b32")
def dp2a(form: Form) -> Fn:
    """Two products of a half word of a with a byte of the lower or the upper half of b."""
    a_kind, b_kind = form.types
    half = slice(2, 4) if form.name.endswith("hi") else slice(0, 2)
    return lambda a, b, c: dot(parts(a, a_kind, 16), parts(b, b_kind, 8)[:, half], c)
