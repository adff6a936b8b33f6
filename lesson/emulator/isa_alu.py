"""Instructions of the arithmetic and logic unit, whose meaning is in `alu`: here they meet the
registers.

PTX ISA, "Integer Arithmetic" to "Logic and Shift", conversions, comparisons and the rest that
`alu.find` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lesson.emulator import alu
from lesson.emulator.isa import Step, step, unsupported
from lesson.emulator.lanes import Mask, merged
from lesson.emulator.operands import Dest, Source, bind
from lesson.emulator.ptx import Instr, Operand, Pair
from lesson.emulator.registers import BOOL, Convert, Values
from lesson.errors import UnsupportedPtx

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder

Fn = Callable[..., Values]
CARRY = "carry"


@step("alu")
def build_alu(instr: Instr, b: FunctionBuilder) -> Step:
    """Any instruction of the ALU."""
    first, *sources = instr.operands or (None,)
    noutputs = 2 if isinstance(first, Pair) else 1
    found = alu.find(instr.opcode, instr.mods, len(sources), noutputs) if instr.operands else None
    if found is None and ("approx" in instr.mods or instr.name.startswith("div.full")):
        raise _open_bits(instr)
    if found is None or len(found.ins) != len(sources):
        raise unsupported(instr)
    targets: tuple[Operand, ...] = (
        (first.first, first.second) if isinstance(first, Pair) else (first,)
    )
    if len(targets) != len(found.outs):
        raise unsupported(instr)
    ins = [b.source(operand, kind) for operand, kind in zip(sources, found.ins, strict=True)]
    outs = [b.dest(operand, kind) for operand, kind in zip(targets, found.outs, strict=True)]
    if found.carry or len(outs) > 1:
        return _general(b, found, ins, outs)
    return _single(found.fn, ins, outs[0])


def _open_bits(instr: Instr) -> UnsupportedPtx:
    """The error for an approximation."""
    is_rounded = instr.opcode in ("div", "rcp", "sqrt")
    other = f"Use {instr.opcode}.rn (no --use_fast_math), or run it" if is_rounded else "Run it"
    return unsupported(
        instr,
        "a result must be one that PTX defines: of an approximation it bounds only the error, and "
        "bits are never guessed here",
        f"{other} on a GPU, and compare within the error that the PTX ISA states.",
    )


def _single(fn: Fn, ins: list[Source], out: Dest) -> Step:
    """One result; the common shapes are spelled out, since they are most of a program."""
    if out.widen is not None:
        inner, widen = fn, out.widen
        fn = lambda *values: widen(inner(*values))  # noqa: E731
    if any(each.adapt is not None for each in ins):
        fn = _adapting(fn, [each.adapt for each in ins])
    d = out.slot
    slots = [each.slot for each in ins]
    if len(slots) == 1:
        return _one(fn, d, *slots)
    if len(slots) == 2:
        return _two(fn, d, *slots)
    if len(slots) == 3:
        return _three(fn, d, *slots)

    def many(m: Machine, R: list, mask: Mask | None) -> None:
        bind(R, d, fn(*[R[slot] for slot in slots]), mask)

    return many


def _one(fn: Fn, d: int, a: int) -> Step:
    def run(m: Machine, R: list, mask: Mask | None) -> None:
        value = fn(R[a])
        R[d] = value if mask is None else merged(R[d], value, mask)

    return run


def _two(fn: Fn, d: int, a: int, b: int) -> Step:
    def run(m: Machine, R: list, mask: Mask | None) -> None:
        value = fn(R[a], R[b])
        R[d] = value if mask is None else merged(R[d], value, mask)

    return run


def _three(fn: Fn, d: int, a: int, b: int, c: int) -> Step:
    def run(m: Machine, R: list, mask: Mask | None) -> None:
        value = fn(R[a], R[b], R[c])
        R[d] = value if mask is None else merged(R[d], value, mask)

    return run


def _adapting(fn: Fn, adapts: list[Convert | None]) -> Fn:
    """The function on registers that are wider than its operands, or negated."""

    def call(*values: Values) -> Values:
        return fn(
            *[v if adapt is None else adapt(v) for v, adapt in zip(values, adapts, strict=True)]
        )

    return call


def _general(b: FunctionBuilder, found: alu.Alu, ins: list[Source], outs: list[Dest]) -> Step:
    """Several results, or the carry flag."""
    carry = b.hidden(CARRY, BOOL)
    takes, gives = found.carry in ("in", "inout"), found.carry in ("out", "inout")
    fn, slots = found.fn, [each.slot for each in ins] + [carry] * takes
    adapts = [each.adapt for each in ins] + [None] * takes
    targets = [*outs, Dest(carry, None)] if gives else outs
    many = len(targets) > 1
    b.reads |= {carry} if takes else set()
    b.writes |= {carry} if gives else set()

    def run(m: Machine, R: list, mask: Mask | None) -> None:
        results = fn(
            *[
                R[s] if adapt is None else adapt(R[s])
                for s, adapt in zip(slots, adapts, strict=True)
            ]
        )
        for (slot, widen), value in zip(targets, results if many else (results,), strict=True):
            bind(R, slot, value if widen is None else widen(value), mask)

    return run
