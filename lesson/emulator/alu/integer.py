"""Integer arithmetic on 16, 32 and 64 bits.

Models add, sub, mul, mad, mul24, mad24, sad, div, rem, abs, neg, min and max, with .sat and .relu.
Carry chains are in `carry`, packed types in `packed`. Follows the PTX ISA, "Integer Arithmetic
Instructions". What PTX leaves open (division by zero) is what the compiler's division routine gives
for 32 and 64 bits: all bits set.
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.forms import INTS, SIGNED, UNSIGNED, Fn, Form, Table, on_signed

TABLE = Table()
define = TABLE.define

LOW32 = np.uint64(0xFFFFFFFF)
BY32 = np.uint64(32)
S32_MIN, S32_MAX = -(1 << 31), (1 << 31) - 1


def clamp_s32(wide: np.ndarray) -> np.ndarray:
    """Saturate int64 values to s32, as raw bits."""
    return np.clip(wide, S32_MIN, S32_MAX).astype(np.int32).view(np.uint32)


def as_s64(a: np.ndarray) -> np.ndarray:
    """The values of raw s32 bits, widened."""
    return a.view(np.int32).astype(np.int64)


def multiply_high_u64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper 64 bits of a 128-bit product, from four products of 32-bit halves."""
    a_low, a_high, b_low, b_high = a & LOW32, a >> BY32, b & LOW32, b >> BY32
    cross, other = a_low * b_high, a_high * b_low
    middle = ((a_low * b_low) >> BY32) + (cross & LOW32) + (other & LOW32)
    return a_high * b_high + (cross >> BY32) + (other >> BY32) + (middle >> BY32)


def multiply_high_s64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """As unsigned, less what the two sign bits (weight -2**63, not 2**63) added."""
    a_sign, b_sign = (x.view(np.int64) >> np.int64(63) for x in (a, b))
    return multiply_high_u64(a, b) - (a & b_sign.view(np.uint64)) - (b & a_sign.view(np.uint64))


def multiply_wide(nbits: int, signed: bool) -> Fn:
    """The whole product, in twice the bits."""
    inner, outer = (SIGNED if signed else UNSIGNED)[nbits], UNSIGNED[2 * nbits]
    wide = (SIGNED if signed else UNSIGNED)[2 * nbits]

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a.view(inner).astype(wide) * b.view(inner).astype(wide)).view(outer)

    return run


def multiply_high(nbits: int, signed: bool) -> Fn:
    if nbits == 64:
        return multiply_high_s64 if signed else multiply_high_u64
    whole, by, dtype = multiply_wide(nbits, signed), UNSIGNED[2 * nbits](nbits), UNSIGNED[nbits]
    return lambda a, b: (whole(a, b) >> by).astype(dtype)


def magnitude(a: np.ndarray) -> np.ndarray:
    """The absolute value of signed values, as unsigned; that of the least one fits."""
    return np.abs(a).view(UNSIGNED[8 * a.itemsize])


@define("add", INTS, "T T -> T", flags="sat")
def add(form: Form) -> Fn | None:
    if "sat" not in form.flags:
        return np.add
    return (lambda a, b: clamp_s32(as_s64(a) + as_s64(b))) if form.type == "s32" else None


@define("sub", INTS, "T T -> T", flags="sat")
def sub(form: Form) -> Fn | None:
    if "sat" not in form.flags:
        return np.subtract
    return (lambda a, b: clamp_s32(as_s64(a) - as_s64(b))) if form.type == "s32" else None


@define("mul.lo", INTS, "T T -> T")
def mul_lo(form: Form) -> Fn:
    return np.multiply


@define("mul.hi", INTS, "T T -> T")
def mul_hi(form: Form) -> Fn:
    return multiply_high(form.nbits, form.signed)


@define("mul.wide", ("u16", "s16", "u32", "s32"), "T T -> W")
def mul_wide(form: Form) -> Fn:
    return multiply_wide(form.nbits, form.signed)


@define("mad.lo", INTS, "T T T -> T")
def mad_lo(form: Form) -> Fn:
    return lambda a, b, c: a * b + c


@define("mad.hi", INTS, "T T T -> T", flags="sat")
def mad_hi(form: Form) -> Fn | None:
    high = multiply_high(form.nbits, form.signed)
    if "sat" not in form.flags:
        return lambda a, b, c: high(a, b) + c
    return (
        (lambda a, b, c: clamp_s32(as_s64(high(a, b)) + as_s64(c))) if form.type == "s32" else None
    )


@define("mad.wide", ("u16", "s16", "u32", "s32"), "T T W -> W")
def mad_wide(form: Form) -> Fn:
    product = multiply_wide(form.nbits, form.signed)
    return lambda a, b, c: product(a, b) + c


def product24(signed: bool) -> Fn:
    """The 48-bit product of the low 24 bits of each operand, as uint64."""
    if not signed:
        low = np.uint64(0xFFFFFF)
        return lambda a, b: (a & low) * (b & low)

    def low24(a: np.ndarray) -> np.ndarray:
        return ((a << np.uint32(8)).view(np.int32) >> np.int32(8)).astype(np.int64)

    return lambda a, b: (low24(a) * low24(b)).view(np.uint64)


def multiply24(form: Form) -> Fn:
    """Bits 31..0 (.lo) or 47..16 (.hi) of that product."""
    product, by = product24(form.signed), np.uint64(16 if form.name.endswith("hi") else 0)
    return lambda a, b: (product(a, b) >> by).astype(np.uint32)


@define("mul24.lo mul24.hi", ("u32", "s32"), "T T -> T")
def mul24(form: Form) -> Fn:
    return multiply24(form)


@define("mad24.lo mad24.hi", ("u32", "s32"), "T T T -> T", flags="sat")
def mad24(form: Form) -> Fn | None:
    product = multiply24(form)
    if "sat" not in form.flags:
        return lambda a, b, c: product(a, b) + c
    if form.type != "s32" or form.name != "mad24.hi":
        return None
    return lambda a, b, c: clamp_s32(as_s64(product(a, b)) + as_s64(c))


@define("sad", INTS, "T T T -> T")
def sad(form: Form) -> Fn:
    """c + |a - b|."""
    if form.signed:
        largest, least = (on_signed(fn, form.nbits) for fn in (np.maximum, np.minimum))
    else:
        largest, least = np.maximum, np.minimum
    return lambda a, b, c: c + (largest(a, b) - least(a, b))


def divide_unsigned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    quotient = a // b
    return quotient if b.all() else np.where(b == 0, ~quotient.dtype.type(0), quotient)


def remainder_unsigned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    rest = a % b
    return rest if b.all() else np.where(b == 0, ~rest.dtype.type(0), rest)


@define("div", INTS, "T T -> T")
def div(form: Form) -> Fn:
    """Rounds towards zero; numpy's `//` would round down."""
    if not form.signed:
        return divide_unsigned

    def truncate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        quotient = magnitude(a) // magnitude(b)
        negative = (a < 0) != (b < 0)
        signed = np.where(negative, -quotient, quotient)
        return signed if b.all() else np.where(b == 0, ~quotient.dtype.type(0), signed)

    return on_signed(truncate, form.nbits)


@define("rem", INTS, "T T -> T")
def rem(form: Form) -> Fn:
    """Has the sign of the dividend."""
    if not form.signed:
        return remainder_unsigned

    def truncate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        rest = magnitude(a) % magnitude(b)
        signed = np.where(a < 0, -rest, rest)
        return signed if b.all() else np.where(b == 0, ~rest.dtype.type(0), signed)

    return on_signed(truncate, form.nbits)


@define("abs", ("s16", "s32", "s64"), "T -> T")
def absolute(form: Form) -> Fn:
    """The least value is its own absolute value."""
    inner = SIGNED[form.nbits]
    return lambda a: magnitude(a.view(inner))


@define("neg", ("s16", "s32", "s64"), "T -> T")
def neg(form: Form) -> Fn:
    return np.negative


@define("min", INTS, "T T -> T", flags="relu")
def minimum(form: Form) -> Fn | None:
    return extremum(form, np.minimum)


@define("max", INTS, "T T -> T", flags="relu")
def maximum(form: Form) -> Fn | None:
    return extremum(form, np.maximum)


def extremum(form: Form, fn: np.ufunc) -> Fn | None:
    """Least or largest; .relu then raises a negative result to zero."""
    if "relu" in form.flags:
        if form.type != "s32":
            return None
        return on_signed(lambda a, b: np.maximum(fn(a, b), np.int32(0)), 32)
    return on_signed(fn, form.nbits) if form.signed else fn
