"""Binary floating-point formats: their constants, their values, and flushing of subnormals.

Models f16, bf16, f32, f64, tf32 and the two FP8 formats, as PTX ISA, "Floating Point Numbers" and
"Alternate Floating Point Data Formats" have them. Rounding to a format is in `rounding`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lesson.emulator.alu.forms import NBITS, UNSIGNED, Fn


@dataclass(frozen=True)
class Format:
    """A format with an implicit leading bit and subnormals.

    `nan` is the NaN that the hardware makes. `finite_top`: the largest finite value's bits.
    """

    exponent_bits: int
    mantissa_bits: int
    nan: int
    finite_top: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def last_exponent(self) -> int:
        """The weight of a subnormal's last bit is 2 to this."""
        return 1 - self.bias - self.mantissa_bits

    @property
    def sign(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def smallest_normal(self) -> int:
        return 1 << self.mantissa_bits

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits


def ieee(exponent_bits: int, mantissa_bits: int, nan: int) -> Format:
    """A format whose highest exponent stands for infinity and NaN."""
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    return Format(exponent_bits, mantissa_bits, nan, infinity - 1)


FORMATS = {
    "f16": ieee(5, 10, 0x7FFF),
    "bf16": ieee(8, 7, 0x7FFF),
    "f32": ieee(8, 23, 0x7FFFFFFF),
    "f64": ieee(11, 52, 0xFFF8000000000000),
    "tf32": ieee(8, 10, 0x3FFFF),
    "e5m2": ieee(5, 2, 0x7F),
    "e4m3": Format(4, 3, 0x7F, 0x7E),  # its highest exponent holds numbers too, all but one
}

BY16 = np.uint32(16)


def bf16_values(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16 bits, which are the upper half of them."""
    return (bits.astype(np.uint32) << BY16).view(np.float32)


def to_values(kind: str) -> Fn:
    """From the bits of a float type to an array of floats: float64 of f64, else float32."""
    if kind == "bf16":
        return bf16_values
    if kind == "f16":
        return lambda bits: bits.view(np.float16).astype(np.float32)
    dtype = {"f32": np.float32, "f64": np.float64}[kind]
    return lambda bits: bits.view(dtype)


def flusher(kind: str) -> Fn:
    """Subnormal bits of a type become the zero of their sign (.ftz)."""
    fmt, dtype = FORMATS[kind], UNSIGNED[NBITS[kind]]
    exponent, sign = dtype(fmt.infinity), dtype(fmt.sign)

    def flush(bits: np.ndarray) -> np.ndarray:
        small = (bits & exponent) == 0
        return np.where(small, bits & sign, bits) if small.any() else bits

    return flush


def lanes_of(packed: np.ndarray, are_packed: bool) -> np.ndarray:
    """The 16-bit lanes of packed values, of shape (n, 2); scalars as they are."""
    return np.ascontiguousarray(packed).view(np.uint16).reshape(-1, 2) if are_packed else packed
