"""Floating-point instructions agree with exact arithmetic on fractions, in every rounding mode."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lesson.emulator import alu
from lesson.emulator.alu.forms import storage
from tests.emulator import exact_floats as exact
from tests.emulator.bit_strategies import raw_bits, rows

# Opcodes | modifiers | types. {rnd} stands for each of the rounding modes.
TABLE = """
add sub mul | - {rnd} ftz {rnd}.ftz sat {rnd}.sat rn.ftz.sat | f32
fma         | {rnd} {rnd}.ftz {rnd}.sat rn.ftz.sat           | f32
mad         | {rnd}                                          | f32 f64
div         | {rnd} {rnd}.ftz                                | f32
rcp sqrt    | {rnd} {rnd}.ftz                                | f32
add sub mul | - {rnd}                                        | f64
fma div     | {rnd}                                          | f64
rcp sqrt    | {rnd}                                          | f64
add sub mul | - rn ftz sat ftz.sat                           | f16 f16x2
add sub mul | - rn                                           | bf16 bf16x2
fma         | rn rn.ftz rn.sat rn.relu rn.ftz.relu           | f16 f16x2
fma         | rn rn.relu                                     | bf16 bf16x2
add sub mul | - rz rn.ftz                                    | f32x2
fma         | rn rp.ftz                                      | f32x2
"""
ARITY = {"rcp": 1, "sqrt": 1, "fma": 3, "mad": 3}


def cases() -> list[tuple[str, str, str]]:
    found = []
    for line in TABLE.strip().splitlines():
        opcodes, modifiers, kinds = (field.split() for field in line.split("|"))
        spelled = [m.format(rnd=mode) for m in modifiers for mode in ("rn", "rz", "rm", "rp")]
        for opcode in opcodes:
            for modifier in dict.fromkeys(spelled):
                found += [(opcode, modifier.strip("-"), kind) for kind in kinds]
    return found


def apply(opcode: str, mods: list[str], columns: list[list[int]]) -> np.ndarray:
    found = alu.find(opcode, tuple(mods), len(columns))
    assert found is not None, f"{opcode}.{'.'.join(mods)} is not known"
    arrays = [
        np.array(column, np.uint64).astype(storage(kind))
        for column, kind in zip(columns, found.ins, strict=True)
    ]
    with np.errstate(all="ignore"):
        result = found.fn(*arrays)
    assert result.dtype == storage(found.outs[0])
    return result


def packed(columns: list[list[int]], lane_bits: int) -> list[list[int]]:
    """Lanes joined in pairs, the first below the second; an odd one out is doubled."""
    even = [column + column[-1:] * (len(column) % 2) for column in columns]
    return [[lo | hi << lane_bits for lo, hi in zip(c[::2], c[1::2], strict=True)] for c in even]


def results(opcode: str, mods: list[str], kind: str, operand_rows: list) -> list[int]:
    """One result for every row, also of packed types."""
    columns = [list(column) for column in zip(*operand_rows, strict=True)]
    if not kind.endswith("x2"):
        return apply(opcode, [*mods, kind], columns).tolist()
    lane_bits = 32 if kind == "f32x2" else 16
    got = apply(opcode, [*mods, kind], packed(columns, lane_bits))
    lanes = np.ascontiguousarray(got).view(f"u{lane_bits // 8}")
    return lanes[: len(operand_rows)].tolist()


def expected(opcode: str, mods: list[str], kind: str, bits: tuple[int, ...]) -> int | None:
    operands = [exact.decode(b, kind) for b in bits]
    if "ftz" in mods:
        operands = [exact.flushed(x, kind) for x in operands]
    mode = next((m for m in mods if m in ("rn", "rz", "rm", "rp")), "rn")
    after = next((m for m in mods if m in ("sat", "relu")), "")
    return exact.compute(opcode, operands, kind, mode, after, "ftz" in mods)


def same(got: int, want: int | None, kind: str) -> bool:
    """Equal bits; for a NaN (None) any NaN of float64, and the chip's own of the other types."""
    if want is None:
        return exact.decode(got, kind).is_nan if kind == "f64" else got == NAN_BITS[kind]
    return got == want


NAN_BITS = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}


def check(opcode: str, modifiers: str, kind: str, operand_rows: list) -> None:
    mods, lane = [m for m in modifiers.split(".") if m], kind.removesuffix("x2")
    got = results(opcode, mods, kind, operand_rows)
    for row, bits in zip(operand_rows, got, strict=True):
        want = expected(opcode, mods, lane, row)
        shown = [hex(x) for x in row], hex(bits), want if want is None else hex(want)
        assert same(bits, want, lane), f"{opcode}.{modifiers}.{kind}: operands, got, want {shown}"


@pytest.mark.parametrize("opcode,modifiers,kind", cases(), ids=str)
def test_a_rounded_instruction_agrees_with_fractions(
    opcode: str, modifiers: str, kind: str
) -> None:
    lane = kind.removesuffix("x2")

    @settings(max_examples=8, deadline=None)
    @given(rows(*[lane] * ARITY.get(opcode, 2)))
    def agrees(operand_rows: list[tuple[int, ...]]) -> None:
        check(opcode, modifiers, kind, operand_rows)

    agrees()


@st.composite
def cancelling(draw: st.DrawFn, kind: str) -> tuple[int, int, int]:
    """Factors and an addend that is their negative product, rounded, or next to it."""
    a, b = draw(raw_bits(kind)), draw(raw_bits(kind))
    product = exact.multiply(exact.decode(a, kind), exact.decode(b, kind))
    addend = exact.encode(exact.round_number(exact.negate(product), kind, "rn"), kind) or 0
    return a, b, max(addend + draw(st.integers(-1, 1)), 0)


@st.composite
def nearly_tied(draw: st.DrawFn, kind: str) -> tuple[int, int, int]:
    """A product near half an ulp of the addend, which two roundings get wrong."""
    e, m = exact.FORMATS[kind]
    one, top = ((1 << (e - 1)) - 1) << m, 1 << (e + m)
    i = draw(st.integers(0, 1 << m // 3))
    sign = draw(st.sampled_from([0, top]))
    return sign | one - ((m + 1) << m) | i, one - 2 * i, one + draw(st.integers(0, 1 << m // 3))


@st.composite
def around_the_smallest_normal(draw: st.DrawFn, kind: str) -> tuple[int, int, int]:
    """A product within an ulp or so of the smallest normal: the edge of .ftz."""
    e, m = exact.FORMATS[kind]
    bias = (1 << (e - 1)) - 1
    shift = draw(st.integers(1, bias - 2))
    a = (shift << m) + draw(st.integers(0, 4)) + draw(st.sampled_from([0, 1 << m // 2]))
    b = (
        ((bias + 1 - shift) << m)
        - draw(st.integers(0, 8))
        - draw(st.sampled_from([0, 1 << m // 2]))
    )
    return a, b, draw(st.sampled_from([0, 1 << (e + m), 1, 3, (1 << m) - 1]))


FUSED = [
    *((mode, kind) for mode in ("rn", "rz", "rm", "rp") for kind in ("f32", "f64")),
    *(("rn", "f16"), ("rn", "bf16"), ("rn.ftz", "f32"), ("rp.ftz", "f32"), ("rn.ftz", "f16")),
]


@pytest.mark.parametrize("mode,kind", FUSED)
@pytest.mark.parametrize("strategy", [cancelling, nearly_tied, around_the_smallest_normal])
def test_fma_rounds_once_where_rounding_twice_would_show(strategy, mode: str, kind: str) -> None:
    @settings(max_examples=15, deadline=None)
    @given(st.lists(strategy(kind), min_size=1, max_size=20))
    def agrees(operand_rows: list[tuple[int, int, int]]) -> None:
        check("fma", mode, kind, operand_rows)
        check("mul", mode, kind, [row[:2] for row in operand_rows])

    agrees()


EXTREMA = [
    *((modifiers, "f32") for modifiers in ("three", "three.NaN", "three.abs", "three.NaN.abs")),
    *(
        (modifiers, kind)
        for modifiers in ("", "NaN", "xorsign.abs", "NaN.xorsign.abs")
        for kind in ("f32", "f16", "bf16", "f16x2", "bf16x2")
    ),
]


def pick(opcode: str, mods: list[str], a: exact.Number, b: exact.Number) -> exact.Number:
    """The number that min or max gives, of two."""
    if "abs" in mods:
        sizes = [exact.Number(False, abs(x.value)) for x in (a, b)]
        chosen = pick(opcode, [m for m in mods if m == "NaN"], *sizes)
        turned = "xorsign" in mods and a.negative != b.negative
        return exact.negate(chosen) if turned else chosen
    if a.is_nan or b.is_nan:
        other = b if a.is_nan else a
        return exact.NOT_A_NUMBER if "NaN" in mods or other.is_nan else other
    first = (a.value, not a.negative) < (b.value, not b.negative)
    return a if first == (opcode == "min") else b


@pytest.mark.parametrize("opcode", ["min", "max"])
@pytest.mark.parametrize("modifiers,kind", EXTREMA)
def test_an_extremum_follows_the_sign_and_nan_rules(opcode: str, modifiers: str, kind: str) -> None:
    lane, mods = kind.removesuffix("x2"), [m for m in modifiers.split(".") if m]
    flags = [m for m in mods if m != "three"]

    @settings(max_examples=20, deadline=None)
    @given(rows(*[lane] * (3 if "three" in mods else 2)))
    def agrees(operand_rows: list[tuple[int, ...]]) -> None:
        got = results(opcode, flags, kind, operand_rows)
        for row, bits in zip(operand_rows, got, strict=True):
            first, *rest = [exact.decode(x, lane) for x in row]
            for other in rest:
                first = pick(opcode, flags, first, other)
            assert same(bits, exact.encode(first, lane), lane), [hex(x) for x in row]

    agrees()


@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize("opcode", ["add", "sub", "fma"])
def test_halves_can_be_added_to_a_single(opcode: str, half: str) -> None:
    halves = 2 if opcode == "fma" else 1

    @settings(max_examples=15, deadline=None)
    @given(rows(*[half] * halves, "f32"))
    def agrees(operand_rows: list[tuple[int, ...]]) -> None:
        got = apply(opcode, ["rz", "f32", half], [list(c) for c in zip(*operand_rows, strict=True)])
        for row, bits in zip(operand_rows, got.tolist(), strict=True):
            operands = [exact.decode(x, half) for x in row[:-1]] + [exact.decode(row[-1], "f32")]
            want = exact.compute(opcode, operands, "f32", "rz")
            assert same(bits, want, "f32"), [hex(x) for x in row]

    agrees()


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "f16x2", "bf16x2"])
def test_abs_and_neg_touch_only_the_sign_and_make_nan_canonical(kind: str) -> None:
    lane = kind.removesuffix("x2")

    @given(rows(lane))
    @settings(max_examples=20, deadline=None)
    def agrees(operand_rows: list[tuple[int, ...]]) -> None:
        for opcode in ("abs", "neg"):
            for (bits,), got in zip(
                operand_rows, results(opcode, [], kind, operand_rows), strict=True
            ):
                x = exact.decode(bits, lane)
                turned = x if opcode == "abs" and not x.negative else exact.negate(x)
                assert same(got, exact.encode(turned, lane), lane)

    agrees()


def test_the_nan_of_a_copy_out_of_bounds_is_zeroed_by_oob() -> None:
    got = apply(
        "fma", ["rn", "oob", "f16"], [[0x7FF7, 0x3C00, 0x3C00], [0x3C00, 0x7FF7, 0x3C00], [0, 0, 0]]
    )
    assert got.tolist() == [0, 0, 0x3C00]


def test_no_operand_is_changed_by_any_instruction() -> None:
    for opcode, modifiers, kind in cases():
        mods = [m for m in modifiers.split(".") if m]
        found = alu.find(opcode, (*mods, kind), ARITY.get(opcode, 2))
        arrays = [np.arange(40, dtype=storage(k)) for k in found.ins]
        for array in arrays:
            array.setflags(write=False)
        with np.errstate(all="ignore"):
            assert len(found.fn(*arrays)) == 40
