"""Instructions of a warp: shfl, vote, match, redux, elect, activemask, bar.warp.sync.

PTX ISA, the sections that `warp` names; here are the operands, and the waiting. Lanes that arrive
before all threads of their member mask have wait at the instruction, and the last ones take them
along. `bar.warp.sync` also meets another `bar.warp.sync` of the warp. Threads that have exited are
not waited for. The forms without .sync are gone since sm_70 and are not modelled, nor is `redux` of
floats (sm_100a).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lesson.emulator import warp
from lesson.emulator.isa import Control, Step, control, step, unsupported
from lesson.emulator.lanes import EMPTY, Mask
from lesson.emulator.operands import FunctionBuilder, Read
from lesson.emulator.ptx import Instr, Operand, Pair, Sink
from lesson.emulator.simt import Group, Parked

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine

Members = Callable[[], "warp.Bools"]
Run = Callable[["Machine", list, "Mask | None", Members], None]
Rows = NDArray[np.generic]


def rows(m: Machine, values: Rows) -> Rows:
    """Values of the batch, one row a warp."""
    if values.size == 1:
        return np.broadcast_to(values, (m.nlanes // warp.LANES, warp.LANES))
    return values.reshape(-1, warp.LANES)


def flat(m: Machine, values: Rows) -> Rows:
    """Rows, or one value a warp, as one value a lane."""
    return np.broadcast_to(values, (m.nlanes // warp.LANES, warp.LANES)).reshape(-1)


def two_results(operand: Operand) -> tuple[Operand, Operand]:
    """`d|p`, or `d` alone."""
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, Sink())


# --------------------------------------------------------------------------------- meeting
def meeting(instr: Instr, read_mask: Read, run: Run) -> Control:
    """A control that runs for the lanes whose member mask is complete; the others wait here."""

    def meet(m: Machine, group: Group) -> bool:
        mask = group.mask
        named = read_mask(group.R)
        if mask is not None:
            mask = _with_waiting(m, group)
            here = mask.bits.reshape(-1, warp.LANES)
            early = _early(m, here, here, named)
            if early.n:
                m.simt.park(waiting_warp(group, early, instr, named))
                mask = mask - early
                if not mask.n:
                    return True
            group.mask = mask
        going = m.active(mask)

        def members() -> warp.Bools:
            here = going.bits.reshape(-1, warp.LANES)
            wanted = named.reshape(-1, 1 if named.size == 1 else warp.LANES)
            return warp.members_of(here, wanted)

        run(m, group.R, mask, members)
        for observer in m.observers:
            observer.warp_sync(m, instr, going.idx)
        group.block += 1
        return False

    return meet


def waiting_warp(group: Group, mask: Mask, instr: Instr, named: Rows) -> Parked:
    """Lanes that wait for others of their warp; nothing but an arrival or an exit lets them go."""
    return Parked("warp", group, mask, instr, lambda _: EMPTY, None, {"membermask": named})


def _with_waiting(m: Machine, group: Group) -> Mask:
    """The lanes of the group and those that wait at the same place, which wait no longer."""
    mask, others = group.mask, []
    for each in m.simt.parked:
        if each.kind == "warp" and (each.block, each.depth) == (group.block, group.depth):
            mask = mask | each.mask
        else:
            others.append(each)
    m.simt.parked = others
    return mask


def _early(m: Machine, lanes: warp.Bools, here: warp.Bools, named: Rows) -> Mask:
    """Those of some lanes whose member mask names a living thread that is not here."""
    live = m.everyone.bits.reshape(-1, warp.LANES)
    absent = live & ~here
    apart = (absent.any(axis=1) & lanes.any(axis=1)).nonzero()[0]
    if not apart.size:
        return EMPTY
    early = np.zeros_like(lanes)
    wanted = warp.to_lanes(rows(m, named)[apart]) & absent[apart, None, :]
    early[apart] = lanes[apart] & wanted.any(axis=2)
    return Mask(early.reshape(-1))


# ---------------------------------------------------------------------------- instructions
@control("shfl.sync")
def build_shfl(instr: Instr, f: FunctionBuilder) -> Control:
    mode = instr.mods[1]
    target, a, b, c, named = instr.operands
    value, exists = two_results(target)
    read_a, read_b, read_c = (f.read(x, "b32") for x in (a, b, c))
    write, write_exists = f.write(value, "b32"), f.write(exists, "pred")
    wants_exists = not isinstance(exists, Sink)

    def run(m: Machine, R: list, mask: Mask | None, members: Members) -> None:
        offsets, clamps = read_b(R), read_c(R)
        wide = [x if x.size == 1 else x.reshape(-1, warp.LANES) for x in (offsets, clamps)]
        offsets, clamps = (x.reshape(1, 1) if x.size == 1 else x for x in wide)
        read, there = warp.shfl(mode, rows(m, read_a(R)), offsets, clamps)
        write(R, read.reshape(-1), mask)
        if wants_exists:
            write_exists(R, there.reshape(-1), mask)

    return meeting(instr, f.read(named, "b32"), run)


@control("vote.sync")
def build_vote(instr: Instr, f: FunctionBuilder) -> Control:
    mode = instr.mods[1]
    target, a, named = instr.operands
    read = f.read(a, "pred")
    write = f.write(target, "b32" if mode == "ballot" else "pred")

    def run(m: Machine, R: list, mask: Mask | None, members: Members) -> None:
        predicate = rows(m, read(R))
        if mode == "ballot":
            write(R, flat(m, warp.ballot(predicate, members())), mask)
        else:
            write(R, flat(m, warp.vote(mode, predicate, members())), mask)

    return meeting(instr, f.read(named, "b32"), run)


@control("match.any.sync", "match.all.sync")
def build_match(instr: Instr, f: FunctionBuilder) -> Control:
    mode, _, kind = instr.mods
    target, a, named = instr.operands
    value, alike = two_results(target)
    read = f.read(a, kind)
    write, write_alike = f.write(value, "b32"), f.write(alike, "pred")

    def run(m: Machine, R: list, mask: Mask | None, members: Members) -> None:
        values = rows(m, read(R))
        if mode == "any":
            write(R, flat(m, warp.match_any(values, members())), mask)
            return
        found, same = warp.match_all(values, members())
        write(R, flat(m, found), mask)
        write_alike(R, flat(m, same), mask)

    return meeting(instr, f.read(named, "b32"), run)


@control("redux.sync")
def build_redux(instr: Instr, f: FunctionBuilder) -> Control:
    if instr.mods[1:] not in warp.REDUX_FORMS:
        raise unsupported(instr)
    _, op, kind = instr.mods
    target, a, named = instr.operands
    read, write = f.read(a, kind), f.write(target, kind)

    def run(m: Machine, R: list, mask: Mask | None, members: Members) -> None:
        write(R, flat(m, warp.redux(op, kind, rows(m, read(R)), members())), mask)

    return meeting(instr, f.read(named, "b32"), run)


@control("elect.sync")
def build_elect(instr: Instr, f: FunctionBuilder) -> Control:
    target, named = instr.operands
    leader, elected = two_results(target)
    write, write_elected = f.write(leader, "b32"), f.write(elected, "pred")

    def run(m: Machine, R: list, mask: Mask | None, members: Members) -> None:
        first, is_first = warp.elect(members())
        write(R, flat(m, first), mask)
        write_elected(R, flat(m, is_first), mask)

    return meeting(instr, f.read(named, "b32"), run)


@step("activemask")
def build_activemask(instr: Instr, f: FunctionBuilder) -> Step:
    (target,) = instr.operands
    write = f.write(target, "b32")

    def run(m: Machine, R: list, mask: Mask | None) -> None:
        here = m.active(mask).bits.reshape(-1, 1, warp.LANES)
        write(R, flat(m, warp.to_mask(here)), mask)

    return run


@control("bar.warp.sync")
def build_warp_barrier(instr: Instr, f: FunctionBuilder) -> Control:
    (named,) = instr.operands
    read = f.read(named, "b32")

    def arrive(m: Machine, group: Group) -> bool:
        mask = group.mask
        if mask is not None:
            here = mask.bits.reshape(-1, warp.LANES)
            early = _early(m, here, _at_warp_barriers(m, here), read(group.R))
            met = _let_go(m, here)
            if early.n:
                m.simt.park(waiting_warp(group, early, instr, read(group.R)))
                mask = mask - early
                if not mask.n and not met.any():
                    return True
            group.mask = mask
            met = met | mask.bits
        else:
            met = m.everyone.bits
        for observer in m.observers:
            observer.warp_sync(m, instr, np.flatnonzero(met))
        if mask is not None and not mask.n:
            return True
        group.block += 1
        return False

    return arrive


def _is_warp_barrier(each: Parked) -> bool:
    return each.kind == "warp" and each.instr.opcode == "bar"


def _at_warp_barriers(m: Machine, here: warp.Bools) -> warp.Bools:
    """The lanes of `here`, and all that wait at a bar.warp.sync."""
    reached = here.copy()
    for each in m.simt.parked:
        if _is_warp_barrier(each):
            reached |= each.mask.bits.reshape(-1, warp.LANES)
    return reached


def _let_go(m: Machine, here: warp.Bools) -> warp.Bools:
    """Let those lanes go that wait at a bar.warp.sync and need nobody beyond `here`; which."""
    reached = _at_warp_barriers(m, here)
    gone = np.zeros(m.nlanes, np.bool_)
    waiting, m.simt.parked = m.simt.parked, []
    for each in waiting:
        if _is_warp_barrier(each):
            lanes = each.mask.bits.reshape(-1, warp.LANES)
            early = _early(m, lanes, reached, each.detail["membermask"])
            going = each.mask - early if early.n else each.mask
            if going.n:
                gone |= going.bits
                m.simt.start(each.next_block, each.depth, going)
            each.mask = early
        if each.mask.n:
            m.simt.park(each)
    return gone
