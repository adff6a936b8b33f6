"""Half precision: .f16, .bf16 and their packed pairs.

Models add, sub, mul, fma, min, max, abs, neg with .ftz, .sat, .relu, .NaN, .xorsign.abs and .oob.
Sums and products of two halves are computed in float32, whose 24 bits are enough to round twice
without harm (f16: 24 >= 2 * 11 + 2). Follows the PTX ISA, "Half Precision Floating Point
Instructions". A NaN that comes out is 0x7FFF.
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.floats import saturate, xorsign
from lesson.emulator.alu.formats import FORMATS, flusher, to_values
from lesson.emulator.alu.forms import Fn, Form, Table, on_lanes
from lesson.emulator.alu.rounding import F64, add_odd, result_flusher, to_bf16, to_f16
from lesson.emulator.alu.single import EXTREMA

TABLE = Table()
define = TABLE.define

U16 = np.uint16
TYPES = ("f16", "f16x2", "bf16", "bf16x2")
NAN, SIGN, OOB_NAN = U16(0x7FFF), U16(0x8000), U16(0x7FF7)


def lane_type(form: Form) -> str:
    return form.type.removesuffix("x2")


def to_bits(kind: str) -> Fn:
    """From floats of enough bits to a half type, to nearest; NaNs made canonical."""
    if kind == "bf16":
        return lambda x: to_bf16(x, "rn")

    def run(x: np.ndarray) -> np.ndarray:
        peak = x.max()
        bits = to_f16(x, "rn")
        return np.where(np.isnan(x), NAN, bits) if peak != peak else bits

    return run


def relu(x: np.ndarray) -> np.ndarray:
    """Negative numbers, and negative zero, become positive zero; NaN stays (.relu)."""
    return np.where(x <= 0, x.dtype.type(0), x)


def dress(core: Fn, form: Form) -> Fn | None:
    """A function of float arrays as one of half-precision bits, with the form's modifiers."""
    kind = lane_type(form)
    if kind == "bf16" and form.flags & {"ftz", "sat"}:
        return None
    value, bits, flush = to_values(kind), to_bits(kind), flusher(kind)
    flush_result = result_flusher(kind, bits)
    ftz, after = "ftz" in form.flags, form.choice("sat", "relu")
    clamp = {"sat": saturate, "relu": relu, "": None}[after]

    def run(*operands: np.ndarray) -> np.ndarray:
        if ftz:
            operands = tuple(flush(x) for x in operands)
        exact = core(*(value(x) for x in operands))
        # Clamping before rounding gives the same: both ends of the range are halves.
        result = bits(exact if clamp is None else clamp(exact))
        return flush_result(result, lambda: exact) if ftz else result

    if "oob" in form.flags:
        run = zero_if_out_of_bounds(run)
    return on_lanes(run, U16) if form.type.endswith("x2") else run


def zero_if_out_of_bounds(fn: Fn) -> Fn:
    """Zero where a factor is the NaN with which a tensor copy fills what lies outside (.oob).

    Its sign does not matter.
    """

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.where(((a & ~SIGN) == OOB_NAN) | ((b & ~SIGN) == OOB_NAN), U16(0), fn(a, b, c))

    return run


@define("add", TYPES, "T T -> T", flags="rn ftz sat")
def add(form: Form) -> Fn | None:
    return dress(np.add, form)


@define("sub", TYPES, "T T -> T", flags="rn ftz sat")
def sub(form: Form) -> Fn | None:
    return dress(np.subtract, form)


@define("mul", TYPES, "T T -> T", flags="rn ftz sat")
def mul(form: Form) -> Fn | None:
    return dress(np.multiply, form)


@define("fma", TYPES, "T T T -> T", flags="rn ftz sat relu oob")
def fma(form: Form) -> Fn | None:
    """A sum in float64, to odd for bf16.

    For f16 the nearest sum will do: it is inexact only if one term is some 2**53 times the last bit
    of the other, and then it is not near a tie, or overflows.
    """
    add = np.add if lane_type(form) == "f16" else add_odd
    if "rn" not in form.flags:
        return None
    return dress(lambda a, b, c: add(a.astype(F64) * b.astype(F64), c.astype(F64)), form)


@define("min max", TYPES, "T T -> T", flags="ftz NaN xorsign abs")
def extremum(form: Form) -> Fn | None:
    pick = EXTREMA[form.name, form.choice("NaN")]
    if ("abs" in form.flags) != ("xorsign" in form.flags):
        return None
    return dress(xorsign(pick) if "xorsign" in form.flags else pick, form)


@define("abs", TYPES, "T -> T", flags="ftz")
def absolute(form: Form) -> Fn | None:
    return on_sign(form, lambda a: a & ~SIGN)


@define("neg", TYPES, "T -> T", flags="ftz")
def negate(form: Form) -> Fn | None:
    return on_sign(form, lambda a: a ^ SIGN)


def on_sign(form: Form, change: Fn) -> Fn | None:
    """An instruction that only touches the sign, but for .ftz and NaN."""
    kind, ftz = lane_type(form), "ftz" in form.flags
    if ftz and kind == "bf16":
        return None
    flush, infinity = flusher(kind), U16(FORMATS[kind].infinity)

    def run(a: np.ndarray) -> np.ndarray:
        changed = change(flush(a) if ftz else a)
        return np.where((a & ~SIGN) > infinity, NAN, changed)

    return on_lanes(run, U16) if form.type.endswith("x2") else run
