"""Tensor copies: what a thread gives to the tensor memory access engine.

PTX ISA, "Data Movement and Conversion Instructions: Tensor copy", tile mode, one to five
dimensions: loads (with multicast), stores, reductions, prefetches. Which bytes move is in `tma`;
when, in `copies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson.emulator import tma
from lesson.emulator.arguments import MAP_MAGIC, MAP_NBYTES
from lesson.emulator.bulk_operands import barrier_index, split_optional, targets_of
from lesson.emulator.isa import Step, step, unsupported
from lesson.emulator.isa_bulk import REDUCTIONS
from lesson.emulator.isa_memory import address_of
from lesson.emulator.lanes import Mask
from lesson.emulator.memory import Index, Segment, generic_place, shared_place
from lesson.emulator.observe import Copy
from lesson.emulator.operands import Read
from lesson.emulator.ptx import Addr, Instr, Operand, TensorAddr
from lesson.emulator.windows import SHARED_FIRST
from lesson.errors import DeviceFault, IllegalAddress, IllegalInstruction
from lesson.tensor_map import TensorMap
from lesson.tensor_map_broken import multiple_above

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder


class Asked(NamedTuple):
    """One lane's request.

    `segment`: the allocation that holds the tensor, `offset`: where it starts there; `space`: the
    memory that the map lies in.
    """

    lane: int
    tmap: TensorMap
    segment: Segment
    offset: int
    coords: tuple[int, ...]
    space: str


class Request:
    """The operands `[map, {coords}]` of a tensor copy."""

    def __init__(self, instr: Instr, b: FunctionBuilder, operand: Operand) -> None:
        mode = tma.unmodelled_mode(instr.mods)
        if mode:
            raise unsupported(instr, mode)
        rank = next((int(mod[0]) for mod in instr.mods if mod in ("1d", "2d", "3d", "4d", "5d")), 0)
        if not isinstance(operand, TensorAddr) or len(operand.coords.items) != rank:
            raise unsupported(instr)
        self.instr = instr
        self.map = address_of(b, Addr(operand.base))
        self.coords = [b.read(each, "s32") for each in operand.coords.items]

    def asked(self, m: Machine, R: list, act: Mask, is_store: bool, op: str | None) -> list[Asked]:
        """What each active lane asks for; faults where the chip does."""
        maps, space = self._maps(m, R, act)
        coords = np.stack(
            [m.each(read(R), act).view(np.int32) for read in self.coords], axis=1
        ).tolist()
        found = []
        for lane, number, at in zip(act.idx.tolist(), maps, coords, strict=True):
            tmap, segment, offset = m.arguments.tensor(number)
            fault = tma.start_fault(tmap, tuple(at), is_store, op)
            if fault is not None:
                raise self.illegal(m, lane, fault)
            found.append(Asked(lane, tmap, segment, offset, tuple(at), space))
        return found

    def illegal(self, m: Machine, lane: int, text: str) -> DeviceFault:
        """An illegal instruction, with the words of the engine: what is wrong, then the cure."""
        what, _, cure = text.partition(". ")
        return m.fault(IllegalInstruction, what.rstrip("."), self.instr, lane, cure)

    def _maps(self, m: Machine, R: list, act: Mask) -> tuple[list[int], str]:
        """The number of the map that each lane's address holds, and the space that it lies in."""
        addr = m.of(self.map(R), act)
        place = generic_place(m, self.instr, addr, 16, act, False)
        if place is None or place.space not in ("global", "const", "param"):
            space = "several spaces" if place is None else f"{place.space} memory"
            what = f"a tensor map must lie in global, constant or parameter memory, got {space}"
            cure = (
                "Pass it as `const __grid_constant__ CUtensorMap`, and do not copy it into a "
                "variable."
            )
            raise m.fault(IllegalAddress, what, self.instr, int(act.idx[0]), cure)
        words = place.buffer.views[8]
        at = place.index >> 3
        numbers = words[at + 1]
        bad = np.flatnonzero((words[at] != np.uint64(MAP_MAGIC)) | (numbers >= m.arguments.count))
        if bad.size:
            what = (
                f"a tensor map must be one that the launch was given, got other {MAP_NBYTES} "
                f"bytes at {int(addr[bad[0]]):#x}"
            )
            raise m.fault(
                IllegalInstruction,
                what,
                self.instr,
                m.lane_of(act, int(bad[0])),
                "Check the address of the map.",
            )
        return np.broadcast_to(numbers, act.n).tolist(), place.space


def _shared(m: Machine, instr: Instr, read: Read, R: list, act: Mask, is_cluster: bool) -> Index:
    """Flat index of each lane's tile."""
    return shared_place(
        m, instr, m.each(read(R), act), 1, act, is_cluster, align=tma.SHARED_ALIGN_NBYTES
    ).index


def _issue(
    m: Machine, instr: Instr, kind: str, asked: Asked, start: int, barrier: int, op: str | None
) -> None:
    """Hand one copy to the engine."""
    lane, tmap, segment, tensor_at, coords, space = asked
    block, offset = divmod(start, m.shared_stride)
    first = block * m.shared_stride
    smem = m.shared.u8[first : first + m.shared_nbytes]
    # A store writes whole units of 16 bytes: the last one may end in the gap behind the array.
    stop_at = segment.start + multiple_above(segment.nbytes, tma.UNIT_NBYTES)
    tensor = m.memory.buffer.u8[segment.start : stop_at]
    if kind != "load":
        segment.is_written = True
    nbytes = tma.box_nbytes(tmap)
    stop = start + nbytes
    if m.observers:
        stop = first + tma.smem_footprint(tmap, SHARED_FIRST + offset)[-1][1] - SHARED_FIRST
    groups = np.array([-1]) if kind == "load" else m.groups_closed["bulk"][lane : lane + 1].copy()
    copy = Copy(
        0, kind, instr, lane, block, tmap, coords, start, stop, segment.start + tensor_at,
        nbytes=nbytes, barrier=barrier, op=op, lanes=np.array([lane]), groups=groups,
        map_space=space,
    )  # fmt: skip
    given = (tmap, coords, tensor, tensor_at, smem, offset, SHARED_FIRST + offset)
    m.copies.issue(copy, lambda: _move(m, copy, given))


def _move(m: Machine, copy: Copy, given: tuple[Any, ...]) -> None:
    """Move the bytes; a fault of the engine gets the instruction and the lane."""
    try:
        if copy.kind == "load":
            tma.load(*given)
        elif copy.op is None:
            tma.store(*given)
        else:
            tma.reduce(copy.op, *given)
    except DeviceFault as error:
        what, _, cure = str(error).partition(". ")
        raise m.fault(type(error), what, copy.instr, copy.lane, cure) from error


@step("cp.async.bulk.tensor")
def build_tensor(instr: Instr, b: FunctionBuilder) -> Step:
    """A load or a store of one box, by its operands."""
    if instr.mods[4:5] == ("global",):
        return _store(instr, b, None)
    if (
        instr.mods[4:5] not in (("shared::cluster",), ("shared::cta",))
        or "cta_group::2" in instr.mods
    ):
        raise unsupported(instr)
    target, tensor, barrier, *rest = instr.operands
    request = Request(instr, b, tensor)
    multicast = split_optional(b, instr, rest)
    get_target, get_barrier = address_of(b, target), address_of(b, barrier)

    def load(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        asked = request.asked(m, R, act, False, None)
        starts = _shared(m, instr, get_target, R, act, True).tolist()
        bars = barrier_index(m, instr, get_barrier, R, act).tolist()
        masks = m.each(multicast(R), act).tolist() if multicast else [None] * act.n
        for each, start, bar, ranks in zip(asked, starts, bars, masks, strict=True):
            spots = targets_of(m, instr, each.lane, start, ranks)
            for spot, at in zip(spots, targets_of(m, instr, each.lane, bar, ranks), strict=True):
                _issue(m, instr, "load", each, spot, at, None)

    return load


def _store(instr: Instr, b: FunctionBuilder, op: str | None) -> Step:
    tensor, source, *rest = instr.operands
    request = Request(instr, b, tensor)
    split_optional(b, instr, rest)
    get_source = address_of(b, source)

    def store(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        asked = request.asked(m, R, act, True, op)
        starts = _shared(m, instr, get_source, R, act, False).tolist()
        for each, start in zip(asked, starts, strict=True):
            _issue(m, instr, "store" if op is None else "reduce", each, start, -1, op)

    return store


@step("cp.reduce.async.bulk.tensor")
def build_reduce(instr: Instr, b: FunctionBuilder) -> Step:
    """`cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [map, {x, y}], [s]`."""
    op = next((mod for mod in instr.mods if mod in REDUCTIONS), None)
    if op is None:
        raise unsupported(instr)
    return _store(instr, b, op)


@step("cp.async.bulk.prefetch.tensor")
def build_prefetch(instr: Instr, b: FunctionBuilder) -> Step:
    """Nothing moves; the request must be one that the chip accepts."""
    request = Request(instr, b, instr.operands[0])

    def prefetch(m: Machine, R: list, mask: Mask | None) -> None:
        request.asked(m, R, m.active(mask), False, None)

    return prefetch
