"""Instructions of the barriers of a block and of a cluster.

PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier, bar.red,
barrier.cluster"; who may go on is decided in `barriers`. Threads that may not are parked.
`.aligned` only promises what is not needed here, and so do the semantics of barrier.cluster: memory
is the same for all at once. Operands in registers are as an H200 took them: of a barrier's number
the low four bits, and a thread count of part of a warp is an illegal instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.barriers import BARRIERS, WARP, NamedBarriers
from lesson.emulator.isa import Control, Step, control, step, unsupported
from lesson.emulator.lanes import EMPTY, Bits, Mask, Values
from lesson.emulator.operands import FunctionBuilder, Read, Write
from lesson.emulator.ptx import Imm, Instr, Operand
from lesson.emulator.simt import Group, Parked
from lesson.errors import IllegalInstruction, PtxSyntaxError

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine

_NAMES = ("bar", "bar.cta", "barrier", "barrier.cta")


def _names(op: str) -> tuple[str, ...]:
    return tuple(f"{name}.{op}" for name in _NAMES)


def _by_number(m: Machine, instr: Instr, read: Read, R: list, act: Mask) -> list[tuple[int, Bits]]:
    """The lanes of each barrier that they name, by the low four bits of the number."""
    numbers = m.of(read(R), act) & np.uint32(BARRIERS - 1)
    largest = int(numbers.max())
    if int(numbers.min()) == largest:
        return [(largest, act.bits)]
    found = []
    for number in np.unique(numbers).tolist():
        bits = np.zeros(m.nlanes, np.bool_)
        bits[act.idx[numbers == number]] = True
        found.append((number, bits))
    return found


def _checked(m: Machine, instr: Instr, count: Values, act: Mask) -> Values:
    """Thread counts, which must be those of whole warps."""
    rest = m.of(count, act) % np.uint32(WARP)
    if rest.any():
        at = int(rest.argmax())
        lane = m.lane_of(act, at)
        got = int(count[0] if count.size == 1 else count[lane])
        raise m.fault(
            IllegalInstruction,
            f"the thread count of a barrier must be a multiple of {WARP}, got {got}",
            instr,
            lane,
            "Barriers count warps: round the number of threads up.",
        )
    return count


def opened(m: Machine, number: int, released: Bits) -> None:
    """Lanes that waited at a barrier may go; tell the observers."""
    if m.observers:
        lanes = np.flatnonzero(released)
        for block in np.unique(m.block_of[lanes]).tolist():
            for observer in m.observers:
                observer.bar_release(m, lanes[m.block_of[lanes] == block], block, number)


class Arrival:
    """The operands that all forms have: the barrier, a count or none, a predicate or none."""

    def __init__(
        self,
        instr: Instr,
        f: FunctionBuilder,
        number: Operand,
        count: Operand | None,
        said: Operand | None,
    ) -> None:
        self.instr = instr
        if isinstance(number, Imm) and not 0 <= number.value < BARRIERS:
            raise PtxSyntaxError(
                f"the number of a barrier must be 0 to {BARRIERS - 1}, got {number.value}. PTX "
                f"line {instr.line}. An mbarrier in shared memory is a barrier as well."
            )
        self.number = f.read(number, "u32")
        self.count = None if count is None else f.read(count, "u32")
        self.said = None if said is None else f.read(said, "pred")

    def arrive(self, m: Machine, R: list, mask: Mask | None, waits: bool) -> Bits:
        """Lanes arrive; all lanes of the batch that may go on because of it."""
        act = m.active(mask)
        count = None if self.count is None else _checked(m, self.instr, self.count(R), act)
        said = None if self.said is None else self.said(R)
        released = None
        for number, bits in _by_number(m, self.instr, self.number, R, act):
            if m.observers:
                lanes = np.flatnonzero(bits)
                for observer in m.observers:
                    observer.bar_arrive(m, self.instr, lanes, np.full(lanes.size, number))
            going = m.named_barriers.arrive(number, bits, m.everyone.bits, count, said, waits=waits)
            opened(m, number, going)
            released = going if released is None else released | going
        m.version += 1
        return released


_RESULTS: dict[str, Callable[[NamedBarriers], Values]] = {
    "popc": lambda barriers: barriers.popc.flatten(),
    "and": lambda barriers: (barriers.popc == barriers.threads).reshape(-1),
    "or": lambda barriers: (barriers.popc > 0).reshape(-1),
}


def _waiting(arrival: Arrival, finish: Write | None, result: str) -> Control:
    """bar.sync, or bar.red if there is a result to write."""

    def write_result(m: Machine, R: list, mask: Mask | None) -> None:
        if finish is not None:
            finish(R, _RESULTS[result](m.named_barriers), mask)

    def sync(m: Machine, group: Group) -> bool:
        mask, R = group.mask, group.R
        act = m.active(mask)
        released = arrival.arrive(m, R, mask, True)
        going = act.bits & released
        here = int(np.count_nonzero(going))
        if int(np.count_nonzero(released)) > here:
            m.released |= released & ~act.bits
            m.simt.is_dirty = True
        if here < act.n:
            late = Mask(act.bits & ~going)

            def poll(waiting: Mask) -> Mask:
                bits = waiting.bits & m.released
                return Mask(bits) if bits.any() else EMPTY

            def release(free: Mask, is_timeout: bool) -> None:
                m.released &= ~free.bits
                write_result(m, R, free)

            detail = {"barrier": m.each(arrival.number(R), late)}
            m.simt.park(Parked("bar", group, late, arrival.instr, poll, release, detail))
            if not here:
                return True
            group.mask = mask = Mask(going, here)
        write_result(m, R, mask)
        group.block += 1
        return False

    return sync


@control(*_names("sync"))
def build_sync(instr: Instr, f: FunctionBuilder) -> Control:
    number, count = (*instr.operands, None)[:2]
    return _waiting(Arrival(instr, f, number, count, None), None, "")


@control(*_names("red"))
def build_red(instr: Instr, f: FunctionBuilder) -> Control:
    target, number, *counts, said = instr.operands
    result = next((mod for mod in instr.mods if mod in _RESULTS), "")
    if not result or len(counts) > 1:
        raise unsupported(instr)
    write = f.write(target, "u32" if result == "popc" else "pred")
    return _waiting(Arrival(instr, f, number, counts[0] if counts else None, said), write, result)


@step(*_names("arrive"))
def build_arrive(instr: Instr, f: FunctionBuilder) -> Step:
    arrival = Arrival(instr, f, *instr.operands, None)

    def arrive(m: Machine, R: list, mask: Mask | None) -> None:
        m.released |= arrival.arrive(m, R, mask, False)
        m.simt.is_dirty = True

    return arrive


# --------------------------------------------------------------------------------- clusters
@step("barrier.cluster.arrive")
def build_cluster_arrive(instr: Instr, f: FunctionBuilder) -> Step:
    def arrive(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        for observer in m.observers:
            observer.bar_arrive(m, instr, act.idx, np.full(act.n, -1))
        done = m.cluster_barriers.arrive(act.bits, m.everyone.bits)
        m.version += 1
        m.simt.is_dirty = True
        if m.observers and done.any():
            per_cluster = m.padded_threads * m.cluster_nblocks
            for cluster in np.flatnonzero(done).tolist():
                everyone = m.everyone.idx
                lanes = everyone[everyone // per_cluster == cluster]
                for observer in m.observers:
                    observer.bar_release(m, lanes, cluster * m.cluster_nblocks, -1)

    return arrive


@control("barrier.cluster.wait")
def build_cluster_wait(instr: Instr, f: FunctionBuilder) -> Control:
    def wait(m: Machine, group: Group) -> bool:
        act = m.active(group.mask)
        going = m.cluster_barriers.may_pass(act.bits)
        here = int(np.count_nonzero(going))
        if here < act.n:

            def poll(waiting: Mask) -> Mask:
                bits = m.cluster_barriers.may_pass(waiting.bits)
                return Mask(bits) if bits.any() else EMPTY

            m.simt.park(Parked("cluster", group, Mask(act.bits & ~going), instr, poll))
            if not here:
                return True
            group.mask = Mask(going, here)
        group.block += 1
        return False

    return wait
