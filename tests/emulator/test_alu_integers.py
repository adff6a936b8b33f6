"""Integer, logic and bit-field instructions agree with Python's integers, edge cases first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lesson.emulator import alu
from lesson.emulator.alu.forms import storage
from tests.emulator.bit_strategies import rows
from tests.emulator.exact_integers import REFERENCE, Word

INTS = "u16 s16 u32 s32 u64 s64"
WIDE = "u32 s32 u64 s64"

# Opcode and modifiers | types | operands: T is the type itself, W one twice as wide.
TABLE = f"""
add sub mul.lo mul.hi min max   | {INTS}             | T T
add.sat sub.sat min.relu max.relu | s32              | T T
div rem                         | {INTS}             | T T
abs neg                         | s16 s32 s64        | T
mul.wide                        | u16 s16 u32 s32    | T T
mad.wide                        | u16 s16 u32 s32    | T T W
mad.lo mad.hi sad               | {INTS}             | T T T
mad.hi.sat mad24.hi.sat         | s32                | T T T
mul24.lo mul24.hi               | u32 s32            | T T
mad24.lo mad24.hi               | u32 s32            | T T T
and or xor                      | b16 b32 b64        | T T
not cnot                        | b16 b32 b64        | T
shl                             | b16 b32 b64        | T sh
shr                             | b16 b32 b64 {INTS} | T sh
shf.l.wrap shf.l.clamp shf.r.wrap shf.r.clamp | b32  | T T sh
bfe                             | {WIDE}             | T sh sh
bfi                             | b32 b64            | T T sh sh
brev popc clz                   | b32 b64            | T
bfind bfind.shiftamt            | {WIDE}             | T
szext.wrap szext.clamp          | u32 s32            | T sh
bmsk.wrap bmsk.clamp            | b32                | sh sh
prmt prmt.f4e prmt.b4e prmt.rc8 prmt.ecl prmt.ecr prmt.rc16 | b32 | T T sel
fns                             | b32                | T sh s32
"""


def cases() -> list[tuple[str, str, tuple[str, ...]]]:
    found = []
    for line in TABLE.strip().splitlines():
        names, kinds, operands = (field.split() for field in line.split("|"))
        for name in names:
            for kind in kinds:
                wide = f"{kind[0]}{2 * int(kind[1:])}"
                spell = {"T": kind, "W": wide}
                found.append((name, kind, tuple(spell.get(o, o) for o in operands)))
    return found


def apply(name: str, kind: str, columns: list[list[int]]) -> np.ndarray:
    """The instruction on columns of Python ints."""
    opcode, *mods = name.split(".")
    found = alu.find(opcode, (*mods, kind), len(columns))
    assert found is not None, f"{name}.{kind} is not known"
    arrays = [
        np.array(column, np.uint64).astype(storage(t))
        for column, t in zip(columns, found.ins, strict=True)
    ]
    for array in arrays:
        array.setflags(write=False)
    with np.errstate(all="ignore"):
        result = found.fn(*arrays)
    assert result.dtype == storage(found.outs[0])
    return result


@pytest.mark.parametrize(
    "name,kind,operands", cases(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_integer_instruction_agrees_with_python(
    name: str, kind: str, operands: tuple[str, ...]
) -> None:
    opcode, *mods = name.split(".")
    word, reference = Word(tuple(mods), kind), REFERENCE[opcode]

    @settings(max_examples=12, deadline=None)
    @given(rows(*operands))
    def agrees(operand_rows: list[tuple[int, ...]]) -> None:
        got = apply(name, kind, [list(column) for column in zip(*operand_rows, strict=True)])
        want = [reference(word, *row) for row in operand_rows]
        assert got.tolist() == want

    agrees()


@pytest.mark.parametrize("lut", range(256))
def test_lop3_computes_every_truth_table(lut: int) -> None:
    a, b, c = 0xF0F0F0F0, 0xCCCCAAAA, 0xAA55CC33
    word = Word((), "b32")
    got = apply("lop3", "b32", [[a, c], [b, a], [c, b], [lut, lut]])
    assert got.tolist() == [REFERENCE["lop3"](word, *row, lut) for row in ((a, b, c), (c, a, b))]


@given(st.integers(0, (1 << 32) - 1), st.integers(0, 0xFFFF))
@settings(max_examples=200, deadline=None)
def test_prmt_with_one_selector_for_all_lanes_equals_prmt_lane_by_lane(a: int, c: int) -> None:
    b = ~a & 0xFFFFFFFF
    alike = apply("prmt", "b32", [[a, b, 7], [b, a, 9], [c]])
    each = apply("prmt", "b32", [[a, b, 7], [b, a, 9], [c, c, c]])
    assert alike.tolist() == each.tolist()


def test_lop3_can_fold_a_predicate_with_whether_any_bit_is_set() -> None:
    found = alu.find("lop3", ("or", "b32"), 5, 2)
    a, b, c = (np.array(x, np.uint32) for x in ([1, 0, 6], [1, 0, 5], [1, 0, 0]))
    word, flag = found.fn(a, b, c, np.array([0x80], np.uint32), np.array([False, False, True]))
    assert word.tolist() == [1, 0, 0]
    assert flag.tolist() == [True, False, True]


def test_signed_division_of_the_least_value_by_minus_one_wraps() -> None:
    assert apply("div", "s32", [[0x80000000], [0xFFFFFFFF]]).tolist() == [0x80000000]
    assert apply("rem", "s32", [[0x80000000], [0xFFFFFFFF]]).tolist() == [0]


def test_a_uniform_operand_broadcasts_over_the_lanes() -> None:
    for name, kind, operands in cases():
        columns = [[3, 5, 9]] + [[2]] * (len(operands) - 1)
        rows_apart = [apply(name, kind, [[x], *columns[1:]])[0] for x in columns[0]]
        assert apply(name, kind, columns).tolist() == rows_apart, (name, kind)


NO_SUCH_FORMS = """
add.sat.u32 mul.f16x2.lo mad.hi.sat.u32 abs.u32 min.relu.u32 setp.lo.s32 and.s32 shf.l.b64 cvt.s32
ex2.approx.f32 mov bar.sync add.ftz.f64 lop3.and.b32
"""


@pytest.mark.parametrize("form", NO_SUCH_FORMS.split())
def test_what_ptx_does_not_have_or_leaves_open_is_not_found(form: str) -> None:
    opcode, *mods = form.split(".")
    assert all(alu.find(opcode, tuple(mods), nargs) is None for nargs in range(6))
