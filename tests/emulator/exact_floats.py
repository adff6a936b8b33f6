"""An independent, slow and exact reference for floating-point instructions, one value at a time.

Every finite value is a `Fraction`, so nothing is rounded until the end, and then by comparing
fractions. Shares no code with the emulator. Infinities and NaN are Python floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

INF, NAN = math.inf, math.nan

# exponent bits, fraction bits
FORMATS = {
    "f16": (5, 10),
    "bf16": (8, 7),
    "f32": (8, 23),
    "f64": (11, 52),
    "tf32": (8, 10),
    "e5m2": (5, 2),
    "e4m3": (4, 3),
}


@dataclass(frozen=True)
class Number:
    """A finite fraction with a sign of its own (for zeros), or an infinity or NaN."""

    negative: bool
    value: Fraction | float

    @property
    def is_nan(self) -> bool:
        return isinstance(self.value, float) and math.isnan(self.value)

    @property
    def is_inf(self) -> bool:
        return isinstance(self.value, float) and math.isinf(self.value)

    @property
    def is_zero(self) -> bool:
        return self.value == 0


NOT_A_NUMBER = Number(False, NAN)


def infinity(negative: bool) -> Number:
    return Number(negative, -INF if negative else INF)


def zero(negative: bool) -> Number:
    return Number(negative, Fraction(0))


def decode(bits: int, kind: str) -> Number:
    e, m = FORMATS[kind]
    negative, field = bool(bits >> (e + m)), (bits >> m) & ((1 << e) - 1)
    fraction = bits & ((1 << m) - 1)
    bias = (1 << (e - 1)) - 1
    if kind == "e4m3" and field == 15 and fraction == 7:
        return Number(negative, NAN)
    if kind != "e4m3" and field == (1 << e) - 1:
        return Number(negative, NAN) if fraction else infinity(negative)
    magnitude = Fraction(fraction if field == 0 else fraction + (1 << m)) * Fraction(2) ** (
        max(field, 1) - bias - m
    )
    return Number(negative, -magnitude if negative else magnitude)


def smallest_normal(kind: str) -> Fraction:
    return Fraction(2) ** (2 - (1 << (FORMATS[kind][0] - 1)))


def floor_log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def round_fraction(x: Fraction, mode: str) -> int:
    """To an integer."""
    low = x.numerator // x.denominator
    rest = x - low
    if mode in ("rz", "rzi"):
        return low if x >= 0 or rest == 0 else low + 1
    if mode in ("rm", "rmi"):
        return low
    if mode in ("rp", "rpi"):
        return low + (rest > 0)
    if rest == Fraction(1, 2):
        if mode == "rna":
            return low + (x > 0)
        return low + (low & 1)
    return low + (rest > Fraction(1, 2))


def round_to_precision(x: Fraction, kind: str, mode: str, least: bool = True) -> Fraction:
    """To a format without a largest value, and without a smallest one unless `least`."""
    if x == 0:
        return x
    e, m = FORMATS[kind]
    exponent = floor_log2(abs(x))
    if least:
        exponent = max(exponent, 2 - (1 << (e - 1)))
    ulp = Fraction(2) ** (exponent - m)
    return round_fraction(x / ulp, mode) * ulp


def largest(kind: str) -> Fraction:
    e, m = FORMATS[kind]
    bias = (1 << (e - 1)) - 1
    if kind == "e4m3":
        return Fraction(448)
    return (2 - Fraction(1, 1 << m)) * Fraction(2) ** bias


def round_number(x: Number, kind: str, mode: str) -> Number:
    """To a format; overflow gives infinity or the largest value."""
    if x.is_nan or x.is_inf:
        return x
    rounded = round_to_precision(x.value, kind, mode)
    top = largest(kind)
    if abs(rounded) > top:
        outwards = mode in ("rn", "rna") or (mode == "rm" if x.negative else mode == "rp")
        return infinity(x.negative) if outwards else Number(x.negative, -top if x.negative else top)
    return Number(x.negative, rounded)


def encode(x: Number, kind: str) -> int | None:
    """The bits of a value that the format has; None for NaN."""
    if x.is_nan:
        return None
    e, m = FORMATS[kind]
    sign = x.negative << (e + m)
    if x.is_inf:
        return sign | ((1 << e) - 1) << m
    magnitude, bias = abs(x.value), (1 << (e - 1)) - 1
    if magnitude == 0:
        return sign
    exponent = max(floor_log2(magnitude), 1 - bias)
    scaled = magnitude / Fraction(2) ** (exponent - m)
    assert scaled.denominator == 1
    return sign | ((exponent + bias - 1) << m) + scaled.numerator


# -------------------------------------------------------------------------------- operations


def signed(x: Fraction) -> Number:
    """A nonzero fraction as a number."""
    return Number(x < 0, x)


def negate(x: Number) -> Number:
    return x if x.is_nan else Number(not x.negative, -x.value)


def multiply(a: Number, b: Number) -> Number:
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or (a.is_inf and b.is_zero) or (a.is_zero and b.is_inf):
        return NOT_A_NUMBER
    if a.is_inf or b.is_inf:
        return infinity(negative)
    return Number(negative, a.value * b.value)


def add(a: Number, b: Number, mode: str) -> Number:
    if a.is_nan or b.is_nan or (a.is_inf and b.is_inf and a.negative != b.negative):
        return NOT_A_NUMBER
    if a.is_inf or b.is_inf:
        return a if a.is_inf else b
    total = a.value + b.value
    if total != 0:
        return signed(total)
    return zero(a.negative if a.negative == b.negative else mode == "rm")


def divide(a: Number, b: Number) -> Number:
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or (a.is_inf and b.is_inf) or (a.is_zero and b.is_zero):
        return NOT_A_NUMBER
    if a.is_inf or b.is_zero:
        return infinity(negative)
    if b.is_inf:
        return zero(negative)
    return Number(negative, a.value / b.value)


def square_root(a: Number) -> Number:
    """With enough bits, the last of them set if the root goes on."""
    if a.is_nan or a.is_zero or (a.is_inf and not a.negative):
        return a
    if a.negative:
        return NOT_A_NUMBER
    shift = 2 * (200 + max(0, a.value.denominator.bit_length()))
    scaled = a.value * (1 << shift)
    root = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(root) ** 2 == scaled
    return Number(False, Fraction(2 * root + (not exact), 1 << (shift // 2 + 1)))


ONE = Number(False, Fraction(1))
OPERATIONS = {
    "add": lambda mode, a, b: add(a, b, mode),
    "sub": lambda mode, a, b: add(a, negate(b), mode),
    "mul": lambda mode, a, b: multiply(a, b),
    "div": lambda mode, a, b: divide(a, b),
    "rcp": lambda mode, a: divide(ONE, a),
    "sqrt": lambda mode, a: square_root(a),
    "fma": lambda mode, a, b, c: add(multiply(a, b), c, mode),
    "mad": lambda mode, a, b, c: add(multiply(a, b), c, mode),
    "cvt": lambda mode, a: a,
}


def flushed(x: Number, kind: str) -> Number:
    """A subnormal operand becomes a zero of its sign."""
    if x.is_nan or x.is_inf or abs(x.value) >= smallest_normal(kind):
        return x
    return zero(x.negative)


def compute(
    opcode: str, operands: list[Number], kind: str, mode: str, after: str = "", ftz: bool = False
) -> int | None:
    """The bits of an instruction's result; None for NaN. `after` is "sat", "relu" or nothing."""
    exact = OPERATIONS[opcode](mode, *operands)
    result = round_number(exact, kind, mode)
    if ftz and not (exact.is_nan or exact.is_inf):
        unbounded = round_to_precision(exact.value, kind, mode, least=False)
        if abs(unbounded) < smallest_normal(kind):
            result = zero(result.negative)
    if after == "sat":
        result = saturated(result)
    elif after == "relu" and not result.is_nan and result.negative:
        result = zero(False)
    return encode(result, kind)


def saturated(x: Number) -> Number:
    if x.is_nan or x.value <= 0:
        return zero(False)
    return ONE if x.value > 1 else x


def to_integer(x: Number, mode: str, nbits: int, is_signed: bool, nan: int) -> int:
    """The bits of a saturating conversion."""
    half = 1 << (nbits - 1)
    low, high = (-half, half - 1) if is_signed else (0, 2 * half - 1)
    if x.is_nan:
        return nan
    value = (low if x.negative else high) if x.is_inf else round_fraction(x.value, mode)
    return min(max(value, low), high) & ((1 << nbits) - 1)
