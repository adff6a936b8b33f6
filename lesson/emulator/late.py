"""Faults for which no thread waits: the chip reports them late, or never.

An operation on an mbarrier runs beside the thread that asks for it. Where its token is read, or
where the thread goes on to another mbarrier, an H200 stops it with the error. Where nothing follows
but the end of the kernel, the kernel is over first and the launch succeeds: recorded for arrivals
that are too many and for bytes beyond the range. That is a matter of time, so here too such a fault
stays away only if nothing else runs after the straight-line code that holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lesson.emulator.ptx import Addr, Instr, Not, Operand, Pair, Reg, TensorAddr, Vec
from lesson.errors import DeviceFault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder


@dataclass(frozen=True, slots=True)
class Late:
    """A fault to come. `last_step`: the instructions issued when the code around it has run."""

    error: DeviceFault
    last_step: int


def defer(m: Machine, block: int, error: DeviceFault) -> None:
    """Keep a fault, raised in that block of code, for later; the first one counts."""
    if m.late is None:
        m.late = Late(error, m.steps + m.program.blocks[block].count)


def raise_late(m: Machine) -> None:
    """A thread waits for its mbarriers, or for ever: now the fault is seen."""
    if m.late is not None:
        raise m.late.error


def raise_unless_last(m: Machine) -> None:
    """All threads have ended: the fault is seen if anything ran after it."""
    if m.late is not None and m.steps > m.late.last_step:
        raise m.late.error


def is_read(f: FunctionBuilder, instr: Instr, operand: Operand) -> bool:
    """Whether another instruction of the function names a register of the operand."""
    names = set(_names(operand))
    return bool(names) and any(
        other is not instr and not names.isdisjoint(_all_names(other))
        for other in f.function.body or ()
        if isinstance(other, Instr)
    )


def _all_names(instr: Instr) -> Iterator[str]:
    if instr.pred is not None:
        yield instr.pred.name
    for operand in instr.operands:
        yield from _names(operand)


def _names(operand: Operand) -> Iterator[str]:
    """The registers of an operand."""
    if isinstance(operand, Reg):
        yield operand.name
    elif isinstance(operand, Not):
        yield operand.reg.name
    elif isinstance(operand, Addr):
        yield from _names(operand.base)
    elif isinstance(operand, TensorAddr):
        yield from _names(operand.base)
        yield from _names(operand.coords)
    elif isinstance(operand, Vec | Pair):
        items = operand.items if isinstance(operand, Vec) else (operand.first, operand.second)
        for item in items:
            yield from _names(item)
