"""float64 arithmetic that numpy lacks: fused multiply-add, and results in every rounding mode.

Away from the ends of the range, fma is a sum of error-free parts, one of them rounded to odd
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). Near them it is done in
integers by `wide_fma`. Follows the PTX ISA, "Floating Point Instructions" of type .f64.
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.rounding import F64, U64, add_odd, nudge, signed_zero, sum_error
from lesson.emulator.alu.wide_fma import fma_finite

SPLITTER = F64(2**27 + 1)
# Between these, no part of a sum over- or underflows.
SMALL, LARGE = F64(2.0**-900), F64(2.0**900)
# Between these, no factor overflows when it is split, and no error of a product underflows.
SMALL_FACTOR, LARGE_FACTOR = F64(2.0**-450), F64(2.0**450)


def split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The halves of a significand: a = high + low, products of halves are exact (Veltkamp)."""
    scaled = a * SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def product_error(a: np.ndarray, b: np.ndarray, product: np.ndarray) -> np.ndarray:
    """What `product`, a * b rounded to nearest, lacks; exact (Dekker)."""
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    error = a_high * b_high - product
    return ((error + a_high * b_low) + a_low * b_high) + a_low * b_low


def between(a: np.ndarray, small: np.float64, large: np.float64) -> np.ndarray:
    """Whether a magnitude is within bounds, or zero; NaN is not."""
    magnitude = np.abs(a)
    return (magnitude <= large) & ((magnitude >= small) | (magnitude == 0))


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str) -> np.ndarray:
    """a * b + c of float64 arrays, rounded once."""
    product = a * b
    error = product_error(a, b, product)
    lower = c + error
    upper = product + lower
    rest = add_odd(sum_error(c, error, lower), sum_error(product, lower, upper))
    total = upper + rest
    zero = total == 0
    result = nudge(total, sum_error(upper, rest, total), mode)
    if zero.any():
        result = np.where(zero, product + c, result)  # the parts have lost its sign
        result = signed_zero(result, product, c) if mode == "rm" else result
    easy = between(a, SMALL_FACTOR, LARGE_FACTOR) & between(b, SMALL_FACTOR, LARGE_FACTOR)
    easy = easy & between(c, SMALL, LARGE) & ((np.abs(total) >= SMALL) | zero)
    return result if easy.all() else with_hard_rows(result, ~easy, (a, b, c), mode)


def with_hard_rows(
    result: np.ndarray, hard: np.ndarray, operands: tuple[np.ndarray, ...], mode: str
) -> np.ndarray:
    """`result`, but for the rows near the ends of the range, or not finite."""
    a, b, c = (np.broadcast_to(x, result.shape)[hard] for x in operands)
    finite_product = np.isfinite(a) & np.isfinite(b)
    finite = finite_product & np.isfinite(c)
    safe = (np.where(finite, x, F64(1)).view(U64) for x in (a, b, c))
    exact = fma_finite(*safe, mode).view(F64)
    result = result.copy()
    # A finite product never matters beside an infinity, even if it would overflow alone.
    result[hard] = np.where(finite, exact, np.where(finite_product, c, a * b + c))
    return result


def add(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """The nearest sum corrected by its error; large sums by way of fma, which may overflow."""
    total = a + b
    if mode == "rn":
        return total
    if not np.abs(total).max() <= LARGE:
        return fma(a, np.ones(1), b, mode)
    total = nudge(total, sum_error(a, b, total), mode)
    return signed_zero(total, a, b) if mode == "rm" else total


def subtract(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    return a - b if mode == "rn" else add(a, -b, mode)


def multiply(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """The addend is the zero of the product's sign, so that a zero result keeps it."""
    if mode == "rn":
        return a * b
    zero = np.where(np.signbit(a) ^ np.signbit(b), F64(-0.0), F64(0.0))
    return fma(a, b, zero, mode)


def divide(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """Corrects the nearest quotient by the sign of its remainder."""
    quotient = a / b
    if mode == "rn":
        return quotient
    remainder = fma(-quotient, b, a, "odd")  # to odd: a tiny remainder does not become zero
    error = np.where(np.signbit(b), -remainder, remainder)
    finite = np.isfinite(a) & np.isfinite(b) & (b != 0)
    error = np.where(np.isinf(quotient), -quotient, error)  # a finite quotient that overflowed
    return nudge(quotient, np.where(finite, error, F64(0)), mode)


def square_root(a: np.ndarray, mode: str) -> np.ndarray:
    """Corrects the nearest root by the sign of its remainder."""
    root = np.sqrt(a)
    if mode == "rn":
        return root
    remainder = fma(-root, root, a, "odd")
    return nudge(root, np.where(np.isfinite(root), remainder, F64(0)), mode)
