"""Hypothesis strategies for raw bits: the edge cases of a type, and everything else."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.emulator.exact_floats import FORMATS

SHIFTS = [0, 1, 2, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1 << 31, (1 << 32) - 1]


def integer_edges(nbits: int) -> list[int]:
    top, mask = 1 << (nbits - 1), (1 << nbits) - 1
    near = {(1 << k) + i for k in range(nbits) for i in (-1, 0, 1)}
    return sorted({x & mask for x in near | {0, -1, -2, top - 1, top, top + 1, mask // 3}})


def float_edges(kind: str) -> list[int]:
    """Zeros, subnormals, ones, extremes, infinities, NaNs, and halves of a narrower type's ulp."""
    e, m = FORMATS[kind]
    top, one, inf = 1 << (e + m), ((1 << (e - 1)) - 1) << m, ((1 << e) - 1) << m
    near = [
        0,
        1,
        (1 << m) - 1,
        1 << m,
        one,
        one | (1 << (m - 1)),
        inf - 1,
        inf,
        inf | (1 << (m - 1)),
    ]
    near += [one + (k << m) for k in (1, 2, 7, 8, 15, 16, 31, 32, 63, 64) if one + (k << m) < inf]
    for _, narrower in FORMATS.values():
        if narrower < m:
            half = 1 << (m - narrower - 1)
            near += [one + half, one + 3 * half, (1 << m) + half, inf - half]
    values = {x + i for x in near for i in (-1, 0, 1) if 0 <= x + i < top}
    return sorted(values | {x | top for x in values})


def raw_bits(kind: str) -> st.SearchStrategy[int]:
    """The bits of an operand of a type; "sh" is a shift amount, "pos" a position or length."""
    if kind == "sh":
        return st.sampled_from(SHIFTS) | st.integers(0, 70) | st.integers(0, (1 << 32) - 1)
    if kind == "sel":
        return st.integers(0, 0xFFFF) | st.integers(0, (1 << 32) - 1)
    if kind in FORMATS:
        e, m = FORMATS[kind]
        one, width = ((1 << (e - 1)) - 1) << m, e + m + 1
        usual = st.integers(one - (3 << m), one + (3 << m))
        # Few bits set: products and sums of such values often are ties.
        short = usual.map(lambda bits: bits >> (m // 2) << (m // 2))
        signs = st.sampled_from([0, 1 << (width - 1)])
        ordinary = st.builds(int.__or__, usual | short, signs)
        return st.sampled_from(float_edges(kind)) | ordinary | st.integers(0, (1 << width) - 1)
    nbits = int(kind[1:])
    small = st.integers(0, 9)
    return st.sampled_from(integer_edges(nbits)) | small | st.integers(0, (1 << nbits) - 1)


def rows(*kinds: str, size: int = 24) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Rows of operands of these types."""
    return st.lists(st.tuples(*map(raw_bits, kinds)), min_size=1, max_size=size)
