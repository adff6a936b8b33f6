"""cvt to, from and between floating-point types.

Models integers to floats and back (saturating; what NaN becomes is as recorded), floats to floats
with every rounding mode, rounding to integral values, .ftz, .sat, .relu, .satfinite, packed pairs
and tf32. FP8 is in `convert_fp8`; stochastic rounding and the FP6 and FP4 formats are not modelled.
Follows the PTX ISA, "cvt".
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.convert_integer import KINDS, bounds, read, write
from lesson.emulator.alu.floats import saturate
from lesson.emulator.alu.formats import FORMATS, flusher, to_values
from lesson.emulator.alu.forms import NBITS, UNSIGNED, Fn, Form, Table, is_signed
from lesson.emulator.alu.half import relu
from lesson.emulator.alu.rounding import (
    F32,
    F64,
    from_integer,
    result_flusher,
    to_bf16,
    to_f16,
    to_f32,
)
from lesson.emulator.alu.single import MODES

TABLE = Table()
define = TABLE.define

FLOATS = ("f16", "bf16", "f32", "f64")
TO_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
ROUNDED, INTEGRAL = " ".join(MODES), " ".join(TO_INTEGRAL)


def encode(kind: str, mode: str) -> Fn:
    """From float32 or float64 arrays to the bits of a type; NaNs made canonical."""
    if kind == "f64":
        return lambda x: x.astype(F64).view(np.uint64)
    dtype, nan = UNSIGNED[NBITS[kind]], UNSIGNED[NBITS[kind]](FORMATS[kind].nan)
    if kind == "f32":

        def narrow(x: np.ndarray) -> np.ndarray:
            return (x if x.dtype == F32 else to_f32(x, mode)).view(dtype)

    else:
        to_half = {"f16": to_f16, "bf16": to_bf16}[kind]

        def narrow(x: np.ndarray) -> np.ndarray:
            return to_half(x, mode)

    def run(x: np.ndarray) -> np.ndarray:
        peak = x.max()
        return np.where(np.isnan(x), nan, narrow(x)) if peak != peak else narrow(x)

    return run


# ------------------------------------------------------------------------- integers to floats


def integer_to_float(target: str, source: str, mode: str) -> Fn:
    """Integer bits to float bits. Up to 32 bits are exact in float64, more need not be."""
    value = read(source)
    if mode == "rn" and target in ("f32", "f64"):
        dtype, bits = (F32, np.uint32) if target == "f32" else (F64, np.uint64)
        return lambda a: value(a).astype(dtype).view(bits)
    if NBITS[source] < 64:
        bits = encode(target, mode)
        return lambda a: bits(value(a).astype(F64))
    fmt, signed, dtype = FORMATS[target], is_signed(source), UNSIGNED[NBITS[target]]
    return lambda a: from_integer(a, signed, fmt, mode).astype(dtype)


@define("cvt", KINDS, "T -> U", flags=f"{ROUNDED} sat")
def from_integers(form: Form) -> Fn | None:
    target, mode = form.types[0], form.choice(*MODES)
    if target not in FLOATS or not mode:
        return None
    convert = integer_to_float(target, form.type, mode)
    if "sat" not in form.flags:
        return convert
    value, bits = to_values(target), encode(target, "rn")
    return lambda a: bits(saturate(value(convert(a))))


# ------------------------------------------------------------------------- floats to integers


def nan_result(target: str, source: str) -> int:
    """What a NaN becomes: the target's highest bit if either type has 64, else zero."""
    return 1 << (NBITS[target] - 1) if 64 in (NBITS[target], NBITS[source]) else 0


def float_to_integer(target: str, source: str, mode: str) -> Fn:
    """Float values to integer bits, saturating."""
    (low, high), round_, bits = bounds(target), TO_INTEGRAL[mode], write(target)
    dtype, nan = np.dtype(np.int64 if is_signed(target) else np.uint64), nan_result(target, source)

    def run(x: np.ndarray) -> np.ndarray:
        whole = round_(x)
        if low <= whole.min() and whole.max() < high + 1:
            return bits(whole.astype(dtype))
        whole = whole.astype(F64)
        # high + 1 is a power of two, so exact; high need not be.
        below, above = whole < float(low), whole >= float(high + 1)
        inside = ~(below | above | np.isnan(whole))
        result = bits(np.where(inside, whole, F64(0)).astype(dtype))
        mask = (1 << NBITS[target]) - 1
        result = np.where(below, result.dtype.type(low & mask), result)
        result = np.where(above, result.dtype.type(high), result)
        return np.where(np.isnan(x), result.dtype.type(nan), result)

    return run


@define("cvt", FLOATS, "T -> U", flags=f"{INTEGRAL} ftz sat")
def to_integers(form: Form) -> Fn | None:
    target, source, mode = form.types[0], form.type, form.choice(*TO_INTEGRAL)
    ftz = "ftz" in form.flags
    if target not in KINDS or not mode or (ftz and source != "f32"):
        return None
    value, integer, flush = (
        to_values(source),
        float_to_integer(target, source, mode),
        flusher(source),
    )
    return lambda a: integer(value(flush(a) if ftz else a))


# --------------------------------------------------------------------------- floats to floats


def rounding_mode(form: Form) -> str | None:
    """How a float-to-float conversion rounds; None where PTX wants a mode, or where it has none."""
    target, source = form.types
    mode, narrows = form.choice(*MODES), (target, source) not in WIDENINGS
    return mode or None if narrows else (None if mode else "rn")


WIDENINGS = {
    *((kind, kind) for kind in FLOATS),
    *(("f32", "f16"), ("f64", "f16"), ("f32", "bf16"), ("f64", "bf16"), ("f64", "f32")),
}


def dress(form: Form, target: str, source: str, core: Fn) -> Fn:
    """Bits to bits by way of values, with .ftz (of float32 only), .sat and .relu."""
    value, ftz = to_values(source), "ftz" in form.flags
    before = flusher("f32") if ftz and source == "f32" else None
    after = result_flusher("f32", core) if ftz and target == "f32" else None
    clamp = {"sat": saturate, "relu": relu, "": None}[form.choice("sat", "relu")]

    def run(a: np.ndarray) -> np.ndarray:
        x = value(a if before is None else before(a))
        result = core(x if clamp is None else clamp(x))
        return result if after is None else after(result, lambda: x)

    return run


@define("cvt", FLOATS, "T -> U", flags=f"{ROUNDED} ftz sat relu")
def between_floats(form: Form) -> Fn | None:
    if form.types[0] not in FLOATS:
        return None
    mode = rounding_mode(form)
    if mode is None or ("relu" in form.flags and form.types[0] not in ("f16", "bf16")):
        return None
    return dress(form, *form.types, encode(form.types[0], mode))


@define("cvt", FLOATS, "T -> U", flags=f"{INTEGRAL} ftz sat")
def to_integral(form: Form) -> Fn | None:
    """Rounds to a whole number of the same type; a negative fraction may become -0."""
    round_, bits = TO_INTEGRAL.get(form.choice(*TO_INTEGRAL)), encode(form.type, "rn")
    if form.types[0] != form.type or round_ is None:
        return None
    return dress(form, *form.types, lambda x: bits(round_(x)))


@define("cvt", ("f32",), "T T -> U", flags="rn rz relu")
def to_pair(form: Form) -> Fn | None:
    """Two float32 into one packed register: the first goes above the second."""
    target, mode = form.types[0], form.choice("rn", "rz")
    if target not in ("f16x2", "bf16x2") or not mode:
        return None
    kind = target.removesuffix("x2")
    half = dress(form, kind, "f32", encode(kind, mode))

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (half(a).astype(np.uint32) << np.uint32(16)) | half(b)

    return run


LOW13 = np.uint32(0x1FFF)


@define("cvt", ("f32",), "T -> U", flags="rna rn rz relu satfinite")
def to_tf32(form: Form) -> Fn | None:
    """Keeps 10 fraction bits of a float32; the 13 below, which PTX leaves open, become zero.

    Of a NaN .rna keeps the upper bits too; the other modes give one NaN for all.
    """
    mode = form.choice("rna", "rn", "rz")
    if form.types[0] != "tf32" or not mode:
        return None
    clamp, finite = "relu" in form.flags, "satfinite" in form.flags

    def run(a: np.ndarray) -> np.ndarray:
        half = np.uint32(0x1000) if mode == "rna" else np.uint32(0xFFF) + ((a >> np.uint32(13)) & 1)
        rounded = (a if mode == "rz" else a + half) & ~LOW13
        magnitude = a & np.uint32(0x7FFFFFFF)
        rounded = np.where(magnitude == 0x7F800000, a, rounded)
        if finite:
            top = np.uint32(0x7F7FE000) | (a & np.uint32(1 << 31))
            rounded = np.where((rounded & np.uint32(0x7FFFFFFF)) >= 0x7F800000, top, rounded)
        if clamp:
            rounded = np.where((a >> np.uint32(31)) != 0, np.uint32(0), rounded)
        nan = a & ~LOW13 if mode == "rna" else np.uint32(0x7FFFE000)
        return np.where(magnitude > 0x7F800000, nan, rounded)

    return run
