"""cvt to and from the FP8 formats e4m3 and e5m2, packed in pairs.

Models conversions from two f32, one f16x2 or one bf16x2 (to nearest, saturating to finite values)
and to f16x2, with .relu. Follows the PTX ISA, "cvt", and the OCP FP8 specification for e4m3, which
has no infinity and one NaN.
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.formats import FORMATS, lanes_of, to_values
from lesson.emulator.alu.forms import Fn, Form, Table
from lesson.emulator.alu.half import relu
from lesson.emulator.alu.rounding import F64, pack, unpack

TABLE = Table()
define = TABLE.define

PAIRS = ("e4m3x2", "e5m2x2")
U16 = np.uint16


def to_fp8(x: np.ndarray, kind: str) -> np.ndarray:
    """Float values to bytes (as uint16), to nearest; beyond the largest value, that value."""
    fmt = FORMATS[kind]
    finite = np.isfinite(x)
    safe = np.where(finite, x, F64(0)).astype(F64)
    bits = pack(*unpack(safe.view(np.uint64), FORMATS["f64"]), fmt, "rn", finite=True)
    limit = np.where(np.signbit(x), fmt.finite_top | fmt.sign, fmt.finite_top).astype(np.uint64)
    bits = np.where(finite, bits, np.where(np.isnan(x), np.uint64(fmt.nan), limit))
    return bits.astype(U16)


def f16_table(kind: str) -> np.ndarray:
    """The float16 bits of each of the 256 bytes; every one is exact."""
    codes, fmt = np.arange(256, dtype=np.uint64), FORMATS[kind]
    values = pack(*unpack(codes, fmt), FORMATS["f16"], "rn")
    magnitude = codes & np.uint64(fmt.sign - 1)
    if kind == "e5m2":
        infinity = np.uint64(FORMATS["f16"].infinity) | (
            (codes & np.uint64(fmt.sign)) << np.uint64(8)
        )
        values = np.where(magnitude == fmt.infinity, infinity, values)
    return np.where(magnitude > fmt_last(kind), np.uint64(0x7FFF), values).astype(U16)


def fmt_last(kind: str) -> int:
    """The largest magnitude that is not a NaN."""
    fmt = FORMATS[kind]
    return fmt.finite_top if kind == "e4m3" else fmt.infinity


def pair(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    return (high << U16(8)) | low


@define("cvt", ("f32",), "T T -> U", flags="rn satfinite relu")
def from_f32(form: Form) -> Fn | None:
    """The first operand becomes the upper byte."""
    target, clamp = form.types[0], relu if "relu" in form.flags else None
    if target not in PAIRS or not {"rn", "satfinite"} <= form.flags:
        return None
    kind = target.removesuffix("x2")

    def byte(a: np.ndarray) -> np.ndarray:
        x = a.view(np.float32)
        return to_fp8(x if clamp is None else clamp(x), kind)

    return lambda a, b: pair(byte(a), byte(b))


@define("cvt", ("f16x2", "bf16x2"), "T -> U", flags="rn satfinite relu")
def from_halves(form: Form) -> Fn | None:
    target, clamp = form.types[0], relu if "relu" in form.flags else None
    if target not in PAIRS or not {"rn", "satfinite"} <= form.flags:
        return None
    kind, value = target.removesuffix("x2"), to_values(form.type.removesuffix("x2"))

    def run(a: np.ndarray) -> np.ndarray:
        x = value(lanes_of(a, True))
        codes = to_fp8(x if clamp is None else clamp(x), kind)
        return pair(codes[:, 1], codes[:, 0])

    return run


@define("cvt", PAIRS, "T -> U", flags="rn relu")
def to_halves(form: Form) -> Fn | None:
    if form.types[0] != "f16x2" or "rn" not in form.flags:
        return None
    table = f16_table(form.type.removesuffix("x2"))
    if "relu" in form.flags:
        table = np.where((table > 0x8000 - 1) & (table <= 0xFC00), U16(0), table)

    def run(a: np.ndarray) -> np.ndarray:
        high, low = table[a >> U16(8)], table[a & U16(0xFF)]
        return (high.astype(np.uint32) << np.uint32(16)) | low

    return run
