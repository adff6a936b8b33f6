"""Rounding to a floating-point format in every mode, exactly.

Models the modes rn, rz, rm, rp and rna of PTX, and "odd": cut off, then set the last bit if
anything was lost. A value rounded to odd with at least two bits to spare can be rounded again, in
any mode, to the result that one rounding would have given (Boldo and Melquiond, "Emulation of FMA
and correctly rounded sums", 2008). float32 arithmetic goes through float64 that way. Follows the
PTX ISA, "Rounding Modifiers".

Two ways lead to a rounded result: `nudge` corrects numpy's round-to-nearest by the sign of its
error, and `pack` rounds an integer significand.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lesson.emulator.alu.bitfield import bit_length
from lesson.emulator.alu.formats import FORMATS, Format
from lesson.emulator.alu.forms import NBITS, UNSIGNED, Fn

F32, F64 = np.float32, np.float64
U32, U64 = np.uint32, np.uint64


# ------------------------------------------------------------------ floats with a known error


def nudge(value: np.ndarray, error: np.ndarray, mode: str) -> np.ndarray:
    """Round-to-nearest `value` to that of another mode. Any float dtype.

    The exact result is value + error; of `error` only the sign counts. NaN is no error.
    """
    if mode == "rn":
        return value
    unsigned = UNSIGNED[8 * value.itemsize]
    bits = value.view(unsigned)
    too_large = np.signbit(value) != np.signbit(error)  # in magnitude, where there is an error
    if mode == "odd":
        wrong = (np.abs(error) > 0) & ((bits & unsigned(1)) == 0)
    elif mode == "rz":
        wrong = (np.abs(error) > 0) & too_large
    else:
        wrong = error < 0 if mode == "rm" else error > 0
    if not wrong.any():
        return value
    # One step outwards, or outwards less two; a step over a power of two changes the exponent too.
    return (bits + wrong - ((wrong & too_large) * unsigned(2))).view(value.dtype)


def sum_error(x: np.ndarray, y: np.ndarray, total: np.ndarray) -> np.ndarray:
    """What `total`, x + y rounded to nearest, lacks; exact unless something overflows (Knuth)."""
    from_y = total - x
    return (x - (total - from_y)) + (y - from_y)


def signed_zero(total: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of sums that are zero, those of rm: negative unless both terms are positive zeros."""
    zero = total == 0
    if not zero.any():
        return total
    return np.where(zero, np.where(np.signbit(x) | np.signbit(y), F64(-0.0), F64(0.0)), total)


def add_odd(x: np.ndarray, y: np.ndarray, mode: str = "rn") -> np.ndarray:
    """x + y in float64, rounded to odd; `mode` only decides the sign of an exact zero."""
    total = x + y
    total = nudge(total, sum_error(x, y, total), "odd")
    return signed_zero(total, x, y) if mode == "rm" else total


def to_f32(x: np.ndarray, mode: str) -> np.ndarray:
    """float64 to float32."""
    nearest = x.astype(F32)
    return nearest if mode == "rn" else nudge(nearest, x - nearest, mode)


def to_f16(x: np.ndarray, mode: str) -> np.ndarray:
    """float32 or float64 to float16, as bits; any NaN may come out for a NaN."""
    nearest = x.astype(np.float16)
    if mode != "rn":
        nearest = nudge(nearest, x - nearest.astype(x.dtype), mode)
    return nearest.view(np.uint16)


def to_bf16(x: np.ndarray, mode: str) -> np.ndarray:
    """float32, or float64 by way of float32 rounded to odd, to bfloat16 bits.

    Rounding to nearest adds half of the last bit, less a trace where that bit is even.
    """
    bits = (x if x.dtype == F32 else to_f32(x, "odd")).view(U32)
    upper = bits >> U32(16)
    if mode == "rn":
        rounded = (bits + (U32(0x7FFF) + (upper & U32(1)))) >> U32(16)
    elif mode == "rz":
        rounded = upper
    else:
        lost, negative = (bits & U32(0xFFFF)) != 0, (bits >> U32(31)) != 0
        rounded = upper + (lost & (negative == (mode == "rm")))
    peak = x.max()
    if peak != peak:
        rounded = np.where(np.isnan(x), U32(0x7FFF), rounded)
    return rounded.astype(np.uint16)


def result_flusher(kind: str, encode: Fn) -> Fn:
    """Flushes what an instruction with .ftz gives: (bits, exact) -> bits.

    The chip flushes a result that is subnormal after rounding to the format's precision, as if
    there were no least exponent. Only a result equal to the smallest normal can be one that such
    rounding leaves below it; `exact()` gives the values before rounding, `encode` rounds them.
    """
    fmt, dtype = FORMATS[kind], UNSIGNED[NBITS[kind]]
    sign, normal = dtype(fmt.sign), dtype(fmt.smallest_normal)
    up, normal_up = 2.0**8, dtype(fmt.smallest_normal + (8 << fmt.mantissa_bits))

    def flush(bits: np.ndarray, exact: Callable[[], np.ndarray]) -> np.ndarray:
        magnitude = bits & ~sign
        small, edge = magnitude < normal, magnitude == normal
        if edge.any():
            value = exact()
            small |= edge & ((encode(value * value.dtype.type(up)) & ~sign) < normal_up)
        return np.where(small, bits & sign, bits) if small.any() else bits

    return flush


# ---------------------------------------------------------------------- integer significands


def unpack(bits: np.ndarray, fmt: Format) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(negative, exponent, significand) of finite values: significand * 2**exponent."""
    bits = bits.astype(U64)
    fraction = bits & U64(fmt.smallest_normal - 1)
    field = ((bits & U64(fmt.infinity)) >> U64(fmt.mantissa_bits)).astype(np.int64)
    significand = np.where(field > 0, fraction | U64(fmt.smallest_normal), fraction)
    exponent = np.maximum(field, 1) + (fmt.last_exponent - 1)
    return (bits & U64(fmt.sign)) != 0, exponent, significand


def shift_right_odd(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """uint64 shifted right by n (left if negative), the last bit set if any bit was lost."""
    right, left = np.clip(n, 0, 64).astype(U64), np.clip(-n, 0, 63).astype(U64)
    kept = x >> right
    return (kept << left) | ((kept << right) != x)


def pack(
    negative: np.ndarray,
    exponent: np.ndarray,
    significand: np.ndarray,
    fmt: Format,
    mode: str,
    finite: bool = False,
) -> np.ndarray:
    """Round significand * 2**exponent to a format; bits as uint64.

    Overflow is as the mode has it, or the largest finite value if `finite`.

    The significand is a uint64, exact or rounded to odd with two bits more than the format has.
    """
    fraction_bits = fmt.mantissa_bits
    last = np.maximum(exponent + bit_length(significand) - (fraction_bits + 1), fmt.last_exponent)
    last = np.where(significand == 0, fmt.last_exponent, last)
    scaled = shift_right_odd(significand, last - exponent - 2)  # two bits below the last
    kept, rest = scaled >> U64(2), scaled & U64(3)
    if mode == "rn":
        up = (rest == 3) | ((rest == 2) & ((kept & U64(1)) != 0))
    elif mode == "rna":
        up = rest >= 2
    elif mode == "odd":
        up = (rest != 0) & ((kept & U64(1)) == 0)
    else:
        up = (rest != 0) & (negative if mode == "rm" else ~negative if mode == "rp" else False)
    # A carry out of the fraction is a carry into the exponent, which is what rounding up wants.
    bits = kept + up + ((last - fmt.last_exponent).astype(U64) << U64(fraction_bits))
    bits = overflow(bits, negative, fmt, "rz" if finite else mode)
    return bits | np.where(negative, U64(fmt.sign), U64(0))


def overflow(bits: np.ndarray, negative: np.ndarray, fmt: Format, mode: str) -> np.ndarray:
    """Beyond the largest finite value: infinity, or that value where the mode rounds inwards."""
    beyond, top, infinity = bits > U64(fmt.finite_top), U64(fmt.finite_top), U64(fmt.infinity)
    if mode in ("rm", "rp"):
        outwards = negative if mode == "rm" else ~negative
        return np.where(beyond, np.where(outwards, infinity, top), bits)
    return np.where(beyond, infinity if mode in ("rn", "rna") else top, bits)


def from_integer(a: np.ndarray, signed: bool, fmt: Format, mode: str) -> np.ndarray:
    """64-bit integers (raw bits) to a format."""
    if not signed:
        return pack(np.zeros(a.shape, bool), np.zeros(1, np.int64), a, fmt, mode)
    negative = a.view(np.int64) < 0
    return pack(negative, np.zeros(1, np.int64), np.where(negative, -a, a), fmt, mode)


def round_f64(x: np.ndarray, kind: str, mode: str) -> np.ndarray:
    """Finite float64 values to any narrower format; bits as uint64."""
    return pack(*unpack(x.view(U64), FORMATS["f64"]), FORMATS[kind], mode)
