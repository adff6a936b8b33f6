"""An independent reference for integer, logic and bit-field instructions, on Python's ints.

Operands and results are raw bits, as Python ints. Shares no code with the emulator. `REFERENCE` has
a function for every opcode; it gets the instruction's word and its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """An instruction's name, flags and type: `mad.hi.sat.s32`."""

    mods: tuple[str, ...]
    kind: str

    @property
    def nbits(self) -> int:
        return int(self.kind[1:])

    @property
    def mask(self) -> int:
        return (1 << self.nbits) - 1

    @property
    def signed(self) -> bool:
        return self.kind[0] == "s"

    def value(self, bits: int) -> int:
        """The number that raw bits of this type stand for."""
        return value_of(bits, self.nbits, self.signed)

    def clamp(self, value: int) -> int:
        low, high = (-(1 << (self.nbits - 1)), self.mask >> 1) if self.signed else (0, self.mask)
        return min(max(value, low), high) & self.mask


def value_of(bits: int, nbits: int, signed: bool) -> int:
    return bits - (1 << nbits) if signed and bits >> (nbits - 1) else bits


def product(w: Word, a: int, b: int) -> int:
    return w.value(a) * w.value(b)


def half_product(w: Word, a: int, b: int) -> int:
    """The half that .lo or .hi names, as a number of the type."""
    whole = product(w, a, b)
    return w.value((whole >> w.nbits if "hi" in w.mods else whole) & w.mask)


def divide(w: Word, a: int, b: int) -> tuple[int, int]:
    """Quotient towards zero, and the remainder."""
    if b == 0:
        return w.mask, w.mask
    x, y = w.value(a), w.value(b)
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return quotient & w.mask, (x - quotient * y) & w.mask


def mul24(w: Word, a: int, b: int) -> int:
    x, y = (value_of(v & 0xFFFFFF, 24, w.signed) for v in (a, b))
    return w.value((x * y >> (16 if "hi" in w.mods else 0)) & w.mask)


def extremum(w: Word, pick: Callable[[int, int], int], a: int, b: int) -> int:
    chosen = pick(w.value(a), w.value(b))
    return (max(chosen, 0) if "relu" in w.mods else chosen) & w.mask


def saturated(w: Word, value: int) -> int:
    return w.clamp(value) if "sat" in w.mods else value & w.mask


def shift_left(w: Word, a: int, n: int) -> int:
    return a << min(n, w.nbits) & w.mask


def shift_right(w: Word, a: int, n: int) -> int:
    return w.value(a) >> min(n, w.nbits) & w.mask


def funnel(w: Word, a: int, b: int, n: int) -> int:
    both, by = b << 32 | a, n & 31 if "wrap" in w.mods else min(n, 32)
    return (both << by >> 32 if "l" in w.mods else both >> by) & w.mask


def field_number(w: Word, n: int) -> int:
    return n & 255 if w.nbits == 32 else n


def bfe(w: Word, a: int, at: int, n: int) -> int:
    """Bit by bit, as the PTX ISA puts it."""
    at, n, last = field_number(w, at), field_number(w, n), w.nbits - 1
    sign = a >> min(at + n - 1, last) & 1 if n and w.signed else 0
    bits = [a >> (at + i) & 1 if i < n and at + i <= last else sign for i in range(w.nbits)]
    return sum(bit << i for i, bit in enumerate(bits))


def bfi(w: Word, a: int, b: int, at: int, n: int) -> int:
    at, n = field_number(w, at), field_number(w, n)
    for i in range(min(n, w.nbits)):
        if at + i < w.nbits:
            b = b & ~(1 << (at + i)) | (a >> i & 1) << (at + i)
    return b


def bfind(w: Word, a: int) -> int:
    if w.value(a) < 0:
        a = ~a & w.mask
    at = a.bit_length() - 1
    if at < 0:
        return 0xFFFFFFFF
    return w.nbits - 1 - at if "shiftamt" in w.mods else at


def count32(w: Word, n: int) -> int:
    return n & 31 if "wrap" in w.mods else min(n, 32)


def szext(w: Word, a: int, n: int) -> int:
    n = count32(w, n)
    return value_of(a & ((1 << n) - 1), n, w.signed) & w.mask if n else 0


def bmsk(w: Word, at: int, n: int) -> int:
    return ((1 << count32(w, n)) - 1) << count32(w, at) & w.mask


def prmt(w: Word, a: int, b: int, c: int) -> int:
    i = c & 3
    # Bytes of b:a by position, lowest first.
    picks = {
        "f4e": [i, i + 1, i + 2, i + 3],
        "b4e": [i % 8, (i - 1) % 8, (i - 2) % 8, (i - 3) % 8],
        "rc8": [i] * 4,
        "ecl": [max(k, i) for k in range(4)],
        "ecr": [min(k, i) for k in range(4)],
        "rc16": [0, 1, 0, 1] if i % 2 == 0 else [2, 3, 2, 3],
    }
    mode = next((m for m in w.mods if m in picks), None)
    chosen = picks[mode] if mode else [c >> 4 * k & 15 for k in range(4)]
    result = 0
    for k, pick in enumerate(chosen):
        byte = (b << 32 | a) >> 8 * (pick & 7) & 255
        if pick & 8:
            byte = 255 if byte & 128 else 0
        result |= byte << 8 * k
    return result


def lop3(w: Word, a: int, b: int, c: int, lut: int) -> int:
    bits = (lut >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1 for i in range(32))
    return sum(bit << i for i, bit in enumerate(bits))


def fns(w: Word, mask: int, base: int, n: int) -> int:
    """The loop of the PTX ISA."""
    offset = value_of(n, 32, True)
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else 0xFFFFFFFF
    step, left, at = (1, offset, base) if offset > 0 else (-1, -offset, base)
    while 0 <= at < 32:
        left -= mask >> at & 1
        if left == 0:
            return at
        at += step
    return 0xFFFFFFFF


REFERENCE: dict[str, Callable[..., int]] = {
    "add": lambda w, a, b: saturated(w, w.value(a) + w.value(b)),
    "sub": lambda w, a, b: saturated(w, w.value(a) - w.value(b)),
    "mul": lambda w, a, b: (
        product(w, a, b) & ((1 << 2 * w.nbits) - 1)
        if "wide" in w.mods
        else half_product(w, a, b) & w.mask
    ),
    "mad": lambda w, a, b, c: (
        product(w, a, b) + c & ((1 << 2 * w.nbits) - 1)
        if "wide" in w.mods
        else saturated(w, half_product(w, a, b) + w.value(c))
    ),
    "mul24": lambda w, a, b: mul24(w, a, b) & w.mask,
    "mad24": lambda w, a, b, c: saturated(w, mul24(w, a, b) + w.value(c)),
    "sad": lambda w, a, b, c: c + abs(w.value(a) - w.value(b)) & w.mask,
    "div": lambda w, a, b: divide(w, a, b)[0],
    "rem": lambda w, a, b: divide(w, a, b)[1],
    "abs": lambda w, a: abs(w.value(a)) & w.mask,
    "neg": lambda w, a: -a & w.mask,
    "min": lambda w, a, b: extremum(w, min, a, b),
    "max": lambda w, a, b: extremum(w, max, a, b),
    "and": lambda w, a, b: a & b,
    "or": lambda w, a, b: a | b,
    "xor": lambda w, a, b: a ^ b,
    "not": lambda w, a: ~a & w.mask,
    "cnot": lambda w, a: int(a == 0),
    "shl": shift_left,
    "shr": shift_right,
    "shf": funnel,
    "bfe": bfe,
    "bfi": bfi,
    "brev": lambda w, a: int(f"{a:0{w.nbits}b}"[::-1], 2),
    "popc": lambda w, a: a.bit_count(),
    "clz": lambda w, a: w.nbits - a.bit_length(),
    "bfind": bfind,
    "szext": szext,
    "bmsk": bmsk,
    "prmt": prmt,
    "lop3": lop3,
    "fns": fns,
}
