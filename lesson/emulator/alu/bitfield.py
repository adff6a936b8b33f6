"""Bit fields and bit counts.

Models bfe, bfi, brev, popc, clz, bfind, szext, bmsk and fns. Follows the PTX ISA, "Integer
Arithmetic Instructions". Of positions and lengths the 32-bit bfe and bfi take the low 8 bits, as
its pseudocode says; the 64-bit ones take all bits, as the chip does.
"""

from __future__ import annotations

import numpy as np

from lesson.emulator.alu.forms import INT32_64, SIGNED, UNSIGNED, Fn, Form, Table

TABLE = Table()
define = TABLE.define

WORDS = ("b32", "b64")
BYTE = np.uint32(0xFF)
REVERSED = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint8)
NONE = np.uint32(0xFFFFFFFF)


def bit_length(a: np.ndarray) -> np.ndarray:
    """Position of the highest set bit plus one, as int64; 0 for zero. Any unsigned dtype.

    Clearing every bit below a set one keeps the highest, and leaves nothing that could round up.
    """
    return np.frexp((a & ~(a >> a.dtype.type(1))).astype(np.float64))[1].astype(np.int64)


def ones(count: np.ndarray, dtype: type[np.generic]) -> np.ndarray:
    """Words with the lowest `count` bits set; all of them from the width on."""
    return (dtype(1) << count.astype(dtype)) - dtype(1)


def field_operand(nbits: int) -> Fn:
    """A position or a length of bfe or bfi, at most 255."""
    return (lambda n: n & BYTE) if nbits == 32 else (lambda n: np.minimum(n, BYTE))


@define("bfe", INT32_64, "T u32 u32 -> T")
def bfe(form: Form) -> Fn:
    """Extract a field; a signed one is extended by its highest bit that the word has."""
    nbits, outer, inner = form.nbits, UNSIGNED[form.nbits], SIGNED[form.nbits]
    take = field_operand(nbits)
    if not form.signed:
        return lambda a, at, n: (a >> take(at)) & ones(take(n), outer)

    def signed(a: np.ndarray, at: np.ndarray, n: np.ndarray) -> np.ndarray:
        at, n = take(at).astype(inner), take(n).astype(inner)
        above = np.maximum(inner(nbits) - at - n, inner(0))
        shifted = (a << above.view(outer)).view(inner) >> np.minimum(above + at, inner(nbits - 1))
        return np.where(n == 0, inner(0), shifted).view(outer)

    return signed


@define("bfi", WORDS, "T T u32 u32 -> T")
def bfi(form: Form) -> Fn:
    """Insert the low bits of a into b."""
    dtype, take = UNSIGNED[form.nbits], field_operand(form.nbits)

    def run(a: np.ndarray, b: np.ndarray, at: np.ndarray, n: np.ndarray) -> np.ndarray:
        at = take(at).astype(dtype)
        mask = ones(take(n), dtype) << at
        return (b & ~mask) | ((a << at) & mask)

    return run


@define("brev", WORDS, "T -> T")
def brev(form: Form) -> Fn:
    dtype = UNSIGNED[form.nbits]
    return lambda a: REVERSED[a.byteswap().view(np.uint8)].view(dtype)


@define("popc", WORDS, "T -> u32")
def popc(form: Form) -> Fn:
    return lambda a: np.bitwise_count(a).astype(np.uint32)


@define("clz", WORDS, "T -> u32")
def clz(form: Form) -> Fn:
    nbits = form.nbits
    return lambda a: (nbits - bit_length(a)).astype(np.uint32)


@define("bfind", INT32_64, "T -> u32", flags="shiftamt")
def bfind(form: Form) -> Fn:
    """The highest bit that differs from the sign, or its distance from the top; ~0 if none does."""
    inner, outer, last = SIGNED[form.nbits], UNSIGNED[form.nbits], form.nbits - 1
    signed, as_shift = form.signed, "shiftamt" in form.flags

    def run(a: np.ndarray) -> np.ndarray:
        if signed:
            a = a ^ (a.view(inner) >> inner(last)).view(outer)
        at = bit_length(a) - 1
        return np.where(at < 0, NONE, (last - at if as_shift else at).astype(np.uint32))

    return run


def count32(form: Form) -> Fn:
    """A count of bits up to 32 from an operand: modulo 32 or at most 32."""
    return (lambda n: n & np.uint32(31)) if "wrap" in form.flags else (lambda n: np.minimum(n, 32))


@define("szext", ("u32", "s32"), "T u32 -> T", flags="wrap clamp")
def szext(form: Form) -> Fn:
    """Extend the low n bits by zeros, or by bit n - 1."""
    count, signed = count32(form), form.signed

    def run(a: np.ndarray, n: np.ndarray) -> np.ndarray:
        n = count(n)
        if not signed:
            return a & ones(n, np.uint32)
        above = np.minimum(np.uint32(32) - n, np.uint32(31))
        extended = ((a << above).view(np.int32) >> above.view(np.int32)).view(np.uint32)
        return np.where(n == 0, np.uint32(0), extended)

    return run


@define("bmsk", ("b32",), "u32 u32 -> T", flags="wrap clamp")
def bmsk(form: Form) -> Fn:
    """A mask of b ones from bit a on."""
    count = count32(form)
    return lambda a, b: ones(count(b), np.uint32) << count(a)


@define("fns", ("b32",), "T u32 s32 -> T")
def fns(form: Form) -> Fn:
    """The position of the n-th set bit from `base`, upwards or (n < 0) downwards; ~0 if none.

    n = 0 asks for `base` itself. A base above 31 finds nothing, also downwards.
    """

    def run(mask: np.ndarray, base: np.ndarray, n: np.ndarray) -> np.ndarray:
        n, base = n.view(np.int32).astype(np.int64), base.astype(np.int64)
        step, wanted = np.where(n < 0, -1, 1), np.maximum(np.abs(n), 1)
        found = np.full(np.broadcast_shapes(mask.shape, base.shape, n.shape), NONE)
        seen = np.zeros_like(wanted)
        for distance in range(32):
            at = base + step * distance
            bit = (mask >> np.clip(at, 0, 31).astype(np.uint32)) & 1
            hit = (bit != 0) & (at >= 0) & (at < 32) & (base < 32) & ((n != 0) | (distance == 0))
            seen = seen + hit
            found = np.where(hit & (seen == wanted), at.astype(np.uint32), found)
        return found

    return run
