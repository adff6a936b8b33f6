"""Which mbarrier each lane of an instruction names, found once a block where it can be.

PTX ISA, "mbarrier": the object lies in shared memory; with `.shared::cluster` in that of any block
of the cluster. What an operation does to it is in `mbarrier`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.isa_memory import LOCATE, address_of
from lesson.emulator.isa_move import space_in
from lesson.emulator.lanes import Bits, Mask, Values
from lesson.emulator.late import raise_late
from lesson.emulator.mbarrier import Index, Runs
from lesson.emulator.operands import FunctionBuilder
from lesson.emulator.ptx import Instr, Operand
from lesson.emulator.windows import SHARED_FIRST, SHARED_WINDOW
from lesson.errors import IllegalAddress

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine

NBYTES = 8
Find = Callable[["Machine", list, Mask], "Places"]


class Places:
    """The barriers of the active lanes. `at`: their 64-bit words, as `mbarrier` takes them."""

    __slots__ = ("_index", "at")

    def __init__(self, at: Index | Runs, index: Index | None = None) -> None:
        self.at, self._index = at, index

    @property
    def index(self) -> Index:
        """The flat shared byte index of each lane's barrier."""
        if self._index is None:
            self._index = np.repeat(self.at.words << 3, self.at.lanes)
        return self._index

    @property
    def words(self) -> Index:
        """The words, those of one run once."""
        return self.at.words if isinstance(self.at, Runs) else self.at

    def part(self, chosen: Bits) -> Places:
        """Those of some of the lanes."""
        index = self.index[chosen]
        return Places(index >> 3, index)


def barriers_of(instr: Instr, f: FunctionBuilder, operand: Operand) -> Find:
    """A function to the barriers that the active lanes name."""
    named = "shared::cluster" if "shared::cluster" in instr.mods else space_in(instr)
    get, locate = address_of(f, operand), LOCATE[named]
    first = SHARED_FIRST if named else SHARED_WINDOW | SHARED_FIRST

    def find(m: Machine, R: list, act: Mask) -> Places:
        raise_late(m)
        addr = get(R)
        if addr.size == 1 and m.cluster_nblocks == 1:
            offset = int(addr[0]) - first
            if 0 <= offset <= m.shared_nbytes - NBYTES and not offset % NBYTES:
                return Places(_one_a_block(m, offset, act))
        return _one_a_lane(m, instr, m.of(addr, act), act)

    def _one_a_lane(m: Machine, instr: Instr, addr: Values, act: Mask) -> Places:
        place = locate(m, instr, addr, NBYTES, act, True)
        if place is None or place.space != "shared":
            space = place.space if place else "several spaces"
            what = f"an mbarrier must lie in shared memory, got {space}"
            raise m.fault(IllegalAddress, what, instr, m.lane_of(act, 0), "Declare it __shared__.")
        index = np.broadcast_to(place.index, act.n)
        return Places(index >> 3, index)

    return find


def _one_a_block(m: Machine, offset: int, act: Mask) -> Runs:
    """The word at the same offset in each block that has active lanes."""
    stride = m.shared_stride >> 3
    words = np.arange(offset >> 3, m.nblocks * stride, stride)
    if m.nblocks == 1:
        return Runs(words, np.array([act.n]), act.n)
    if act.n == m.nlanes:
        return Runs(words, np.full(m.nblocks, m.padded_threads), act.n)
    lanes = np.add.reduce(act.bits.reshape(m.nblocks, -1), axis=1, dtype=np.int64)
    here = lanes.nonzero()[0]
    if here.size == m.nblocks:
        return Runs(words, lanes, act.n)
    return Runs(words[here], lanes[here], act.n)
