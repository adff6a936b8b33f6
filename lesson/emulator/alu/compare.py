"""Comparison: setp and set.

Models both over integers, bits, f32, f64 and the half types, with .ftz, a second (negated)
predicate and the combination with a third. Follows the PTX ISA, "Comparison and Selection
Instructions" and "Half Precision Comparison Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lesson.emulator.alu.formats import flusher, lanes_of, to_values
from lesson.emulator.alu.forms import BITS, INTS, NBITS, SIGNED, Fn, Form, Table, storage

TABLE = Table()
define = TABLE.define

FLOATS = ("f32", "f64", "f16", "bf16")
PACKED = ("f16x2", "bf16x2")
Compare = Callable[[np.ndarray, np.ndarray], np.ndarray]

INTEGER = {
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal},
    **{"gt": np.greater, "ge": np.greater_equal},
    **{"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal},
}


def ordered(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Neither is NaN."""
    return (a == a) & (b == b)


# numpy's comparisons are false when an operand is NaN, except `!=`. An unordered comparison, true
# when one is, is therefore the negation of its ordered opposite.
FLOAT: dict[str, Compare] = {
    "eq": np.equal,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": ordered,
    "nan": lambda a, b: ~ordered(a, b),
}

FOLD = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
FLAGS = " ".join(["ftz", *FLOAT, *INTEGER, *FOLD])


def comparison(form: Form) -> Compare | None:
    """The comparison of raw bits that a form names; one of packed types gives a row a pair."""
    kind = form.type
    if kind in FLOATS + PACKED:
        compare = FLOAT.get(form.choice(*FLOAT))
        return compare and compare_values(form, compare)
    compare = INTEGER.get(form.choice(*INTEGER))
    unsigned_only = form.choice("lo", "ls", "hi", "hs")
    equality = form.choice("eq", "ne")
    if compare is None or "ftz" in form.flags or (unsigned_only and kind[0] != "u"):
        return None
    if kind[0] == "b":
        return compare if equality else None
    if kind[0] == "u" or equality:
        return compare
    inner = SIGNED[form.nbits]
    return lambda a, b: compare(a.view(inner), b.view(inner))


def compare_values(form: Form, compare: Compare) -> Compare | None:
    """A comparison of floats, as one of their bits."""
    lane = form.type.removesuffix("x2")
    value, flush, packed = to_values(lane), flusher(lane), form.type in PACKED
    if "ftz" in form.flags:
        if lane not in ("f32", "f16"):
            return None
        return lambda a, b: compare(
            value(flush(lanes_of(a, packed))), value(flush(lanes_of(b, packed)))
        )
    if packed:
        return lambda a, b: compare(value(lanes_of(a, True)), value(lanes_of(b, True)))
    return lambda a, b: compare(value(a), value(b))


SETP_SIGNATURES = (
    *("T T -> pred", "T T pred -> pred"),
    *("T T -> pred pred", "T T pred -> pred pred"),
)


@define("setp", BITS + INTS + FLOATS, *SETP_SIGNATURES, flags=FLAGS)
def setp(form: Form) -> Fn | None:
    """p = (a cmp b) fold c, q = !(a cmp b) fold c."""
    compare, fold = comparison(form), FOLD.get(form.choice(*FOLD))
    if compare is None or (form.nargs == 3) != (fold is not None):
        return None
    if form.nouts == 1:
        return compare if fold is None else lambda a, b, c: fold(compare(a, b), c)

    def both(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        p = compare(a, b)
        return (p, ~p) if fold is None else (fold(p, c), fold(~p, c))

    return both


@define("setp", PACKED, *SETP_SIGNATURES[2:], flags=FLAGS)
def setp_packed(form: Form) -> Fn | None:
    """p for the lower lane, q for the upper; a third predicate combines with both."""
    compare, fold = comparison(form), FOLD.get(form.choice(*FOLD))
    if compare is None or (form.nargs == 3) != (fold is not None):
        return None

    def both(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        p, q = np.moveaxis(compare(a, b), -1, 0)
        return (p, q) if fold is None else (fold(p, c), fold(q, c))

    return both


ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}


@define("set", BITS + INTS + FLOATS, "T T -> U", "T T pred -> U", flags=FLAGS)
def set_(form: Form) -> Fn | None:
    """True is all ones, or 1.0 of a float type."""
    compare, fold = comparison(form), FOLD.get(form.choice(*FOLD))
    target = form.types[0]
    if compare is None or (form.nargs == 3) != (fold is not None):
        return None
    if target not in ("u32", "s32", "u16", "s16", "f32", "f16", "bf16"):
        return None
    dtype = storage(target)
    true = dtype(ONE.get(target, (1 << NBITS[target]) - 1))
    if fold is None:
        return lambda a, b: np.where(compare(a, b), true, dtype(0))
    return lambda a, b, c: np.where(fold(compare(a, b), c), true, dtype(0))


@define("set", PACKED, "T T -> U", "T T pred -> U", flags=FLAGS)
def set_packed(form: Form) -> Fn | None:
    """Each lane as by the scalar instruction, into half a word where the target is no pair."""
    compare, fold = comparison(form), FOLD.get(form.choice(*FOLD))
    if compare is None or (form.nargs == 3) != (fold is not None):
        return None
    if form.types[0] not in ("u32", "s32", form.type):
        return None
    true, false = np.uint16(ONE.get(form.types[0], 0xFFFF)), np.uint16(0)

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        hit = compare(a, b) if fold is None else fold(compare(a, b), c[:, None])
        return np.ascontiguousarray(np.where(hit, true, false)).view(np.uint32).reshape(-1)

    return run
