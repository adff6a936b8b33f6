"""cvt and cvt.pack between integers.

Models every pair of integer types from 8 to 64 bits, with .sat. Follows the PTX ISA, "cvt" and
"cvt.pack". 8-bit values lie zero-extended in uint16.
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.forms import NBITS, SIGNED, UNSIGNED, Fn, Form, Table, is_signed, storage

TABLE = Table()
define = TABLE.define

KINDS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


def bounds(kind: str) -> tuple[int, int]:
    """The least and the largest value of an integer type."""
    nbits = NBITS[kind]
    return (
        (-(1 << (nbits - 1)), (1 << (nbits - 1)) - 1) if is_signed(kind) else (0, (1 << nbits) - 1)
    )


def read(kind: str) -> Fn:
    """From raw bits to an array whose dtype has the values."""
    if kind == "s8":
        by = np.int16(8)
        return lambda a: (a << np.uint16(8)).view(np.int16) >> by
    dtype = (SIGNED if is_signed(kind) else UNSIGNED)[max(NBITS[kind], 16)]
    return lambda a: a.view(dtype)


def write(kind: str) -> Fn:
    """From values of any integer dtype to raw bits, modulo the type's width."""
    dtype = storage(kind)
    if NBITS[kind] == 8:
        return lambda values: values.astype(dtype) & np.uint16(0xFF)
    return lambda values: values.astype(dtype)


def clamp(target: str, source: str) -> Fn:
    """Saturates values of the source type to the target's range."""
    (low, high), (least, largest) = bounds(target), bounds(source)
    low, high = max(low, least), min(high, largest)
    return lambda values: np.clip(values, values.dtype.type(low), values.dtype.type(high))


def convert(target: str, source: str, sat: bool) -> Fn:
    values, bits, limit = read(source), write(target), clamp(target, source)
    if sat:
        return lambda a: bits(limit(values(a)))
    return lambda a: bits(values(a))


@define("cvt", KINDS, "T -> U", flags="sat")
def cvt(form: Form) -> Fn | None:
    if form.types[0] not in KINDS:
        return None
    return convert(*form.types, "sat" in form.flags)


@define("cvt.pack", ("s32",), "T T -> b32", flags="sat", ntypes=2)
def pack_pair(form: Form) -> Fn | None:
    """Saturate both; a goes above b."""
    return pack(form, ("u16", "s16"))


@define("cvt.pack", ("b32",), "s32 s32 T -> b32", flags="sat", ntypes=3)
def pack_more(form: Form) -> Fn | None:
    """Likewise, below what c holds in its low bits."""
    return pack(form, ("u8", "s8", "u4", "s4", "u2", "s2"))


def pack(form: Form, kinds: tuple[str, ...]) -> Fn | None:
    kind = form.types[0]
    if kind not in kinds or form.types[1] != "s32" or "sat" not in form.flags:
        return None
    nbits, limit = np.uint32(NBITS[kind]), clamp(kind, "s32")
    mask = np.uint32((1 << NBITS[kind]) - 1)

    def field(a: np.ndarray) -> np.ndarray:
        return limit(a.view(np.int32)).view(np.uint32) & mask

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        both = (field(a) << nbits) | field(b)
        return both if c is None else (c << (nbits + nbits)) | both

    return run
