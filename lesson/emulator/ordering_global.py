"""The shadow of global memory: which block wrote each word, and whether another one wrote it too.

Two blocks that write one word with different values race: nothing orders blocks. A kernel that uses
atomics or strong operations on global memory may order them, and is not judged. Global memory that
threads wrote and a bulk copy reads needs a proxy fence like shared memory does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator import tma
from lesson.emulator.observe import Copy
from lesson.emulator.ordering_clocks import Clocks, Lanes
from lesson.emulator.ordering_notes import Notes
from lesson.emulator.reach import WORD_NBYTES

if TYPE_CHECKING:
    from lesson.emulator.lanes import Mask
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr
    from lesson.emulator.reach import Reach

WORD_SHIFT = 2
NOBODY, MIXED = -1, -2
WEAK = "at once"  # two blocks wrote an element; whether the same value is not known


class GlobalShadow:
    """The global memory of a launch, word by word."""

    def __init__(self, m: Machine, notes: Notes, compares_values: bool) -> None:
        self.m, self.notes, self.compares_values = m, notes, compares_values
        size = m.memory.buffer.u8.size
        self.words = m.memory.buffer.views[4]
        self.owner = np.full(size >> WORD_SHIFT, NOBODY, np.int32)
        self.values = np.zeros(0, np.uint32)
        self.writers: dict[int, Instr] = {}
        self.is_exempt = False
        self.mapped = {id(segment) for segment, _ in m.arguments.map_bases}
        self.by_thread: set[int] = set()
        self.column = np.zeros(0, np.int32)
        self.stamp = np.zeros(0, np.int32)
        self.fenced = np.zeros(0, np.int32)

    def begin_batch(self, m: Machine, clocks: Clocks) -> None:
        self.m, self.clocks = m, clocks
        self.block = (m.block_of + m.first_block).astype(np.int32)
        self.act: Mask | None = None
        self.act_block = self.block
        self.stores: tuple[np.ndarray, ...] | None = None
        self.store_instr: Instr | None = None
        self.fenced = np.zeros(m.nlanes, np.int32)
        self.has_fenced = np.zeros(m.nlanes, np.bool_)

    def exempt(self, index: np.ndarray) -> None:
        """Strong operations on global memory: blocks may order themselves."""
        self.is_exempt = True

    def along(self, instr: Instr, kind: str, reach: Reach, nbytes: int) -> None:
        """Threads access along a known pattern. `kind`: read or write."""
        if kind == "read":
            if self.stores is not None:
                self.read(instr, reach.act.idx, reach.now(), nbytes)
        elif not self._claim_along(instr, reach, nbytes):
            if reach.segment is not None:
                self.m.memory.remember(reach.segment)
            self.write(instr, reach.act.idx, reach.now(), nbytes)

    def _claim_along(self, instr: Instr, reach: Reach, nbytes: int) -> bool:
        """Note the writers of words that nobody wrote before; False where it is not as simple."""
        if nbytes < WORD_NBYTES or id(reach.segment) in self.mapped:
            return False
        owner = reach.along(self.owner, nbytes)
        if owner is None or reach.gap < nbytes or int(np.maximum.reduce(owner, axis=None)) >= 0:
            return False
        if self.act is not reach.act:
            self.act, self.act_block = reach.act, self.block[reach.act.idx]
        block = self.act_block.reshape(reach.shape)
        owner[...] = block if owner.ndim == block.ndim else block[..., None]
        if self.compares_values:
            self._make_values()
            reach.along(self.values, nbytes)[...] = reach.along(self.words, nbytes)
        self.writers[id(reach.segment)] = instr
        return True

    def write(self, instr: Instr, lanes: Lanes, index: np.ndarray, nbytes: int) -> None:
        """Threads store."""
        at = index >> WORD_SHIFT
        if nbytes < 1 << WORD_SHIFT:
            self.owner[at] = MIXED
            return
        block = self.block if lanes.size == self.block.size else self.block[lanes]
        for k in range(nbytes >> WORD_SHIFT):
            self._claim(instr, lanes, at + k if k else at, block)
        segment = self.m.memory.last
        self.writers[id(segment)] = instr
        if id(segment) in self.mapped:
            self._remember(lanes, at, nbytes >> WORD_SHIFT, id(segment))

    def _claim(self, instr: Instr, lanes: Lanes, at: np.ndarray, block: np.ndarray) -> None:
        before = self.owner.take(at)
        self.owner[at] = block
        others = (before != block) & (before >= 0)
        if self.compares_values:
            self._compare(instr, lanes, at, before, others)
        elif others.any():
            first = int(np.flatnonzero(others)[0])
            self._note(instr, lanes, at, first, int(before[first]), WEAK)
        after = self.owner.take(at)
        if not np.array_equal(after, block):
            first = int(np.flatnonzero(after != block)[0])
            self._note(instr, lanes, at, first, int(after[first]), WEAK)

    def _compare(
        self, instr: Instr, lanes: Lanes, at: np.ndarray, before: np.ndarray, others: np.ndarray
    ) -> None:
        """Other blocks wrote here: the same values, or others?"""
        self._make_values()
        now = self.words.take(at)
        if others.any():
            others &= self.values[at] != now
            if others.any():
                first = int(np.flatnonzero(others)[0])
                self._note(instr, lanes, at, first, int(before[first]), "differ")
        self.values[at] = now

    def _make_values(self) -> None:
        if not self.values.size:
            self.values = np.zeros(self.owner.size, np.uint32)

    def _note(
        self, instr: Instr, lanes: Lanes, at: np.ndarray, k: int, other: int, how: str
    ) -> None:
        kind = "written-by-several-blocks"
        if self.notes.known(kind, instr):
            return
        xyz = tuple(int(a[0]) for a in self.m.shape.block_xyz(np.array([other])))
        byte = int(at[k]) << WORD_SHIFT
        segment = self.m.memory.segment_of(byte)
        self.notes.add(
            self.m, kind, instr, int(lanes[k]), other_block=xyz, how=how,
            array=segment.name if segment else "", byte=byte - (segment.start if segment else 0),
        )  # fmt: skip

    def _remember(self, lanes: Lanes, at: np.ndarray, count: int, segment: int) -> None:
        """Stamps of generic writes to memory that a tensor map covers."""
        if not self.column.size:
            self.column, self.stamp = np.zeros_like(self.owner), np.zeros_like(self.owner)
        for k in range(count):
            self.column[at + k] = lanes
            self.stamp[at + k] = self.clocks.clock[lanes]
        self.by_thread.add(segment)

    def read(self, instr: Instr, lanes: Lanes, index: np.ndarray, nbytes: int) -> None:
        """Threads load: is a bulk store of their cluster to these words complete?"""
        if self.stores is None:
            return
        at, clocks = index >> WORD_SHIFT, self.clocks
        column, stamp, domain = (part[at] for part in self.stores)
        mine = (column >= 0) & (domain == clocks.domain[lanes])
        if mine.any():
            mine &= clocks.know[clocks.row[lanes], column] < stamp
            if mine.any():
                lane = int(lanes[np.flatnonzero(mine)[0]])
                self.notes.add(self.m, "global-read-early", instr, lane, self.store_instr)

    def store_issued(self, copy: Copy, column: int, stamp: int) -> None:
        """A bulk store will write global memory; `column` says when its group is complete."""
        at = self._footprint(copy, True)
        if self.stores is None:
            self.stores = tuple(np.full(self.owner.size, NOBODY, np.int32) for _ in range(3))
        for part, value in zip(
            self.stores, (column, stamp, self.clocks.domain[copy.lane]), strict=True
        ):
            part[at] = value
        self.store_instr = copy.instr

    def fence(self, lanes: Lanes) -> None:
        """fence.proxy.async that covers global memory."""
        self.fenced[lanes] = self.clocks.clock[lanes]
        self.has_fenced[lanes] = True

    # ------------------------------------------------------------------------------------- copies
    def _footprint(self, copy: Copy, is_store: bool) -> np.ndarray:
        """The words that a copy touches; those outside of all memory fault when it lands."""
        if copy.tmap is None:
            return np.arange(copy.global_start, copy.global_start + copy.nbytes, 4) >> WORD_SHIFT
        found = tma.global_footprint(copy.tmap, copy.coords, is_store=is_store).reshape(-1)
        words = (found + copy.global_start) >> WORD_SHIFT  # sorted, as the bytes are
        words = words[np.diff(words, prepend=words[:1] - 1) > 0]
        return words[(words >= 0) & (words < self.owner.size)]

    def copy_writes(self, copy: Copy) -> None:
        """A bulk store has landed."""
        at = self._footprint(copy, True)
        if at.size:
            lanes = np.full(at.size, copy.lane)
            here = copy.lane // self.m.padded_threads + self.m.first_block
            block = np.full(at.size, here, np.int32)
            self._claim(copy.instr, lanes, at, block)
            self.writers[id(self.m.memory.segment_of(copy.global_start))] = copy.instr

    def combined(self, instr: Instr, index: int) -> None:
        """Memory is combined with what was there: by whom it was written is no question."""
        self.writers[id(self.m.memory.segment_of(index))] = instr

    def copy_reads(self, copy: Copy) -> None:
        """A bulk load reads global memory that this kernel's threads may have written."""
        if not self.by_thread:
            return
        segment = self.m.memory.segment_of(copy.global_start)
        if id(segment) not in self.by_thread:
            return
        at = self._footprint(copy, False)
        here = self.owner[at]
        block = copy.lane // self.m.padded_threads + self.m.first_block
        at = at[here == block]
        if not at.size or self.has_fenced[copy.lane]:
            return
        unfenced = self.fenced[self.column[at]] < self.stamp[at]
        if unfenced.any():
            self.notes.add(self.m, "global-unfenced", copy.instr, copy.lane, copy=copy)
