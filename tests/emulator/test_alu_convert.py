"""cvt in all its forms agrees with exact arithmetic on integers and fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from lesson.emulator import alu
from lesson.emulator.alu.forms import storage
from tests.emulator import exact_floats as exact
from tests.emulator.bit_strategies import float_edges, raw_bits, rows
from tests.emulator.exact_integers import Word, value_of

INTS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
MODES = ("rn", "rz", "rm", "rp")
ALL16 = list(range(1 << 16))


def cvt(mods: str, *columns: list[int]) -> list[int]:
    """`cvt.mods` of columns of Python ints."""
    found = alu.find("cvt", tuple(mods.split(".")), len(columns))
    assert found is not None, f"cvt.{mods} is not known"
    arrays = [
        np.array(column, np.uint64).astype(storage(kind))
        for column, kind in zip(columns, found.ins, strict=True)
    ]
    with np.errstate(all="ignore"):
        result = found.fn(*arrays)
    assert result.dtype == storage(found.outs[0])
    return result.tolist()


def same(got: int, want: int | None, kind: str) -> bool:
    return exact.decode(got, kind).is_nan if want is None else got == want


def agree(mods: str, kind: str, column: list[int], want: list[int | None]) -> None:
    for bits, got, right in zip(column, cvt(mods, column), want, strict=True):
        shown = hex(bits), hex(got), right if right is None else hex(right)
        assert same(got, right, kind), f"cvt.{mods}: operand, got, want {shown}"


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", INTS)
def test_integers_are_cut_extended_or_saturated(target: str, source: str) -> None:
    to, of = Word((), target), Word((), source)

    @settings(max_examples=15, deadline=None)
    @given(rows(source))
    def agrees(operand_rows: list[tuple[int]]) -> None:
        column = [row[0] for row in operand_rows]
        assert cvt(f"{target}.{source}", column) == [of.value(x) & to.mask for x in column]
        assert cvt(f"sat.{target}.{source}", column) == [to.clamp(of.value(x)) for x in column]

    agrees()


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", FLOATS)
def test_integers_are_rounded_to_floats(target: str, source: str) -> None:
    of = Word((), source)

    @settings(max_examples=15, deadline=None)
    @given(rows(source))
    def agrees(operand_rows: list[tuple[int]]) -> None:
        column = [row[0] for row in operand_rows]
        numbers = [exact.Number(of.value(x) < 0, Fraction(of.value(x))) for x in column]
        for mode in MODES:
            want = [exact.compute("cvt", [x], target, mode) for x in numbers]
            agree(f"{mode}.{target}.{source}", target, column, want)
        want = [exact.compute("cvt", [x], target, "rn", "sat") for x in numbers]
        agree(f"rn.sat.{target}.{source}", target, column, want)

    agrees()


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTS)
def test_floats_are_rounded_to_integers_and_saturate(target: str, source: str) -> None:
    nbits = int(target[1:])
    nan = 1 << (nbits - 1) if 64 in (nbits, int(source.lstrip("bf"))) else 0

    @settings(max_examples=15, deadline=None)
    @given(rows(source))
    def agrees(operand_rows: list[tuple[int]]) -> None:
        column = [row[0] for row in operand_rows]
        for mode in ("rni", "rzi", "rmi", "rpi"):
            want = [
                exact.to_integer(exact.decode(x, source), mode, nbits, target[0] == "s", nan)
                for x in column
            ]
            assert cvt(f"{mode}.{target}.{source}", column) == want, column

    agrees()


NARROWINGS = [
    *(("f32", "f64"), ("f16", "f64"), ("bf16", "f64"), ("f16", "f32"), ("bf16", "f32")),
    *(("f16", "bf16"), ("bf16", "f16")),
]
WIDENINGS = [("f32", "f16"), ("f64", "f16"), ("f32", "bf16"), ("f64", "bf16"), ("f64", "f32")]


@pytest.mark.parametrize("target,source", NARROWINGS)
def test_floats_are_rounded_to_narrower_floats(target: str, source: str) -> None:
    @settings(max_examples=30, deadline=None)
    @given(rows(source))
    def agrees(operand_rows: list[tuple[int]]) -> None:
        column = [row[0] for row in operand_rows]
        numbers = [exact.decode(x, source) for x in column]
        for mode in MODES:
            want = [exact.compute("cvt", [x], target, mode) for x in numbers]
            agree(f"{mode}.{target}.{source}", target, column, want)
        want = [exact.compute("cvt", [x], target, "rn", "sat") for x in numbers]
        agree(f"rn.sat.{target}.{source}", target, column, want)

    agrees()


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_relu_makes_negative_results_zero(target: str) -> None:
    column = float_edges("f32")
    numbers = [exact.decode(x, "f32") for x in column]
    want = [exact.compute("cvt", [x], target, "rn", "relu") for x in numbers]
    agree(f"rn.relu.{target}.f32", target, column, want)


@pytest.mark.parametrize("target,source", WIDENINGS)
def test_wider_floats_hold_every_narrow_one(target: str, source: str) -> None:
    column = ALL16 if source.endswith("16") else float_edges(source)
    want = [exact.encode(exact.decode(x, source), target) for x in column]
    agree(f"{target}.{source}", target, column, want)


def test_flushing_of_a_conversion_is_of_float32_only() -> None:
    tiny, normal = 0x380FFFFFE0000000, 0x3810000000000000  # one float64 below, one at the normals
    assert cvt("rn.ftz.f32.f64", [tiny, normal]) == [0, 0x00800000]
    assert cvt("rn.f32.f64", [tiny]) == [0x00800000]
    assert cvt("ftz.f64.f32", [0x80000001]) == [1 << 63]
    assert cvt("ftz.f32.f16", [1]) == [0x33800000]
    assert cvt("rn.ftz.f16.f32", [0x33800000, 1]) == [1, 0]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_rounding_to_a_whole_number_keeps_the_type_and_the_sign(kind: str, mode: str) -> None:
    column = float_edges(kind)
    want = []
    for bits in column:
        x = exact.decode(bits, kind)
        if not (x.is_nan or x.is_inf):
            x = exact.Number(x.negative, Fraction(exact.round_fraction(x.value, mode)))
        want.append(exact.encode(x, kind))
    agree(f"{mode}.{kind}.{kind}", kind, column, want)


@pytest.mark.parametrize("mode", ["rn", "rz", "rn.relu"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_a_pair_holds_the_first_operand_above_the_second(kind: str, mode: str) -> None:
    a = float_edges("f32")
    b = a[::-1]
    got = cvt(f"{mode}.{kind}x2.f32", a, b)
    assert [x >> 16 for x in got] == cvt(f"{mode}.{kind}.f32", a)
    assert [x & 0xFFFF for x in got] == cvt(f"{mode}.{kind}.f32", b)


@pytest.mark.parametrize("mode", ["rna", "rn", "rz"])
def test_tf32_keeps_ten_bits_of_the_fraction(mode: str) -> None:
    @given(rows("f32"))
    @settings(max_examples=50, deadline=None)
    def agrees(operand_rows: list[tuple[int]]) -> None:
        column = [row[0] for row in operand_rows]
        for bits, got in zip(column, cvt(f"{mode}.tf32.f32", column), strict=True):
            want = exact.compute("cvt", [exact.decode(bits, "f32")], "tf32", mode)
            assert got & 0x1FFF == 0
            if want is None and mode == "rna":  # an H200 keeps the upper bits of this NaN alone
                assert got == bits & ~0x1FFF, hex(bits)
            else:
                assert same(got >> 13, want, "tf32"), hex(bits)

    agrees()


def fp8_of(x: exact.Number, kind: str, relu: bool) -> int | None:
    """To nearest; too large becomes the largest value."""
    top = exact.largest(kind)
    if x.is_nan:
        return None
    if relu and x.negative:
        return 0
    rounded = x if x.is_inf else exact.Number(
        x.negative, exact.round_to_precision(x.value, kind, "rn")
    )  # fmt: skip
    if abs(rounded.value) > top:
        rounded = exact.Number(x.negative, -top if x.negative else top)
    return exact.encode(rounded, kind)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_fp8_bytes_are_rounded_and_saturated(kind: str, relu: bool) -> None:
    @given(rows("f32", "f32"))
    @settings(max_examples=50, deadline=None)
    def agrees(operand_rows: list[tuple[int, int]]) -> None:
        a, b = ([row[i] for row in operand_rows] for i in (0, 1))
        got = cvt(f"rn.satfinite.{'relu.' * relu}{kind}x2.f32", a, b)
        for bits, byte in zip(a + b, [x >> 8 for x in got] + [x & 255 for x in got], strict=True):
            want = fp8_of(exact.decode(bits, "f32"), kind, relu)
            assert byte == (0x7F if want is None else want), hex(bits)

    agrees()


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_every_half_becomes_the_nearest_fp8(kind: str) -> None:
    got = cvt(f"rn.satfinite.{kind}x2.f16x2", [x | (x ^ 0x8000) << 16 for x in ALL16])
    want = [fp8_of(exact.decode(x, "f16"), kind, False) for x in ALL16]
    bytes_ = [0x7F if x is None else x for x in want]
    assert [x & 255 for x in got] == bytes_
    assert [x >> 8 for x in got] == bytes_[0x8000:] + bytes_[:0x8000]


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_every_fp8_byte_is_exact_as_a_half(kind: str) -> None:
    codes = list(range(256))
    want = [exact.encode(exact.decode(x, kind), "f16") for x in codes]
    halves = [0x7FFF if x is None else x for x in want]
    plain = cvt(f"rn.f16x2.{kind}x2", [x << 8 | x for x in codes])
    assert plain == [x << 16 | x for x in halves]
    relu = cvt(f"rn.relu.f16x2.{kind}x2", codes)
    assert [x & 0xFFFF for x in relu] == [0 if 0x8000 <= x <= 0xFC00 else x for x in halves]


@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16", "u4", "s4", "u2", "s2"])
def test_cvt_pack_saturates_both_and_puts_the_first_above(kind: str) -> None:
    word, nbits = Word((), kind), int(kind[1:])

    @given(rows("s32", "s32", "b32"))
    @settings(max_examples=30, deadline=None)
    def agrees(operand_rows: list[tuple[int, int, int]]) -> None:
        a, b, c = ([row[i] for row in operand_rows] for i in range(3))
        mods, columns = f"pack.sat.{kind}.s32", [a, b]
        if nbits < 16:
            mods, columns = mods + ".b32", [a, b, c]
        got = cvt(mods, *columns)
        for x, y, z, bits in zip(a, b, c, got, strict=True):
            high, low = (word.clamp(value_of(v, 32, True)) for v in (x, y))
            rest = z << 2 * nbits & 0xFFFFFFFF if nbits < 16 else 0
            assert bits == rest | high << nbits | low

    agrees()


def test_a_narrowing_without_a_rounding_mode_is_not_found() -> None:
    for mods in ("f16.f32", "rn.f64.f32", "f32.s32", "s32.f32", "rn.f32.f32", "rn.e4m3x2.f32"):
        assert alu.find("cvt", tuple(mods.split(".")), 1) is None


@given(raw_bits("u64"))
@settings(max_examples=300, deadline=None)
def test_64_bit_integers_are_rounded_once(value: int) -> None:
    for kind, dtype in (("f32", np.float32), ("f64", np.float64)):
        want = exact.compute("cvt", [exact.Number(False, Fraction(value))], kind, "rn")
        assert cvt(f"rn.{kind}.u64", [value]) == [want], dtype
