"""The shadow of shared memory: who wrote and who read each word last, and through which proxy.

A word is written by a thread (its column and stamp) or by a copy: then by the column of the
mbarrier that the copy completes on, from its issue on, with the number of the phase that completes
it. Whoever does not know that phase may not touch the word. Bulk stores mark what they read by the
column of the issuing thread's stores. Reads are kept in `ordering_readers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.observe import Copy
from lesson.emulator.ordering_barriers import Barriers
from lesson.emulator.ordering_clocks import Clocks, Lanes
from lesson.emulator.ordering_notes import Notes
from lesson.emulator.ordering_readers import NOBODY, Readers
from lesson.emulator.ordering_units import units
from lesson.emulator.reach import WORD_NBYTES

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr
    from lesson.emulator.reach import Reach

PENDING = np.int32(1 << 30)  # a stamp that nobody knows: cp.async whose group was not waited for
NEVER = np.int32((1 << 31) - 1)  # the stamp of what nobody has written


class SharedShadow:
    """One batch's shared memory, in units of `unit` bytes (the narrowest store of the kernel, at
    most 4)."""

    def __init__(
        self, m: Machine, clocks: Clocks, notes: Notes, barriers: Barriers, unit: int
    ) -> None:
        self.m, self.clocks, self.notes, self.barriers = m, clocks, notes, barriers
        self.shift = unit.bit_length() - 1
        nunits = m.shared.u8.size >> self.shift
        self.writer = np.full(nunits, NOBODY, np.int32)
        self.written = np.full(nunits, NEVER, np.int32)
        self.writer_instr = np.zeros(nunits, np.int32)
        self.barrier = np.zeros(nunits, np.bool_)
        self.instrs: list[Instr | None] = [None]
        self.numbers: dict[int, int] = {}
        self.readers = Readers(m, clocks, self.shift)
        self.has_stores = self.has_barriers = False
        self.store: np.ndarray
        self.stored: np.ndarray
        self.store_instr: np.ndarray

    def number_of(self, instr: Instr) -> int:
        """A small number for an instruction, to keep beside words."""
        found = self.numbers.get(id(instr))
        if found is None:
            found = self.numbers[id(instr)] = len(self.instrs)
            self.instrs.append(instr)
        return found

    def units(self, index: np.ndarray, nbytes: int) -> tuple[np.ndarray, int]:
        """The units of some accesses, and how many each has."""
        return units(index, nbytes, self.shift)

    # ------------------------------------------------------------------------------ threads read
    def read(self, instr: Instr, lanes: Lanes, index: np.ndarray, nbytes: int) -> None:
        """Threads load."""
        clocks = self.clocks
        at, count = self.units(index, nbytes)
        who = lanes if count == 1 else np.repeat(lanes, count)
        is_everyone = count == 1 and who.size == clocks.row.size
        rows = clocks.row if is_everyone else clocks.row[who]
        writer, written = self.writer.take(at), self.written.take(at)
        width = clocks.know.shape[1]
        known = clocks.know.reshape(-1).take(rows * width + writer) >= written
        if not known.all():
            self._bad_reads(instr, who, at, writer, known)
        self.readers.add(self.number_of(instr), lanes, index, 0, nbytes)

    def read_along(self, instr: Instr, reach: Reach, nbytes: int) -> None:
        """Threads load along a known pattern. Where one agent wrote it all, as a copy does, one
        question a row of knowledge will do."""
        if not self._is_known_along(reach, nbytes):
            self.read(instr, reach.act.idx, reach.now(), nbytes)
            return
        moved = reach.at - reach.first
        self.readers.add(self.number_of(instr), reach.act.idx, reach.index, moved, nbytes)

    def _is_known_along(self, reach: Reach, nbytes: int) -> bool:
        writer = reach.along(self.writer, nbytes) if 1 << self.shift == WORD_NBYTES else None
        if writer is None:
            return False
        column = int(np.maximum.reduce(writer, axis=None))
        if column < 0 or int(np.minimum.reduce(writer, axis=None)) != column:
            return False
        stamp = int(np.maximum.reduce(reach.along(self.written, nbytes), axis=None))
        return int(self.clocks.know[self.clocks.rows_of(reach.act), column].min()) >= stamp

    def _bad_reads(
        self, instr: Instr, who: Lanes, at: np.ndarray, writer: np.ndarray, known: np.ndarray
    ) -> None:
        unwritten = writer < 0
        barrier = self.barrier[at]
        if barrier.any():
            first = int(np.flatnonzero(barrier)[0])
            self._note("barrier-read-as-data", instr, who, at, first, self.writer_instr)
            unwritten &= ~barrier
        if unwritten.any():
            first = int(np.flatnonzero(unwritten)[0])
            self._note("read-uninitialised", instr, who, at, first, self.writer_instr)
        own = (writer == self.clocks.column[who]) & (self.written[at] != PENDING)
        bad = ~known & ~own & ~unwritten & ~barrier
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            lane, unit = int(who[first]), int(at[first])
            kind, facts = "read-unsynced", {}
            if writer[first] >= self.clocks.domain_lanes:
                kind = "read-before-phase"
                facts["read_before_refill"] = self.readers.has_read_before(lane, unit)
            elif self.written[unit] == PENDING:
                kind = "read-before-cp-async"
            self._note(kind, instr, who, at, first, self.writer_instr, **facts)

    def _note(
        self, kind: str, instr: Instr, who: Lanes, at: np.ndarray, k: int, numbers: np.ndarray,
        **facts: object,
    ) -> None:  # fmt: skip
        unit = int(at[k])
        other = self.instrs[numbers[unit]]
        if self.notes.known(kind, instr, other):
            return
        lane, writer, stamp = int(who[k]), int(self.writer[unit]), int(self.written[unit])
        facts |= self.barriers.about(lane, writer, stamp)
        self.notes.add(
            self.m, kind, instr, lane, other, byte=unit << self.shift, writer=writer, stamp=stamp,
            **facts,
        )  # fmt: skip

    # ----------------------------------------------------------------------------- threads write
    def write(
        self, instr: Instr, lanes: Lanes, index: np.ndarray, nbytes: int, atomic: bool
    ) -> None:
        """Threads store, or update."""
        clocks = self.clocks
        at, count = self.units(index, nbytes)
        who = lanes if count == 1 else np.repeat(lanes, count)
        columns = clocks.column[who]
        rows = clocks.row[who]
        writer = self.writer[at]
        in_flight = (writer >= clocks.domain_lanes) & (clocks.know[rows, writer] < self.written[at])
        in_flight |= self.written[at] == PENDING
        if in_flight.any():
            first = int(np.flatnonzero(in_flight)[0])
            self._note("write-into-copy", instr, who, at, first, self.writer_instr)
        if atomic and instr.opcode != "st" and int(writer.min()) < 0:
            first = int(np.flatnonzero(writer < 0)[0])
            self._note("read-uninitialised", instr, who, at, first, self.writer_instr)
        if self.has_stores:
            store = self.store[at]
            busy = (store >= 0) & (clocks.know[rows, store] < self.stored[at])
            if busy.any():
                first = int(np.flatnonzero(busy)[0])
                self._note("store-source-reused", instr, who, at, first, self.store_instr)
            self.store[at] = NOBODY
        if self.has_barriers and self.barrier[at].any():
            first = int(np.flatnonzero(self.barrier[at])[0])
            self._note("barrier-overwritten", instr, who, at, first, self.writer_instr)
            self.barrier[at] = False
        if self.readers.flush():
            self._after_reads(instr, who, at, columns, rows, atomic)
        self.writer[at] = columns
        self.written[at] = clocks.clock[who]
        self.writer_instr[at] = self.number_of(instr)

    def _after_reads(
        self, instr: Instr, who: Lanes, at: np.ndarray, columns: np.ndarray, rows: np.ndarray,
        atomic: bool,
    ) -> None:  # fmt: skip
        """May somebody still read what is written now?"""
        readers = self.readers
        reader = readers.column[at]
        late = (reader >= 0) & (reader != columns)
        if late.any() and not atomic:
            late &= self.clocks.know[rows, reader] < readers.stamp[at]
            if late.any():
                first = int(np.flatnonzero(late)[0])
                self._note("write-while-read", instr, who, at, first, readers.instr)
        readers.column[at] = NOBODY

    # ------------------------------------------------------------------------------------ copies
    def copy_in(self, copy: Copy, column: int, stamp: int, ranges: list[tuple[int, int]]) -> None:
        """A copy into shared memory was issued: from now on its bytes are the copy's."""
        for start, stop in ranges:
            if start == stop:
                continue
            self._overwrite(copy, start, stop, column)
            part = slice(start >> self.shift, -(-stop >> self.shift))
            self.writer[part], self.written[part] = column, stamp
            self.writer_instr[part] = self.number_of(copy.instr)
            if self.has_stores:
                self.store[part] = NOBODY

    def _overwrite(self, copy: Copy, start: int, stop: int, column: int) -> None:
        """Who still needs what the copy will overwrite?"""
        clocks, lane = self.clocks, copy.lane
        part = slice(start >> self.shift, -(-stop >> self.shift))
        writer, row = self.writer[part], clocks.know[clocks.row[lane]]
        if int(writer.max()) < 0 and not self.has_stores and not self.readers.flush():
            return
        at = np.arange(part.start, part.stop)
        who = np.array([lane])
        unknown = (writer >= 0) & (row[writer] < self.written[part])
        unknown &= (writer != clocks.column[lane]) | (self.written[part] == PENDING)
        if unknown.any():
            first = int(np.flatnonzero(unknown)[0])
            is_copy = writer[first] >= clocks.domain_lanes
            kind = "copy-into-copy" if is_copy else "copy-over-unsynced-write"
            self._note(kind, copy.instr, who.repeat(at.size), at, first, self.writer_instr,
                       copy=copy, column=column)  # fmt: skip
        if self.has_stores:
            store = self.store[part]
            busy = (store >= 0) & (row[store] < self.stored[part])
            if busy.any():
                first = int(np.flatnonzero(busy)[0])
                self._note("store-source-reused", copy.instr, who.repeat(at.size), at, first,
                           self.store_instr, copy=copy)  # fmt: skip
        if self.readers.flush():
            reader = self.readers.late_for(lane, start, stop, row)
            if reader >= 0:
                used = np.flatnonzero(self.readers.column[part] >= 0)
                k = int(used[0]) if used.size else 0
                self._note("buffer-reused-early", copy.instr, who.repeat(at.size), at, k,
                           self.readers.instr, copy=copy, reading_lane=reader)  # fmt: skip
            self.readers.column[part] = NOBODY

    def copy_out(self, copy: Copy, start: int, stop: int, column: int, stamp: int) -> None:
        """A bulk store was issued: it reads these bytes through the async proxy."""
        clocks, lane = self.clocks, copy.lane
        part = slice(start >> self.shift, -(-stop >> self.shift))
        at = np.arange(part.start, part.stop)
        writer, written = self.writer[part], self.written[part]
        who = np.broadcast_to(np.int64(lane), at.size)
        is_written = writer >= 0
        if not is_written.any():
            self._note("store-of-uninitialised", copy.instr, who, at, 0, self.writer_instr)
        known = clocks.lane_knows(lane, writer, written) & (written != PENDING) | ~is_written
        if not known.all():
            first = int(np.flatnonzero(~known)[0])
            is_copy = writer[first] >= clocks.domain_lanes
            kind = "store-before-phase" if is_copy else "store-unsynced"
            self._note(kind, copy.instr, who, at, first, self.writer_instr, copy=copy)
        by_thread = known & is_written & (writer < clocks.domain_lanes)
        if by_thread.any():
            unfenced = by_thread & ~clocks.lane_sees_fenced(lane, writer, written)
            if unfenced.any():
                first = int(np.flatnonzero(unfenced)[0])
                self._note(
                    "store-unfenced", copy.instr, who, at, first, self.writer_instr, copy=copy
                )
        if not self.has_stores:
            self.store = np.full(self.writer.size, NOBODY, np.int32)
            self.stored = np.zeros(self.writer.size, np.int32)
            self.store_instr = np.zeros(self.writer.size, np.int32)
            self.has_stores = True
        self.store[part], self.stored[part] = column, stamp
        self.store_instr[part] = self.number_of(copy.instr)

    def mark_barrier(self, index: np.ndarray, instr: Instr) -> None:
        """mbarrier.init: these eight bytes are no data."""
        at, _ = self.units(index, 8)
        self.writer[at], self.written[at] = NOBODY, NEVER
        self.writer_instr[at] = self.number_of(instr)
        self.barrier[at] = self.has_barriers = True

    def free_barrier(self, index: np.ndarray) -> None:
        """mbarrier.inval: the bytes may be used again."""
        at, _ = self.units(index, 8)
        self.barrier[at] = False

    def barriers_in(self, start: int, stop: int) -> int:
        """The first byte of a live barrier in a range, or -1."""
        if not self.has_barriers:
            return -1
        first = start >> self.shift
        here = self.barrier[first : -(-stop >> self.shift)]
        return int(here.argmax() + first) << self.shift if here.any() else -1

    def settle(self, at: np.ndarray, lanes: Lanes) -> None:
        """cp.async: lanes have waited for these words; they are as if written now."""
        mine = self.written[at] == PENDING
        self.written[at[mine]] = self.clocks.clock[lanes[mine]]
