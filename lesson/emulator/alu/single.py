"""float32 and float64 results in every rounding mode: the arithmetic without its PTX dress.

float32 operands are exact in float64, as are their products; a sum there is rounded to odd, a
quotient or root has bits enough to spare (Figueroa, "When is double rounding innocuous?", 1995). So
one more rounding gives the float32 result. float64 is done in `exact64`. Functions take and give
float arrays; any NaN stands for all. Follows the PTX ISA, "Floating Point Instructions".
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu import exact64
from lesson.emulator.alu.forms import Fn
from lesson.emulator.alu.rounding import F32, F64, U64, add_odd, to_f32

MODES = ("rn", "rz", "rm", "rp")


LOW29 = U64(0x1FFFFFFF)  # the bits of a float64 that a float32 lacks
HALF29 = U64(0x10000000)
SMALLEST_NORMAL = F64(2.0**-126)  # of float32


def fma32_nearest(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Rounds twice, which is wrong only where the first result looks like a tie.

    A tie has just the top one of the bits that float32 lacks. In the subnormal range there are more
    such bits, and any value may be one. Where neither occurs, the short way is exact.
    """
    product, addend = a.astype(F64) * b.astype(F64), c.astype(F64)
    total = product + addend
    if ((total.view(U64) & LOW29) == HALF29).any() or has_tiny(total):
        total = add_odd(product, addend)
    return total.astype(F32)


def has_tiny(total: np.ndarray) -> bool:
    """Whether a value is subnormal as float32, zero apart."""
    magnitude = np.abs(total)
    if magnitude.min() >= SMALLEST_NORMAL:
        return False
    return bool(((magnitude < SMALLEST_NORMAL) & (magnitude > 0)).any())


# float64 operands to the exact result, or one with bits enough to round again. The mode decides the
# sign of an exact zero.
EXACT32: dict[str, Fn] = {
    "add": add_odd,
    "sub": lambda a, b, mode: add_odd(a, -b, mode),
    "mul": lambda a, b, mode: a * b,
    "div": lambda a, b, mode: a / b,
    "rcp": lambda a, mode: F64(1) / a,
    "sqrt": lambda a, mode: np.sqrt(a),
    "fma": lambda a, b, c, mode: add_odd(a * b, c, mode),
    "mad": lambda a, b, c, mode: add_odd(a * b, c, mode),
}

# float32 operands to the nearest float32.
NEAREST32: dict[str, Fn] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt},
    **{"rcp": lambda a: F32(1) / a, "fma": fma32_nearest, "mad": fma32_nearest},
}


def exact32(name: str, mode: str) -> Fn:
    """The operation on float32 arrays with a float64 result that can be rounded in that mode."""
    exact = EXACT32[name]
    return lambda *operands: exact(*(x.astype(F64) for x in operands), mode)


def rounded32(name: str, mode: str) -> Fn:
    """The operation on float32 arrays, rounded."""
    if mode == "rn":
        return NEAREST32[name]
    exact = exact32(name, mode)
    return lambda *operands: to_f32(exact(*operands), mode)


def two64(fn: Fn) -> Fn:
    """A float64 operation of any mode, bound to one of them."""
    return lambda mode: lambda a, b: fn(a, b, mode)


ARITHMETIC64 = {
    "add": two64(exact64.add),
    "sub": two64(exact64.subtract),
    "mul": two64(exact64.multiply),
    "div": two64(exact64.divide),
    "rcp": lambda mode: lambda a: exact64.divide(np.ones(1), a, mode),
    "sqrt": lambda mode: lambda a: exact64.square_root(a, mode),
    "fma": lambda mode: lambda a, b, c: exact64.fma(a, b, c, mode),
    "mad": lambda mode: lambda a, b, c: exact64.fma(a, b, c, mode),
}


def least(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller number; a NaN only where both are; -0 is less than +0."""
    return settle_zeros(numbers_first(np.fmin(a, b), a, b), a, b, np.bitwise_or)


def largest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger number, likewise."""
    return settle_zeros(numbers_first(np.fmax(a, b), a, b), a, b, np.bitwise_and)


def numbers_first(result: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A signalling NaN beside a number gives the number here, but not in every C library's fmin."""
    peak = result.max()
    if peak == peak:
        return result
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))


def least_or_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller number; a NaN where one of them is (.NaN)."""
    return settle_zeros(np.minimum(a, b), a, b, np.bitwise_or)


def largest_or_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger number, likewise."""
    return settle_zeros(np.maximum(a, b), a, b, np.bitwise_and)


def settle_zeros(result: np.ndarray, a: np.ndarray, b: np.ndarray, fold: np.ufunc) -> np.ndarray:
    """Of two zeros numpy gives either; equal numbers differ in bits only if they are zeros."""
    if result.all():
        return result
    unsigned = np.dtype(f"u{a.itemsize}")
    both = fold(a.view(unsigned), b.view(unsigned)).view(a.dtype)
    return np.where(a == b, both, result)


EXTREMA = {
    ("min", ""): least,
    ("max", ""): largest,
    ("min", "NaN"): least_or_nan,
    ("max", "NaN"): largest_or_nan,
}
