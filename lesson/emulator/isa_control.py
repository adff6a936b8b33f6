"""Control flow: branches, tables of branches, guards, exit, trap, and pauses.

PTX ISA, "Control Flow Instructions" and "Predicated Execution". Calls are in `isa_call`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.isa import Control, Step, control, step, unsupported
from lesson.emulator.isa_barrier import opened
from lesson.emulator.lanes import EMPTY, Mask, mask_of
from lesson.emulator.ptx import Instr, Reg, Sym
from lesson.errors import DeviceFault, LaunchFailure, PtxSyntaxError

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder
    from lesson.emulator.simt import Group


def guarded(inner: Step, slot: int, is_negated: bool) -> Step:
    """A step that only those lanes take whose predicate holds."""

    def guard(m: Machine, R: list, mask: Mask | None) -> None:
        taken = m.narrow(mask, R[slot], is_negated)
        if taken is not EMPTY:
            inner(m, R, taken)

    return guard


def _conditional(slot: int, is_negated: bool, target: int, other: int) -> Control:
    """Branch to `target` where the predicate holds, else to `other`."""

    def branch(m: Machine, group: Group) -> bool:
        taken = m.narrow(group.mask, group.R[slot], is_negated)
        if taken is EMPTY:
            group.block = other
            return False
        if taken is group.mask:
            return m.simt.jump(group, target)
        return m.simt.split(group, taken, target, other)

    return branch


def build_skip(instr: Instr, b: FunctionBuilder, after: int) -> Control:
    """In front of a guarded control: lanes whose guard fails go on behind it."""
    assert isinstance(instr.pred, Reg)
    return _conditional(
        b.source(instr.pred, "pred").slot, not instr.pred_negated, after, b.block + 1
    )


@control("bra", reads_guard=True)
def build_bra(instr: Instr, b: FunctionBuilder) -> Control:
    """`bra L`, `@p bra L`; `.uni` only promises what is checked anyway."""
    target = b.target(instr.operands[0])
    if instr.pred is not None:
        return _conditional(
            b.source(instr.pred, "pred").slot, instr.pred_negated, target, b.block + 1
        )
    if target <= b.block:
        return lambda m, group: m.simt.jump(group, target)

    def forward(m: Machine, group: Group) -> bool:
        group.block = target
        return False

    return forward


def scatter(m: Machine, group: Group, values: np.ndarray) -> list[tuple[int, Mask]]:
    """The lanes of a group by a value that each has, smallest value first."""
    act = m.active(group.mask)
    if values.size == 1:
        return [(int(values[0]), act)]
    first = int(values[0])
    if (values == first).all():
        return [(first, act)]
    return [
        (int(value), mask_of(act.idx[values == value], m.nlanes)) for value in np.unique(values)
    ]


@control("brx.idx")
def build_brx(instr: Instr, b: FunctionBuilder) -> Control:
    """`brx.idx %r, table`: each lane to the label that its index picks."""
    read = b.read(instr.operands[0], "u32")
    table = instr.operands[1]
    names = b.function.tables.get(table.name) if isinstance(table, Sym) else None
    if names is None:
        raise PtxSyntaxError(
            f"brx.idx must name a list of .branchtargets, got {table}. PTX line {instr.line}."
        )
    targets = [b.target(Sym(name)) for name in names]

    def branch(m: Machine, group: Group) -> bool:
        act = m.active(group.mask)
        ways = scatter(m, group, m.of(read(group.R), act))
        if ways[-1][0] >= len(targets):
            what = f"the index of brx.idx must be below {len(targets)}, got {ways[-1][0]}"
            raise m.fault(
                LaunchFailure,
                what,
                instr,
                int(ways[-1][1].idx[0]),
                "Check the range before the switch.",
            )
        if len(ways) == 1:
            return m.simt.jump(group, targets[ways[0][0]])
        return m.simt.spread(group, [(targets[index], mask) for index, mask in ways])

    return branch


@control("exit")
def build_exit(instr: Instr, b: FunctionBuilder) -> Control:
    """The thread ends, whatever the call depth."""
    return leave


def leave(m: Machine, group: Group) -> bool:
    """All lanes of a group end; barriers that only wait for them open."""
    m.retire(m.active(group.mask))
    for number, released in m.named_barriers.exited(m.everyone.bits):
        m.released |= released
        opened(m, number, released)
    m.cluster_barriers.exited(m.everyone.bits)
    m.simt.is_dirty = True
    return True


class Trap(LaunchFailure):
    """`trap` ends the kernel with an error."""


@step("trap", "brkpt")
def build_trap(instr: Instr, b: FunctionBuilder) -> Step:
    """Ends the kernel with an error. Without a debugger a breakpoint does, too."""

    def trap(m: Machine, R: list, mask: Mask | None) -> None:
        lane = int(m.active(mask).idx[0])
        raise m.fault(
            Trap,
            f"a thread must not reach {instr.opcode}, got one",
            instr,
            lane,
            "See what leads there.",
        )

    return trap


@control("nanosleep")
def build_nanosleep(instr: Instr, b: FunctionBuilder) -> Control:
    """Time passes for all, and the others run first."""
    read = b.read(instr.operands[0], "u32")

    def sleep(m: Machine, group: Group) -> bool:
        values = m.of(read(group.R), m.active(group.mask))
        m.clock_offset_ns += int(values.max())
        group.block += 1
        return m.simt.rest(group)

    return sleep


@step("setmaxnreg", "griddepcontrol", "pmevent")
def build_nothing(instr: Instr, b: FunctionBuilder) -> Step:
    """Without effect here: registers are not counted, and launches do not overlap."""
    known = {
        "setmaxnreg": ("inc", "dec"),
        "griddepcontrol": ("wait", "launch_dependents"),
        "pmevent": ("mask",),
    }
    if instr.mods and instr.mods[0] not in known[instr.opcode]:
        raise unsupported(instr)
    return nothing


def nothing(m: Machine, R: list, mask: Mask | None) -> None:
    """A step that does nothing."""


def fault_of(
    kind: type[DeviceFault], error: DeviceFault, m: Machine, instr: Instr, lane: int, cure: str
) -> DeviceFault:
    """The fault of a pure function, with the place where it came up."""
    return m.fault(kind, str(error).rstrip("."), instr, lane, cure)
