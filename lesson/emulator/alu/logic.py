"""Logic and shifts, and the two that look anything up: lop3 and prmt.

Models and, or, xor, not, cnot, lop3, shl, shr, shf and prmt. Follows the PTX ISA, "Logic and Shift
Instructions" and "prmt". numpy defines shifts by more than the width (zero, or copies of the sign),
which is what PTX wants of shl and shr; a test holds it to that.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lesson.emulator.alu.forms import BITS, INTS, SIGNED, UNSIGNED, Fn, Form, Table

TABLE = Table()
define = TABLE.define

LOGIC = ("pred", *BITS)


@define("and", LOGIC, "T T -> T")
def bitwise_and(form: Form) -> Fn:
    return np.bitwise_and


@define("or", LOGIC, "T T -> T")
def bitwise_or(form: Form) -> Fn:
    return np.bitwise_or


@define("xor", LOGIC, "T T -> T")
def bitwise_xor(form: Form) -> Fn:
    return np.bitwise_xor


@define("not", LOGIC, "T -> T")
def bitwise_not(form: Form) -> Fn:
    return np.invert


@define("cnot", BITS, "T -> T")
def cnot(form: Form) -> Fn:
    """C's logical negation: 1 for zero, else 0."""
    dtype = UNSIGNED[form.nbits]
    return lambda a: (a == 0).astype(dtype)


@define("shl", BITS, "T u32 -> T")
def shl(form: Form) -> Fn:
    if form.nbits == 16:
        return lambda a, n: (a << n).astype(np.uint16)
    return np.left_shift


@define("shr", BITS + INTS, "T u32 -> T")
def shr(form: Form) -> Fn:
    """Fills with the sign for signed types, else with zeros."""
    outer, inner = UNSIGNED[form.nbits], SIGNED[form.nbits]
    if form.signed:
        if form.nbits == 32:
            return lambda a, n: (a.view(inner) >> n.view(inner)).view(outer)
        last = np.uint32(form.nbits - 1)
        return lambda a, n: (a.view(inner) >> np.minimum(n, last).astype(inner)).view(outer)
    if form.nbits == 16:
        return lambda a, n: (a >> n).astype(np.uint16)
    return np.right_shift


@define("shf.l shf.r", ("b32",), "T T u32 -> T", flags="wrap clamp")
def shf(form: Form) -> Fn:
    """Shift the 64 bits b:a; the upper word of a left shift, the lower of a right one."""
    left, wrap = form.name == "shf.l", "wrap" in form.flags
    by32, most = np.uint64(32), np.uint32(31 if wrap else 32)
    amount = np.bitwise_and if wrap else np.minimum

    def run(a: np.ndarray, b: np.ndarray, n: np.ndarray) -> np.ndarray:
        both, by = (b.astype(np.uint64) << by32) | a, amount(n, most)
        return ((both << by) >> by32 if left else both >> by).astype(np.uint32)

    return run


@lru_cache(maxsize=256)
def truth_table(lut: int, nargs: int) -> Fn | int:
    """The function of `nargs` words that a truth table stands for; 0 and 1 stand for constants.

    Splits f(a, rest) into f(0, rest) ^ (a & (f(0, rest) ^ f(1, rest))): two smaller tables.
    """
    if nargs == 0:
        return lut & 1
    half = 1 << (nargs - 1)
    low = lut & ((1 << half) - 1)
    base, change = truth_table(low, nargs - 1), truth_table((lut >> half) ^ low, nargs - 1)

    def run(a: np.ndarray, *rest: np.ndarray) -> np.ndarray | int:
        start, flips = base, change
        if callable(base):
            start = base(*rest)
        if callable(change):
            flips = change(*rest)
        return combine(start, a, flips)

    return run


def combine(start: np.ndarray | int, a: np.ndarray, flips: np.ndarray | int) -> np.ndarray | int:
    """start ^ (a & flips), where 0 and 1 stand for no bits and all bits."""
    if isinstance(flips, int):
        if not flips:
            return start
        term = a
    else:
        term = a & flips
    if isinstance(start, int):
        return ~term if start else term
    return start ^ term


@define("lop3", ("b32",), "T T T u32 -> T")
def lop3(form: Form) -> Fn:
    """Any function of three bits; immLut is an immediate, so the same for all lanes."""

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray, lut: np.ndarray) -> np.ndarray:
        result = truth_table(int(lut[0]) & 0xFF, 3)(a, b, c)
        if isinstance(result, int):
            return np.zeros_like(a) if not result else ~np.zeros_like(a)
        return result

    return run


@define("lop3", ("b32",), "T T T u32 pred -> T pred", flags="and or")
def lop3_predicate(form: Form) -> Fn | None:
    """Also whether any bit is set, combined with a predicate."""
    word = lop3(form)
    fold = {"and": np.logical_and, "or": np.logical_or}.get(form.choice("and", "or"))

    def run(*operands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = word(*operands[:-1])
        return result, fold(result != 0, operands[-1])

    return run if fold else None


# Selectors of the special modes, by the two low bits of c.
PRMT_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@define("prmt", ("b32",), "T T T -> T", flags=" ".join(PRMT_MODES))
def prmt(form: Form) -> Fn:
    """Four bytes picked from the eight of b:a by nibbles; bit 3 of one replicates the sign."""
    mode = form.choice(*PRMT_MODES)
    if not mode:
        return permute
    selectors = np.array(PRMT_MODES[mode], np.uint32)
    return lambda a, b, c: permute(a, b, selectors[c & np.uint32(3)])


def permute(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    if len(selector) == 1:
        return permute_alike(a, b, int(selector[0]))
    both = (b.astype(np.uint64) << np.uint64(32)) | a
    any_sign, total = (selector & np.uint32(0x8888)).any(), np.zeros(1, np.uint32)
    for i in range(4):
        nibble = selector >> np.uint32(4 * i)
        byte = (both >> ((nibble & np.uint32(7)) << np.uint32(3))).astype(np.uint8)
        if any_sign:
            signs = (byte.view(np.int8) >> np.int8(7)).view(np.uint8)
            byte = np.where((nibble & np.uint32(8)) != 0, signs, byte)
        total = total | (byte.astype(np.uint32) << np.uint32(8 * i))
    return total


def permute_alike(a: np.ndarray, b: np.ndarray, selector: int) -> np.ndarray:
    """The same bytes for all lanes, as when the selector is an immediate."""
    sources = [np.ascontiguousarray(x).view(np.uint8).reshape(-1, 4) for x in (a, b)]
    total = np.empty((max(len(a), len(b)), 4), np.uint8)
    for i in range(4):
        nibble = selector >> (4 * i)
        byte = sources[(nibble >> 2) & 1][:, nibble & 3]
        total[:, i] = (byte.view(np.int8) >> np.int8(7)).view(np.uint8) if nibble & 8 else byte
    return total.view(np.uint32).reshape(-1)
