"""Fused multiply-add of float64 in 128-bit integers, for any finite operands and rounding mode.

The product of the significands and the aligned addend are pairs of uint64 (high, low) whose last
bit is sticky. Does not model infinities and NaNs, which `exact64` sorts out first. Follows
IEEE 754, "fusedMultiplyAdd".
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.bitfield import bit_length
from lesson.emulator.alu.formats import FORMATS
from lesson.emulator.alu.integer import multiply_high_u64
from lesson.emulator.alu.rounding import U64, pack, unpack

FORMAT = FORMATS["f64"]

Wide = tuple[np.ndarray, np.ndarray]  # (high, low)
TOP = 126  # the bits that a normalised term takes: one is left for a carry


def wide_length(x: Wide) -> np.ndarray:
    high, low = x
    return np.where(high != 0, 64 + bit_length(high), bit_length(low))


def shift_left(x: Wide, n: np.ndarray) -> Wide:
    """By 0 to 127 bits; numpy's shifts by 64 and more give 0."""
    high, low, by = x[0], x[1], n.astype(U64)
    rest, far = U64(64) - np.minimum(by, U64(64)), by - np.minimum(by, U64(64))
    return (high << by) | np.where(by < 64, low >> rest, low << far), low << by


def shift_right(x: Wide, n: np.ndarray) -> Wide:
    """By any number of bits, the last bit set if any was lost."""
    high, low, by = x[0], x[1], np.minimum(n, 128).astype(U64)
    near, far = np.minimum(by, U64(64)), by - np.minimum(by, U64(64))
    into_low = np.where(by < 64, high << (U64(64) - near), high >> far)
    kept = np.where(by < 64, low >> near, U64(0)) | into_low
    lost_low = np.where(by < 64, (low >> near) << near != low, low != 0)
    lost_high = (far > 0) & ((high >> far) << far != high)
    return high >> by, kept | (lost_low | lost_high)


def add_wide(x: Wide, y: Wide) -> Wide:
    low = x[1] + y[1]
    return x[0] + y[0] + (low < x[1]), low


def subtract_wide(x: Wide, y: Wide) -> Wide:
    return x[0] - y[0] - (x[1] < y[1]), x[1] - y[1]


def where_wide(condition: np.ndarray, x: Wide, y: Wide) -> Wide:
    return np.where(condition, x[0], y[0]), np.where(condition, x[1], y[1])


def normalise(x: Wide, exponent: np.ndarray) -> tuple[Wide, np.ndarray]:
    """Shifted until TOP bits long, with the exponent to match; zero gets a very small one."""
    length = wide_length(x)
    zero = length == 0
    up = np.where(zero, 0, TOP - length)
    return shift_left(x, up), np.where(zero, -(1 << 20), exponent - up)


def fma_finite(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str) -> np.ndarray:
    """Bits of a * b + c for finite operands (bits), rounded once."""
    (a_sign, a_exp, a_sig), (b_sign, b_exp, b_sig), (c_sign, c_exp, c_sig) = (
        unpack(x, FORMAT) for x in np.broadcast_arrays(a, b, c)
    )
    p_sign = a_sign ^ b_sign
    product, p_exp = normalise((multiply_high_u64(a_sig, b_sig), a_sig * b_sig), a_exp + b_exp)
    addend, c_exp = normalise((np.zeros_like(c_sig), c_sig), c_exp)

    exponent = np.maximum(p_exp, c_exp)
    product, addend = shift_right(product, exponent - p_exp), shift_right(addend, exponent - c_exp)
    bigger = (product[0] > addend[0]) | ((product[0] == addend[0]) & (product[1] >= addend[1]))
    large, small = where_wide(bigger, product, addend), where_wide(bigger, addend, product)
    total = where_wide(p_sign == c_sign, add_wide(large, small), subtract_wide(large, small))

    zero = (total[0] | total[1]) == 0
    exact_zero = np.where(p_sign == c_sign, p_sign, mode == "rm")
    negative = np.where(zero, exact_zero, np.where(bigger, p_sign, c_sign))
    # 62 bits are plenty for 53; the rest goes into the last of them.
    cut = np.maximum(wide_length(total) - 62, 0)
    _, low = shift_right(total, cut)
    return pack(negative, exponent + cut, low, FORMAT, mode)
