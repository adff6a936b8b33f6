"""Instructions on mbarriers.

PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier.*"; what they do to a
barrier is in `mbarrier`. Memory is the same for all at once, so semantics and scopes add nothing.
`try_wait` parks its threads: they get true as soon as the phase is over, and false only when nobody
else can move. Barriers lie in shared memory, with `.shared::cluster` in that of any block of the
cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator import mbarrier
from lesson.emulator.isa import Control, Step, control, step, unsupported
from lesson.emulator.lanes import EMPTY, Mask, mask_of, scattered
from lesson.emulator.late import defer, is_read
from lesson.emulator.mbarrier_operands import NBYTES, Places, barriers_of
from lesson.emulator.operands import FunctionBuilder, Read
from lesson.emulator.ptx import Instr, Operand, Sink
from lesson.emulator.simt import Group, Parked
from lesson.errors import DeviceFault, LaunchFailure

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine

__all__ = ["barriers_of", "changed", "fault", "tell"]
YES, NO = np.array([True]), np.array([False])
_QUALIFIERS = frozenset(
    ["b64", "release", "acquire", "relaxed", "cta", "cluster", "shared", "shared::cta"]
)


def check_qualifiers(instr: Instr, *own: str) -> None:
    """Refuse a modifier that no form of the instruction has."""
    for mod in instr.mods:
        if mod not in _QUALIFIERS and mod != "shared::cluster" and mod not in own:
            raise unsupported(instr)


def tell(m: Machine, instr: Instr, op: str, act: Mask, places: Places, **details: object) -> None:
    """Tell the observers of an operation."""
    for observer in m.observers:
        observer.mbar(m, instr, op, act.idx, places.index, **details)


def changed(m: Machine, instr: Instr, act: Mask, places: Places, flipped: mbarrier.Index) -> None:
    """Barriers have changed, and the phases of some are over: waiting threads look again."""
    m.version += 1
    if flipped.size:
        m.simt.is_dirty = True
        for word in flipped.tolist() if m.observers else ():
            lanes = act.idx[places.index == word * NBYTES]
            for observer in m.observers:
                observer.mbar(m, instr, "flip", lanes, np.full(lanes.size, word * NBYTES))


def fault(
    m: Machine, instr: Instr, act: Mask, error: mbarrier.MbarrierFault, places: Places
) -> DeviceFault:
    """The error of the thread that did it; the barrier rides along for the diagnosis."""
    made = m.fault(LaunchFailure, error.text, instr, m.lane_of(act, error.position), error.cure)
    made.barrier = int(places.index[error.position])  # type: ignore[attr-defined]
    made.__cause__ = error
    return made


# ------------------------------------------------------------------------------ life and death
@step("mbarrier.init")
def build_init(instr: Instr, f: FunctionBuilder) -> Step:
    check_qualifiers(instr, "init")
    find = barriers_of(instr, f, instr.operands[0])
    read = f.read(instr.operands[1], "u32")

    def init(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        places, count = find(m, R, act), m.of(read(R), act)
        words = places.words if count.size == 1 else places.index >> 3
        mbarrier.init(m.shared.views[NBYTES], words, count)
        m.version += 1
        tell(m, instr, "init", act, places, count=count)

    return init


@step("mbarrier.inval")
def build_inval(instr: Instr, f: FunctionBuilder) -> Step:
    check_qualifiers(instr, "inval")
    find = barriers_of(instr, f, instr.operands[0])

    def inval(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        places = find(m, R, act)
        mbarrier.inval(m.shared.views[NBYTES], places.words)
        tell(m, instr, "inval", act, places)

    return inval


# ------------------------------------------------------------------------------------ arriving
@step("mbarrier.arrive", "mbarrier.arrive_drop")
def build_arrive(instr: Instr, f: FunctionBuilder) -> Step:
    """An arrive-on. Without a reader of its token, a fault of it is a late one."""
    check_qualifiers(instr, "arrive", "arrive_drop", "expect_tx", "noComplete")
    target, address, *amount = instr.operands
    is_drop, is_tx = instr.mods[0] == "arrive_drop", "expect_tx" in instr.mods
    if is_tx and not amount:
        raise unsupported(instr)
    find, block = barriers_of(instr, f, address), f.block
    read = f.read(amount[0], "u32") if amount else None
    wants_token = not isinstance(target, Sink)
    is_waited_for = is_read(f, instr, target)
    slot, widen = f.dest(target, "b64")

    def arrive(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        places = find(m, R, act)
        given = 1 if read is None else m.of(read(R), act)
        count, nbytes = (1, given) if is_tx else (given, 0)
        try:
            tokens, flipped = mbarrier.arrive(
                m.shared.views[NBYTES], places.at, count, nbytes, drop=is_drop, tokens=wants_token
            )
        except mbarrier.MbarrierFault as error:
            made = fault(m, instr, act, error, places)
            if is_waited_for:
                raise made from error
            defer(m, block, made)
            return
        if wants_token:
            tokens = tokens if widen is None else widen(tokens)
            R[slot] = tokens if act.n == m.nlanes else scattered(R[slot], tokens, act)
        tell(m, instr, "arrive", act, places, count=count, nbytes=nbytes, drop=is_drop)
        changed(m, instr, act, places, flipped)

    return arrive


@step("mbarrier.expect_tx", "mbarrier.complete_tx")
def build_tx(instr: Instr, f: FunctionBuilder) -> Step:
    """Bytes that are expected or have come; there is no result, so a fault is a late one."""
    op, block = instr.mods[0], f.block
    check_qualifiers(instr, op)
    find = barriers_of(instr, f, instr.operands[0])
    read = f.read(instr.operands[1], "u32")
    act_on = mbarrier.expect_tx if op == "expect_tx" else mbarrier.complete_tx

    def count_bytes(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        places, nbytes = find(m, R, act), m.of(read(R), act)
        try:
            flipped = act_on(m.shared.views[NBYTES], places.at, nbytes)
        except mbarrier.MbarrierFault as error:
            defer(m, block, fault(m, instr, act, error, places))
            return
        tell(m, instr, op, act, places, nbytes=nbytes)
        changed(m, instr, act, places, flipped)

    return count_bytes


@step("mbarrier.pending_count")
def build_pending_count(instr: Instr, f: FunctionBuilder) -> Step:
    target, token = instr.operands
    read, write = f.read(token, "b64"), f.write(target, "u32")
    return lambda m, R, mask: write(R, mbarrier.pending_count(read(R)), mask)


# ------------------------------------------------------------------------------------- waiting
def _parity_asked(instr: Instr, f: FunctionBuilder, operand: Operand) -> Read:
    """The parity that a wait asks for, given itself or by a token."""
    if "parity" in instr.mods:
        return f.read(operand, "u32")
    read = f.read(operand, "b64")
    return lambda R: mbarrier.parity_of(read(R))


@step("mbarrier.test_wait")
def build_test_wait(instr: Instr, f: FunctionBuilder) -> Step:
    check_qualifiers(instr, "test_wait", "parity")
    target, address, asked = instr.operands
    find, parity = barriers_of(instr, f, address), _parity_asked(instr, f, asked)
    slot, _ = f.dest(target, "pred")

    def test(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        places, phase = find(m, R, act), m.of(parity(R), act)
        done = mbarrier.is_over(m.shared.views[NBYTES], places.at, phase)
        R[slot] = done if act.n == m.nlanes else scattered(R[slot], done, act)
        tell(m, instr, "test", act, places, parity=phase, done=done)

    return test


@control("mbarrier.try_wait")
def build_try_wait(instr: Instr, f: FunctionBuilder) -> Control:
    check_qualifiers(instr, "try_wait", "parity")
    target, address, asked = instr.operands[:3]
    find, parity = barriers_of(instr, f, address), _parity_asked(instr, f, asked)
    write = f.write(target, "pred")

    def wait(m: Machine, group: Group) -> bool:
        R, act = group.R, m.active(group.mask)
        places, phase = find(m, R, act), m.of(parity(R), act)
        done = mbarrier.is_over(m.shared.views[NBYTES], places.at, phase)
        tell(m, instr, "try", act, places, parity=phase, done=done)
        if not done.all():
            late = mask_of(act.idx[~done], m.nlanes)
            phases = np.broadcast_to(phase, act.n)[~done]
            wait = _Wait(m, instr, late, places.part(~done), phases)
            m.simt.park(wait.parked(group, lambda free, answer: write(R, answer, free)))
            if late.n == act.n:
                return True
            group.mask = mask_of(act.idx[done], m.nlanes)
        write(R, YES, group.mask)
        group.block += 1
        return False

    return wait


class _Wait:
    """Lanes in one try_wait: the barrier (flat shared byte index) and parity that each wants."""

    def __init__(
        self, m: Machine, instr: Instr, mask: Mask, places: Places, parity: np.ndarray
    ) -> None:
        self.m, self.instr, self.mask = m, instr, mask
        self.detail: dict[str, object] = {"index": places.index, "parity": parity}

    def parked(self, group: Group, answer: Callable[[Mask, np.ndarray], None]) -> Parked:
        """The lanes as the scheduler keeps them."""

        def release(free: Mask, is_timeout: bool) -> None:
            answer(free, NO if is_timeout else YES)
            going = free.bits[self.mask.idx]
            index, parity = self.detail["index"], self.detail["parity"]
            here = {"parity": parity[going], "done": np.full(free.n, not is_timeout)}
            part = Places(index[going] >> 3, index[going])
            tell(self.m, self.instr, "try", free, part, **here)
            self.detail |= {"index": index[~going], "parity": parity[~going]}
            self.mask = self.mask - free

        return Parked("mbarrier", group, self.mask, self.instr, self.poll, release, self.detail)

    def poll(self, mask: Mask) -> Mask:
        """The lanes whose phase is over."""
        view = self.m.shared.views[NBYTES]
        over = mbarrier.is_over(view, self.detail["index"] >> 3, self.detail["parity"])
        return mask_of(self.mask.idx[over], self.m.nlanes) if over.any() else EMPTY
