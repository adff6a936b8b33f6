"""The book-keeping of mbarriers: who arrived, which bytes were expected and which came.

PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". The barrier itself
works in `mbarrier`, who may use it is in `ordering_setup`; here are the sums that say afterwards
why a phase was over too early, or never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.observe import Copy
from lesson.emulator.ordering_clocks import Lanes
from lesson.emulator.ordering_phases import Barrier, Phase
from lesson.emulator.ordering_setup import SetUp

if TYPE_CHECKING:
    from lesson.emulator.ptx import Instr


class Barriers(SetUp):
    """All mbarriers of a batch, by flat shared byte index: what happens at them."""

    def arrive(
        self, instr: Instr, lanes: Lanes, index: np.ndarray, count: object, nbytes: object,
        drop: bool,
    ) -> None:  # fmt: skip
        """Lanes arrive; what they know goes to whoever waits for this phase."""
        parts: list[tuple[Barrier, Lanes]] = []
        amounts = _each(nbytes, lanes.size)
        each = _each(count, lanes.size)
        if instr.opcode == "cp" and "noinc" not in instr.mods:
            each = 0  # the pending count went up by as many before
        for barrier, mine, part in self.by_barrier(instr, lanes, index):
            if barrier is None:
                continue
            counts = each if isinstance(each, int) else each[part].astype(np.int32)
            total, phase = _total(counts, mine.size), barrier.now
            left = barrier.count - barrier.dropped - phase.arrivals
            if total > left and self.m.padded_threads > 1:
                self.notes.add(
                    self.m, "too-many-arrivals", instr, int(mine[-1]), barrier.init,
                    index=barrier.index, count=barrier.count, arrivals=phase.arrivals + total,
                )  # fmt: skip
            if nbytes is not None:
                more = amounts if isinstance(amounts, int) else amounts[part]
                self._expect(barrier, instr, mine, _total(more, mine.size))
            phase.arrivals += total
            phase.who.append((mine, counts))
            phase.arrive = instr
            self._touched(barrier)
            if drop:
                phase.dropped += total
            parts.append((barrier, mine))
        if parts and "relaxed" not in instr.mods:
            pending = [barrier.pending for barrier, _ in parts]
            released = self.clocks.release_all([mine for _, mine in parts], pending)
            for (barrier, _), known in zip(parts, released, strict=True):
                barrier.pending = known

    def _expect(self, barrier: Barrier, instr: Instr, mine: Lanes, nbytes: int) -> None:
        phase = barrier.now
        phase.expected_nbytes += nbytes
        phase.expect, phase.expect_lane = instr, int(mine[-1])
        self._touched(barrier)

    def _touched(self, barrier: Barrier) -> None:
        if barrier.touched_at < 0:
            barrier.touched_at = self.m.steps

    def expect_tx(self, instr: Instr, lanes: Lanes, index: np.ndarray, nbytes: np.ndarray) -> None:
        amounts = np.broadcast_to(nbytes, lanes.size)
        for barrier, mine, part in self.by_barrier(instr, lanes, index):
            if barrier is not None:
                self._expect(barrier, instr, mine, int(amounts[part].sum()))

    # ------------------------------------------------------------------------------------- copies
    def issued(self, copy: Copy) -> Barrier | None:
        """A copy names its barrier."""
        barrier = self.at.get(copy.barrier)
        if barrier is None or not (barrier.is_known_to_all and barrier.is_live):
            barrier = self.usable(copy.instr, copy.lane, copy.barrier)
        if barrier is not None:
            self.check_published(copy, barrier)
            barrier.now.issued_nbytes += copy.nbytes
            barrier.now.copies.append(copy)
            barrier.copies_ever += 1
            barrier.issued_at.setdefault(barrier.number + 1, self.m.steps)
        return barrier

    def landed(self, index: int, nbytes: int) -> None:
        barrier = self.at.get(index)
        if barrier is not None:
            barrier.now.landed_nbytes += nbytes

    # -------------------------------------------------------------------------------------- waits
    def flip(self, index: int) -> None:
        """A phase is over: was it right to be?"""
        barrier = self.at.get(index)
        if barrier is None:
            return
        phase = barrier.now
        if phase.expected_nbytes < phase.issued_nbytes:
            self.note_bytes(barrier, phase)
        extra = phase.arrivals - (barrier.count - barrier.dropped)
        barrier.dropped += phase.dropped
        barrier.number += 1
        barrier.passed = barrier.pending
        barrier.last, barrier.now = phase, Phase()
        unseen = [copy for copy in phase.copies if not copy.has_landed]
        if unseen and phase.expected_nbytes >= phase.issued_nbytes:
            self.notes.add(
                self.m, "phase-over-early", unseen[0].instr, unseen[0].lane, phase.arrive,
                index=index, phase=barrier.number - 1,
            )  # fmt: skip
        if extra > 0:
            barrier.now.arrivals = extra

    def note_bytes(self, barrier: Barrier, phase: Phase) -> None:
        """Fewer bytes were expected than the copies of the phase bring, or more."""
        copy = phase.copies[0] if phase.copies else None
        few = phase.expected_nbytes < phase.issued_nbytes
        if few and phase.expected_nbytes == 0:
            kind, instr, other = "bytes-not-expected", copy.instr, phase.arrive
            lane = copy.lane
        else:
            kind = "too-few-bytes-expected" if few else "too-many-bytes-expected"
            instr, other = phase.expect, copy.instr if copy else None
            lane = phase.expect_lane
        self.notes.add(
            self.m, kind, instr, lane, other, index=barrier.index,
            expected=phase.expected_nbytes, issued=phase.issued_nbytes,
            copies=len(phase.copies), copy=copy, phase=barrier.number,
            pending=barrier.count - barrier.dropped - phase.arrivals, wants=barrier.count,
        )  # fmt: skip

    def waited(self, instr: Instr, lanes: Lanes, index: np.ndarray) -> None:
        """Waits that found their phase over: the lanes learn what those who arrived knew."""
        parts, sources = [], []
        for barrier, mine, _ in self.by_barrier(instr, lanes, index):
            if barrier is None:
                continue
            if "relaxed" not in instr.mods and barrier.number:
                source = self.clocks.padded(barrier.passed or self.clocks.empty())
                source.know[barrier.column] = barrier.number
                parts.append(mine)
                sources.append(source)
            stamps = self.clocks.clock[mine]
            barrier.waits.add(mine, instr, barrier.number, self.m.steps, stamps)
            if not barrier.number:
                self.trivial.update(dict.fromkeys(mine.tolist(), instr))
            elif self.trivial:
                for lane in mine.tolist():
                    self.trivial.pop(lane, None)
        if parts:
            self.clocks.acquire_all(parts, sources)

    def about(self, lane: int, column: int, stamp: int) -> dict[str, object]:
        """What a lane that meets the bytes of a copy knows of the copy's barrier."""
        barrier = self.by_column.get((int(self.clocks.domain[lane]), column))
        if barrier is None:
            return {"barrier": -1, "trivial_wait": self.trivial.get(lane)}
        waited = barrier.waits.get(lane)
        issued = barrier.issued_at.get(stamp, 0)
        return {
            "barrier": barrier.index,
            "seen": int(self.clocks.know[self.clocks.row[lane], column]),
            "expects": barrier.number != stamp - 1 or barrier.now.expected_nbytes > 0,
            "waited_since_issue": waited is not None and waited[2] >= issued,
        }


def _each(amount: object, nlanes: int) -> int | np.ndarray:
    """One number for all lanes, or one a lane."""
    if amount is None:
        return 0
    if np.size(amount) == 1:
        return int(np.max(amount))
    return np.broadcast_to(amount, nlanes)


def _total(amounts: int | np.ndarray, nlanes: int) -> int:
    """The sum over all lanes."""
    return amounts * nlanes if isinstance(amounts, int) else int(amounts.sum())
