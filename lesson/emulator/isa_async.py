"""cp.async: copies of 4, 8 or 16 bytes a lane from global to shared memory.

PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy". One record in the queue of
copies holds all lanes of an instruction. The arrive-on of `cp.async.mbarrier.arrive` follows when a
lane's copies have landed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator import groups, mbarrier
from lesson.emulator.isa import Control, Step, control, step, unsupported
from lesson.emulator.isa_mbarrier import barriers_of, changed, fault, tell
from lesson.emulator.isa_memory import address_of
from lesson.emulator.lanes import Mask, mask_of
from lesson.emulator.mbarrier_operands import Places
from lesson.emulator.memory import Index, global_place, shared_place
from lesson.emulator.observe import Copy
from lesson.emulator.operands import Read
from lesson.emulator.ptx import Imm, Instr, Operand, Reg

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder


def _source_size(b: FunctionBuilder, instr: Instr, size: int, rest: list[Operand]) -> Read | None:
    """How many bytes each lane reads; None for all of them."""
    if not rest:
        return None
    first = rest[0]
    if isinstance(first, Reg) and b.width_of(first) == "b64":
        return None
    if isinstance(first, Reg) and b.width_of(first) == "pred":
        ignore = b.read(first, "pred")
        return lambda R: np.where(ignore(R), np.uint32(0), np.uint32(size))
    return b.read(first, "u32")


@step("cp.async.ca", "cp.async.cg")
def build_cp_async(instr: Instr, b: FunctionBuilder) -> Step:
    """`cp.async.ca.shared.global [d], [s], size{, src_size | ignore_src}{, policy}`."""
    target, source, width, *rest = instr.operands
    if not isinstance(width, Imm) or width.value not in (4, 8, 16) or "global" not in instr.mods:
        raise unsupported(instr)
    size = int(width.value)
    get_target, get_source = address_of(b, target), address_of(b, source)
    get_size = _source_size(b, instr, size, rest)

    def copy(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        to = shared_place(m, instr, m.each(get_target(R), act), size, act).index
        addr = m.each(get_source(R), act)
        if get_size is None:
            came = global_place(m, instr, addr, size, act, False).index
            move = _whole(m, to, came, size)
        else:
            count = np.minimum(m.each(get_size(R), act), np.uint32(size)).astype(np.int64)
            came = _sources(m, instr, addr, size, act, count)
            move = _part(m, to, came, size, count)
        lanes = act.idx
        record = Copy(
            0, "cp_async", instr, int(lanes[0]), int(m.block_of[lanes[0]]),
            nbytes=size, lanes=lanes, groups=m.groups_closed["cp_async"][lanes].copy(),
            smem_index=to, global_index=came,
        )  # fmt: skip
        m.copies.issue(record, move)

    return copy


def _sources(
    m: Machine, instr: Instr, addr: np.ndarray, size: int, act: Mask, count: Index
) -> Index:
    """Where each lane reads; a lane that reads nothing may have any address."""
    came = np.full(act.n, m.param_segment.start, np.int64)
    some = np.flatnonzero(count > 0)
    if some.size:
        part = mask_of(act.idx[some], m.nlanes)
        came[some] = global_place(m, instr, addr[some], size, part, False).index
    return came


def _whole(m: Machine, to: Index, came: Index, size: int) -> Callable[[], None]:
    """Move all bytes, in words of up to 8."""
    word = min(size, 8)
    shift = word.bit_length() - 1
    target, source = m.shared.views[word], m.memory.buffer.views[word]

    def move() -> None:
        for k in range(size // word):
            target[(to >> shift) + k] = source[(came >> shift) + k]

    return move


def _part(m: Machine, to: Index, came: Index, size: int, count: Index) -> Callable[[], None]:
    """Move the first bytes, and zeros behind them."""
    at = np.arange(size)

    def move() -> None:
        reads = at < count[:, None]
        data = m.memory.buffer.u8[np.where(reads, came[:, None] + at, 0)]
        m.shared.u8[to[:, None] + at] = np.where(reads, data, np.uint8(0))

    return move


@step("cp.async.commit_group")
def build_commit(instr: Instr, b: FunctionBuilder) -> Step:
    """Close the open group."""
    return groups.commit(instr, "cp_async")


@control("cp.async.wait_group")
def build_wait(instr: Instr, b: FunctionBuilder) -> Control:
    """`cp.async.wait_group n`."""
    (n,) = instr.operands
    return groups.wait(instr, "cp_async", groups.allowed(n), False)


@control("cp.async.wait_all")
def build_wait_all(instr: Instr, b: FunctionBuilder) -> Control:
    """All copies of the lane, closed or not."""
    return groups.wait(instr, "cp_async", -1, False)


@step("cp.async.mbarrier.arrive")
def build_arrive(instr: Instr, b: FunctionBuilder) -> Step:
    """`cp.async.mbarrier.arrive{.noinc}.shared.b64 [a]`: an arrival when the copies have landed.

    Without `.noinc` the pending count first goes up by one, so that the arrival takes nothing away.
    """
    find = barriers_of(instr, b, instr.operands[0])
    is_extra = "noinc" not in instr.mods

    def arrive(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        index = np.zeros(m.nlanes, np.int64)
        index[act.idx] = find(m, R, act).index
        view = m.shared.views[8]
        if is_extra:
            for word in (index[act.idx] >> 3).tolist():
                state = mbarrier.unpack(int(view[word]))
                view[word] = mbarrier.pack(state._replace(pending=state.pending + 1))

        def land(ready: Mask) -> None:
            at = index[ready.idx]
            places = Places(at >> 3, at)
            try:
                flipped = mbarrier.arrive(view, places.at, tokens=False).flipped
            except mbarrier.MbarrierFault as error:
                raise fault(m, instr, ready, error, places) from error
            tell(m, instr, "arrive", ready, places, count=1, nbytes=None, drop=False)
            changed(m, instr, ready, places, flipped)

        m.copies.after_cp_async(act, land)

    return arrive
