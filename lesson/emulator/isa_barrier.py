"""Named barriers of a block, and the barrier of a cluster.

PTX ISA, "bar, barrier", "bar.warp.sync" is in `isa_warp`, "barrier.cluster". Counting is in `barriers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.isa import Control, control, unsupported
from lesson.emulator.lanes import EMPTY, Mask
from lesson.emulator.ptx import Imm, Instr
from lesson.emulator.simt import Parked

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder
    from lesson.emulator.simt import Group


def _released(m: Machine, mask: Mask) -> Mask:
    """The lanes of a mask that a named barrier has let go; each is asked once."""
    bits = mask.bits & m.released
    n = int(np.count_nonzero(bits))
    if n == 0:
        return EMPTY
    m.released &= ~bits
    return mask if n == mask.n else Mask(bits, n)


def _told(m: Machine, instr: Instr, act: Mask, number: np.ndarray, released: np.ndarray | None) -> None:
    """Tell the observers who arrived and who may go."""
    lanes = act.idx
    numbers = np.broadcast_to(m.of(number, act), act.n)
    for observer in m.observers:
        observer.bar_arrive(m, instr, lanes, numbers)
    if released is None:
        return
    going = np.flatnonzero(released)
    blocks = m.block_of[going]
    for block in np.unique(blocks).tolist():
        for observer in m.observers:
            observer.bar_release(m, going[blocks == block], block, int(number[0]))


def _operands(instr: Instr, b: FunctionBuilder, has_predicate: bool, has_result: bool) -> tuple:
    """Readers of the barrier number, the thread count (or None) and the predicate (or None)."""
    rest = list(instr.operands[has_result:])
    predicate = b.read(rest.pop(), "pred") if has_predicate else None
    number = b.read(rest.pop(0) if rest else Imm(0), "u32")
    count = b.read(rest.pop(0), "u32") if rest else None
    return number, count, predicate


def _kind(instr: Instr) -> tuple[str, str]:
    """sync, arrive or red; and the operation of red."""
    mods = [mod for mod in instr.mods if mod not in ("cta", "aligned")]
    if not mods or mods[0] not in ("sync", "arrive", "red"):
        raise unsupported(instr)
    return mods[0], mods[1] if len(mods) > 1 else ""


@control("bar", "barrier")
def build_bar(instr: Instr, b: FunctionBuilder) -> Control:
    """`bar.sync a{, n}`, `bar.arrive a, n`, `bar.red.op d, a{, n}, p`."""
    kind, op = _kind(instr)
    is_red = kind == "red"
    number, count, predicate = _operands(instr, b, is_red, is_red)
    write = b.write(instr.operands[0], "u32" if op == "popc" else "pred") if is_red else None

    def result(m: Machine, R: list, mask: Mask) -> None:
        if write is None:
            return
        yes, asked = m.named_barriers.popc.reshape(-1), m.named_barriers.threads.reshape(-1)
        value = {"popc": yes, "and": yes == asked, "or": yes > 0}[op]
        write(R, value.copy(), mask)

    def bar(m: Machine, group: Group) -> bool:
        act, R = m.active(group.mask), group.R
        ids = number(R)
        if group.mask is None and count is None and not is_red and ids.size == 1 and kind == "sync" and not m.waits_at_bar:
            if m.observers:
                _told(m, instr, act, ids, act.bits)
            group.block += 1
            return False
        counts = None if count is None else count(R)
        says = None if predicate is None else predicate(R)
        going = m.named_barriers.arrive(act.bits, m.everyone.bits, ids, counts, says, waits=kind != "arrive")
        if m.observers:
            _told(m, instr, act, ids, going)
        m.released |= going
        m.version += 1
        m.waits_at_bar = True
        if kind == "arrive":
            m.simt.retest()
            group.block += 1
            return False
        detail = {"barrier": m.each(ids, act)}
        m.simt.park(Parked("bar", group, act, instr, lambda mask: _released(m, mask), lambda mask, late: result(m, R, mask), detail))
        m.simt.retest()
        return True

    return bar


@control("barrier.cluster")
def build_cluster(instr: Instr, b: FunctionBuilder) -> Control:
    """`barrier.cluster.arrive` goes on; `barrier.cluster.wait` waits for the phase of that arrival."""
    known = {"cluster", "arrive", "wait", "aligned", "acquire", "release", "relaxed"}
    if not known.issuperset(instr.mods):
        raise unsupported(instr)

    def arrive(m: Machine, group: Group) -> bool:
        act = m.active(group.mask)
        if m.observers:
            for observer in m.observers:
                observer.bar_arrive(m, instr, act.idx, np.full(act.n, -1))
        done = m.cluster_barriers.arrive(act.bits, m.everyone.bits)
        _opened(m, done)
        group.block += 1
        return False

    def wait(m: Machine, group: Group) -> bool:
        act = m.active(group.mask)
        going = _passing(m, act)
        if going is act:
            group.block += 1
            return False
        parked = Parked("cluster", group, act, instr, lambda mask: _passing(m, mask), None, {"barrier": -1})
        m.simt.park(parked)
        m.simt.retest()
        return True

    return arrive if "arrive" in instr.mods else wait


def _passing(m: Machine, mask: Mask) -> Mask:
    bits = m.cluster_barriers.may_pass(mask.bits)
    n = int(np.count_nonzero(bits))
    if n == 0:
        return EMPTY
    return mask if n == mask.n else Mask(bits, n)


def _opened(m: Machine, done: np.ndarray) -> None:
    """Clusters whose barrier has opened: wake those who wait, tell the observers."""
    m.version += 1
    if not done.any():
        return
    m.simt.is_dirty = True
    width = m.cluster_nblocks * m.padded_threads
    for cluster in np.flatnonzero(done).tolist() if m.observers else ():
        lanes = cluster * width + np.flatnonzero(m.everyone.bits[cluster * width : (cluster + 1) * width])
        for observer in m.observers:
            observer.bar_release(m, lanes, cluster * m.cluster_nblocks, -1)
