"""Floating-point instructions of type .f32, .f32x2 and .f64.

Models add, sub, mul, fma, mad, div, rcp, sqrt in the four rounding modes, abs, neg, min and max,
with .ftz, .sat, .NaN and .xorsign.abs. Does not model the approximations (.approx, .full, ex2, lg2,
sin, cos, tanh, rsqrt): PTX gives error bounds for them, not bits. Follows the PTX ISA, "Floating
Point Instructions". An f32 instruction that makes a NaN makes 0x7FFFFFFF, whatever NaN went in.
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.formats import FORMATS, flusher, to_values
from lesson.emulator.alu.forms import Fn, Form, Table, on_lanes
from lesson.emulator.alu.rounding import result_flusher, to_f32
from lesson.emulator.alu.single import ARITHMETIC64, EXTREMA, MODES, exact32, rounded32

TABLE = Table()
define = TABLE.define

F32, F64, U32, U64 = np.float32, np.float64, np.uint32, np.uint64
NAN32 = U32(FORMATS["f32"].nan)
SIGN = {"f32": U32(1 << 31), "f64": U64(1 << 63)}
flush32 = flusher("f32")


def bits32(result: np.ndarray) -> np.ndarray:
    """The bits of a float32 result, its NaNs made the one that the chip makes."""
    peak = result.max()
    if peak != peak:
        return np.where(np.isnan(result), NAN32, result.view(U32))
    return result.view(U32)


def saturate(result: np.ndarray) -> np.ndarray:
    """To [0, 1]; NaN and negative zero become positive zero (.sat)."""
    dtype = result.dtype.type
    return np.where(result > 0, np.minimum(result, dtype(1)), dtype(0))


def dress32(core: Fn, form: Form, exact: Fn | None = None, mode: str = "rn") -> Fn:
    """A function of float32 arrays as one of bits, with the form's .ftz and .sat.

    `exact` gives the result before rounding, for .ftz; without it no result is newly subnormal.
    """
    flush_result = result_flusher("f32", lambda x: to_f32(x, mode).view(U32))
    ftz, sat = "ftz" in form.flags, "sat" in form.flags

    def run(*operands: np.ndarray) -> np.ndarray:
        if ftz:
            operands = tuple(flush32(x) for x in operands)
        values = [x.view(F32) for x in operands]
        result = core(*values)
        if ftz and exact is not None:
            result = flush_result(result.view(U32), lambda: exact(*values)).view(F32)
        return bits32(saturate(result) if sat else result)

    def plain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return bits32(core(a.view(F32), b.view(F32)))

    return plain if form.nargs == 2 and not (ftz or sat) else run


def dress64(core: Fn) -> Fn:
    return lambda *operands: core(*(x.view(F64) for x in operands)).view(U64)


def arithmetic(form: Form) -> Fn | None:
    """Any of the rounded instructions; only add, sub and mul have a default mode."""
    mode = form.choice(*MODES, default="rn" if form.name in ("add", "sub", "mul") else "")
    if not mode or ("sat" in form.flags and form.name in ("div", "rcp", "sqrt")):
        return None
    if form.type == "f64":
        return None if form.flags & {"ftz", "sat"} else dress64(ARITHMETIC64[form.name](mode))
    return rounded(form, mode)


def rounded(form: Form, mode: str) -> Fn:
    """The float32 instruction of a form's name in a mode."""
    return dress32(rounded32(form.name, mode), form, exact32(form.name, mode), mode)


ROUNDED = " ".join(MODES)
TYPES = ("f32", "f64")


@define("add sub mul", TYPES, "T T -> T", flags=f"{ROUNDED} ftz sat")
def sum_or_product(form: Form) -> Fn | None:
    return arithmetic(form)


@define("fma mad", TYPES, "T T T -> T", flags=f"{ROUNDED} ftz sat")
def multiply_add(form: Form) -> Fn | None:
    """Rounded once, both of them."""
    return arithmetic(form)


@define("div", TYPES, "T T -> T", flags=f"{ROUNDED} ftz")
def quotient(form: Form) -> Fn | None:
    return arithmetic(form)


@define("rcp sqrt", TYPES, "T -> T", flags=f"{ROUNDED} ftz")
def reciprocal_or_root(form: Form) -> Fn | None:
    return arithmetic(form)


@define("add sub", ("f16", "bf16"), "T U -> U", flags=f"{ROUNDED} sat")
@define("fma", ("f16", "bf16"), "T T U -> U", flags=f"{ROUNDED} sat")
def mixed(form: Form) -> Fn | None:
    """A float32 sum of a half, or of a product of halves, and a float32."""
    mode = form.choice(*MODES, default="" if form.name == "fma" else "rn")
    if form.types[0] != "f32" or not mode:
        return None
    value, plain = to_values(form.type), rounded(form, mode)

    def run(*operands: np.ndarray) -> np.ndarray:
        *halves, single = operands
        return plain(*(value(x).view(U32) for x in halves), single)

    return run


@define("add sub mul fma", ("f32x2",), "T T -> T", "T T T -> T", flags=f"{ROUNDED} ftz")
def packed32(form: Form) -> Fn | None:
    """Two float32 in 64 bits, each as by the scalar instruction."""
    if (form.nargs == 3) != (form.name == "fma"):
        return None
    mode = form.choice(*MODES, default="" if form.name == "fma" else "rn")
    return on_lanes(rounded(form, mode), U32) if mode else None


@define("abs", TYPES, "T -> T", flags="ftz")
def absolute(form: Form) -> Fn | None:
    sign = ~SIGN[form.type]
    return on_sign(form, lambda a: a & sign)


@define("neg", TYPES, "T -> T", flags="ftz")
def negate(form: Form) -> Fn | None:
    sign = SIGN[form.type]
    return on_sign(form, lambda a: a ^ sign)


def on_sign(form: Form, change: Fn) -> Fn | None:
    """An instruction that only touches the sign, but for .ftz and NaN."""
    if form.type == "f64":
        return None if "ftz" in form.flags else change
    if "ftz" in form.flags:
        return lambda a: bits32(change(flush32(a)).view(F32))
    return lambda a: bits32(change(a).view(F32))


@define("min max", ("f32",), "T T -> T", "T T T -> T", flags="ftz NaN xorsign abs")
def extremum32(form: Form) -> Fn | None:
    """Of two numbers, or of three."""
    pick = EXTREMA[form.name, form.choice("NaN")]
    if form.nargs == 3:
        return None if "xorsign" in form.flags else dress32(of_three(pick, form), form)
    if ("abs" in form.flags) != ("xorsign" in form.flags):
        return None
    return dress32(xorsign(pick) if "xorsign" in form.flags else pick, form)


def of_three(pick: Fn, form: Form) -> Fn:
    """Of three numbers, or of their magnitudes (.abs)."""
    if "abs" in form.flags:
        return lambda a, b, c: pick(pick(np.abs(a), np.abs(b)), np.abs(c))
    return lambda a, b, c: pick(pick(a, b), c)


def xorsign(pick: Fn) -> Fn:
    """Of the magnitudes, with the product's sign (.xorsign.abs)."""

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        magnitude = pick(np.abs(a), np.abs(b))
        return np.where(np.signbit(a) ^ np.signbit(b), -magnitude, magnitude)

    return run


@define("min max", ("f64",), "T T -> T")
def extremum64(form: Form) -> Fn:
    return dress64(EXTREMA[form.name, ""])
