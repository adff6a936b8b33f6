"""Comparison, selection, carry chains and packed integers agree with plain Python."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, settings

from lesson.emulator import alu
from lesson.emulator.alu.forms import storage
from tests.emulator import exact_floats as exact
from tests.emulator.bit_strategies import rows
from tests.emulator.exact_integers import Word, value_of

INTS = ("u16", "s16", "u32", "s32", "u64", "s64")
COMPARE = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
SAME_AS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
FLOAT_COMPARE = [*COMPARE, *(name + "u" for name in COMPARE), "num", "nan"]
FOLD = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def run(name: str, columns: list[list[int]], nouts: int = 1) -> list:
    """The results of an instruction on columns of Python ints: a list a result."""
    opcode, *mods = name.split(".")
    found = alu.find(opcode, tuple(mods), len(columns), nouts)
    assert found is not None, f"{name} is not known"
    arrays = [
        np.array(column, np.uint64).astype(storage(kind))
        for column, kind in zip(columns, found.ins, strict=True)
    ]
    with np.errstate(all="ignore"):
        results = found.fn(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    assert [r.dtype for r in results[:nouts]] == [storage(kind) for kind in found.outs]
    return [r.tolist() for r in results]


def columns_of(operand_rows: list[tuple[int, ...]]) -> list[list[int]]:
    return [list(column) for column in zip(*operand_rows, strict=True)]


def compare_floats(name: str, a: exact.Number, b: exact.Number) -> bool:
    unordered = a.is_nan or b.is_nan
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if unordered:
        return name.endswith("u")
    return COMPARE[name.removesuffix("u")](a.value, b.value)


@pytest.mark.parametrize("kind", INTS)
@pytest.mark.parametrize("name", [*COMPARE, *SAME_AS])
def test_setp_of_integers_compares_their_values(name: str, kind: str) -> None:
    if name in SAME_AS and kind[0] != "u":
        assert alu.find("setp", (name, kind), 2) is None
        return
    word, compare = Word((), kind), COMPARE[SAME_AS.get(name, name)]

    @settings(max_examples=10, deadline=None)
    @given(rows(kind, kind))
    def agrees(operand_rows: list[tuple[int, int]]) -> None:
        twins = operand_rows + [(a, a) for a, _ in operand_rows]
        want = [compare(word.value(a), word.value(b)) for a, b in twins]
        assert run(f"setp.{name}.{kind}", columns_of(twins)) == [want]

    agrees()


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("name", FLOAT_COMPARE)
def test_setp_of_floats_knows_what_is_unordered(name: str, kind: str) -> None:
    @settings(max_examples=10, deadline=None)
    @given(rows(kind, kind))
    def agrees(operand_rows: list[tuple[int, int]]) -> None:
        twins = operand_rows + [(a, a) for a, _ in operand_rows]
        want = [compare_floats(name, *(exact.decode(x, kind) for x in row)) for row in twins]
        assert run(f"setp.{name}.{kind}", columns_of(twins)) == [want]
        ones = (0xFFFFFFFF, ONE["f32"])
        for target, one in zip(("u32", "f32"), ones, strict=True):
            got = run(f"set.{name}.{target}.{kind}", columns_of(twins))
            assert got == [[one * bit for bit in want]]

    agrees()


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_ftz_compares_subnormals_as_zeros(kind: str) -> None:
    assert run(f"setp.eq.ftz.{kind}", [[1], [2]]) == [[True]]
    assert run(f"setp.eq.{kind}", [[1], [2]]) == [[False]]


@pytest.mark.parametrize("fold", FOLD)
def test_setp_gives_a_predicate_and_its_opposite_combined_with_a_third(fold: str) -> None:
    a, b, c = [1, 1, 2, 2], [2, 2, 1, 1], [0, 1, 0, 1]
    less = [True, True, False, False]
    p, q = run(f"setp.lt.{fold}.s32", [a, b, c], nouts=2)
    assert p == [FOLD[fold](x, bool(y)) for x, y in zip(less, c, strict=True)]
    assert q == [FOLD[fold](not x, bool(y)) for x, y in zip(less, c, strict=True)]
    assert run(f"setp.lt.{fold}.s32", [a, b, c]) == [p]
    assert run(f"set.lt.{fold}.u32.s32", [a, b, c]) == [[0xFFFFFFFF * x for x in p]]
    assert run("setp.lt.s32", [a, b], nouts=2) == [less, [not x for x in less]]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_a_packed_comparison_gives_a_predicate_a_lane(kind: str) -> None:
    one = ONE[kind]
    a, b = [one << 16, one, 0x7FFF0000], [0, one << 16 | one, 0]
    p, q = run(f"setp.ltu.{kind}x2", [a, b], nouts=2)
    assert (p, q) == ([False, False, False], [False, True, True])
    folded = run(f"setp.ltu.or.{kind}x2", [a, b, [1, 0, 0]], nouts=2)
    assert folded == [[True, False, False], [True, True, True]]
    assert run(f"set.ltu.{kind}x2.{kind}x2", [a, b]) == [[0, one << 16, one << 16]]
    assert run(f"set.ltu.u32.{kind}x2", [a, b]) == [[0, 0xFFFF << 16, 0xFFFF << 16]]


def test_selp_passes_every_bit_of_the_chosen_operand() -> None:
    for kind, nbits in (("b16", 16), ("b32", 32), ("f64", 64)):
        top = (1 << nbits) - 1
        assert run(f"selp.{kind}", [[1, top, 0], [top, 0, 5], [1, 0, 1]]) == [[1, 0, 0]]
        assert run(f"selp.{kind}", [[top], [0], [0, 1]]) == [[0, top]]


def test_slct_takes_the_first_for_negative_zero_and_the_second_for_nan() -> None:
    c = [0x80000000, 0x7FC00000, 0x80000001, 1]
    assert run("slct.u32.f32", [[1] * 4, [2] * 4, c]) == [[1, 2, 2, 1]]
    assert run("slct.ftz.u32.f32", [[1] * 4, [2] * 4, c]) == [[1, 2, 1, 1]]
    assert run("slct.u32.s32", [[1] * 4, [2] * 4, c]) == [[2, 1, 2, 1]]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_testp_sorts_floats_by_their_bits_and_calls_zero_normal(kind: str) -> None:
    @settings(max_examples=15, deadline=None)
    @given(rows(kind))
    def agrees(operand_rows: list[tuple[int]]) -> None:
        numbers = [exact.decode(bits, kind) for (bits,) in operand_rows]
        finite = [not (x.is_nan or x.is_inf) for x in numbers]
        least = exact.smallest_normal(kind)
        small = [f and 0 < abs(x.value) < least for f, x in zip(finite, numbers, strict=True)]
        want = {
            "finite": finite,
            "infinite": [x.is_inf for x in numbers],
            "number": [not x.is_nan for x in numbers],
            "notanumber": [x.is_nan for x in numbers],
            "normal": [f and not s for f, s in zip(finite, small, strict=True)],
            "subnormal": small,
        }
        for name, right in want.items():
            assert run(f"testp.{name}.{kind}", columns_of(operand_rows)) == [right], name

    agrees()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_copysign_takes_the_sign_of_the_first_operand(kind: str) -> None:
    top = 1 << (31 if kind == "f32" else 63)
    assert run(f"copysign.{kind}", [[top, 0], [5, top | 5]]) == [[top | 5, 5]]


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_carry_chains_add_and_subtract_numbers_of_two_words(kind: str) -> None:
    nbits = int(kind[1:])
    mask = (1 << nbits) - 1

    @settings(max_examples=20, deadline=None)
    @given(rows(kind, kind, kind, kind))
    def agrees(operand_rows: list[tuple[int, ...]]) -> None:
        a_low, a_high, b_low, b_high = columns_of(operand_rows)
        for name, op in (("add", operator.add), ("sub", operator.sub)):
            low, flag = run(f"{name}.cc.{kind}", [a_low, b_low])
            high, out = carried(f"{name}c.cc.{kind}", [a_high, b_high], flag)
            (same_high,) = carried(f"{name}c.{kind}", [a_high, b_high], flag)
            assert same_high == high
            for i, (al, ah, bl, bh) in enumerate(operand_rows):
                total = op(ah << nbits | al, bh << nbits | bl)
                assert (low[i], high[i]) == (total & mask, total >> nbits & mask)
                assert out[i] == (bool(total >> 2 * nbits) != (name == "sub"))

    agrees()


@pytest.mark.parametrize(
    "first, a, b, flag", [("add", 1, 2, 0), ("sub", 1, 2, 0), ("sub", 2, 2, 1)]
)
def test_a_chain_may_mix_additions_and_subtractions(first, a, b, flag) -> None:
    _, carry = run(f"{first}.cc.u32", [[a], [b]])
    assert carried("addc.u32", [[7], [7]], carry) == [[14 + flag]]
    assert carried("subc.u32", [[9], [7]], carry) == [[2 + flag - 1]]


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_multiply_add_chains_make_the_whole_sum(kind: str) -> None:
    word, nbits = Word((), kind), int(kind[1:])

    @settings(max_examples=20, deadline=None)
    @given(rows(kind, kind, kind, kind))
    def agrees(operand_rows: list[tuple[int, ...]]) -> None:
        a, b, c_low, c_high = columns_of(operand_rows)
        low, flag = run(f"mad.lo.cc.{kind}", [a, b, c_low])
        (high,) = carried(f"madc.hi.{kind}", [a, b, c_high], flag)
        same_high, _ = carried(f"madc.hi.cc.{kind}", [a, b, c_high], flag)
        assert same_high == high
        for i, (x, y, cl, ch) in enumerate(operand_rows):
            total = word.value(x) * word.value(y) + (ch << nbits | cl)
            assert high[i] << nbits | low[i] == total & ((1 << 2 * nbits) - 1)

    agrees()


def carried(name: str, columns: list[list[int]], flag: list[bool]) -> list:
    """The results of an instruction that reads the carry flag."""
    opcode, *mods = name.split(".")
    found = alu.find(opcode, tuple(mods), len(columns))
    assert found is not None
    assert found.carry == ("inout" if "cc" in mods else "in")
    arrays = [np.array(c, np.uint64).astype(storage(found.outs[0])) for c in columns]
    results = found.fn(*arrays, np.array(flag, bool))
    return [r.tolist() for r in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("name", ["add", "min", "max", "min.relu", "max.relu"])
@pytest.mark.parametrize("kind", ["u16x2", "s16x2"])
def test_packed_integers_are_two_lanes(name: str, kind: str) -> None:
    opcode, *flags = name.split(".")
    if flags and kind == "u16x2":
        assert alu.find(opcode, (*flags, kind), 2) is None
        return
    fn = {"add": operator.add, "min": min, "max": max}[opcode]

    def lane(a: int, b: int) -> int:
        result = fn(*(value_of(x & 0xFFFF, 16, kind[0] == "s") for x in (a, b)))
        return (max(result, 0) if flags else result) & 0xFFFF

    @settings(max_examples=20, deadline=None)
    @given(rows("b32", "b32"))
    def agrees(operand_rows: list[tuple[int, int]]) -> None:
        want = [lane(a, b) | lane(a >> 16, b >> 16) << 16 for a, b in operand_rows]
        assert run(f"{name}.{kind}", columns_of(operand_rows)) == [want]

    agrees()


@pytest.mark.parametrize("kinds", [(a, b) for a in ("u32", "s32") for b in ("u32", "s32")])
@pytest.mark.parametrize("name", ["dp4a", "dp2a.lo", "dp2a.hi"])
def test_dot_products_of_bytes_and_half_words(name: str, kinds: tuple[str, str]) -> None:
    a_bits = 8 if name == "dp4a" else 16
    first = 2 if name == "dp2a.hi" else 0
    a_signed, b_signed = (kind[0] == "s" for kind in kinds)

    def dot(a: int, b: int, c: int) -> int:
        for i in range(32 // a_bits):
            x = value_of(a >> a_bits * i & ((1 << a_bits) - 1), a_bits, a_signed)
            c += x * value_of(b >> 8 * (i + first) & 255, 8, b_signed)
        return c & 0xFFFFFFFF

    @settings(max_examples=20, deadline=None)
    @given(rows("b32", "b32", "b32"))
    def agrees(operand_rows: list[tuple[int, int, int]]) -> None:
        want = [dot(*row) for row in operand_rows]
        assert run(f"{name}.{kinds[0]}.{kinds[1]}", columns_of(operand_rows)) == [want]

    agrees()


def test_logic_on_predicates_and_moves() -> None:
    a, b = [0, 0, 1, 1], [0, 1, 0, 1]
    assert run("and.pred", [a, b]) == [[False, False, False, True]]
    assert run("xor.pred", [a, b]) == [[False, True, True, False]]
    assert run("not.pred", [a]) == [[True, True, False, False]]
    assert run("mov.pred", [b]) == [[False, True, False, True]]
    assert run("mov.f32", [[0x7F800001]]) == [[0x7F800001]]
