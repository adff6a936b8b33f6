"""The book-keeping of mbarriers: who set one up, who arrived, which bytes were expected and which
came.

PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". The barrier itself
works in `mbarrier`; here is what a thread must know before it may use one, and the sums that say
afterwards why a phase was over too early, or never.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson.emulator.observe import Copy
from lesson.emulator.ordering_clocks import Clocks, Lanes, Shared
from lesson.emulator.ordering_notes import Notes
from lesson.emulator.ordering_phases import Barrier, Phase, Waits

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr


class Barriers:
    """All mbarriers of a batch, by flat shared byte index."""

    def __init__(self, m: Machine, clocks: Clocks, notes: Notes) -> None:
        self.m, self.clocks, self.notes = m, clocks, notes
        self.at: dict[int, Barrier] = {}
        self.initialised_by: dict[int, list[Barrier]] = {}
        self.by_column: dict[tuple[int, int], Barrier] = {}
        self.trivial: dict[int, Instr] = {}
        self.synced_at = np.full(m.nlanes, -1, np.int64)

    # ---------------------------------------------------------------------------- life and death
    def init(self, instr: Instr, lanes: Lanes, index: np.ndarray, count: np.ndarray) -> None:
        """mbarrier.init by some lanes."""
        clocks = self.clocks
        counts = np.broadcast_to(count, lanes.size).tolist()
        domains, stamps = clocks.domain[lanes].tolist(), clocks.clock[lanes].tolist()
        every = zip(lanes.tolist(), index.tolist(), counts, domains, stamps, strict=True)
        for lane, at, n, domain, stamp in every:
            before = self.at.get(at)
            block = at // self.m.shared_stride
            if before is not None and before.is_live:
                self.notes.add(self.m, "barrier-reinit", instr, lane, before.init, index=at)
            column = clocks.new_column(domain) if before is None else before.column
            made = Barrier(
                at, block, domain, column, n, instr, lane, stamp, Waits(clocks.domain_lanes)
            )  # fmt: skip
            made.number = 0 if before is None else before.number + 1
            self.at[at] = self.by_column[domain, column] = made
            self.initialised_by.setdefault(lane, []).append(made)
        self.clocks.tick(lanes)

    def inval(
        self, instr: Instr, lanes: Lanes, index: np.ndarray, strong: dict[int, Shared]
    ) -> None:
        """mbarrier.inval: whoever has waited must be known to have left, if only by the count of
        users that cuda::pipeline keeps (`strong`: what users of strong operations knew).
        """
        for lane, at in zip(lanes.tolist(), index.tolist(), strict=True):
            barrier = self.at.get(at)
            if barrier is None:
                continue
            barrier.is_live = False
            known = self.clocks.know[self.clocks.row[lane]].copy()
            known[self.clocks.column[lane]] = self.clocks.clock[lane]
            counted = strong.get(barrier.domain)
            late = barrier.waits.unknown_to(known, None if counted is None else counted.know)
            if late is not None:
                self.notes.add(
                    self.m, "barrier-inval-early", instr, lane, late[1], index=at, column=late[0]
                )

    def publish(self, lanes: Lanes) -> None:
        """fence.mbarrier_init: what these lanes initialised is ready for the async proxy."""
        for lane in lanes.tolist():
            for barrier in self.initialised_by.get(lane, ()):
                barrier.is_published = True

    def usable(self, instr: Instr, lane: int, index: int) -> Barrier | None:
        """The barrier that a lane uses; notes what it should have known first."""
        found = self.at.get(index)
        if found is None:
            self.notes.add(self.m, "barrier-not-initialised", instr, lane, index=index)
            return None
        if not found.is_live:
            self.notes.add(self.m, "barrier-after-inval", instr, lane, found.init, index=index)
        if not self._knows_init(lane, found):
            self.notes.add(self.m, "barrier-init-unsynced", instr, lane, found.init, index=index)
        return found

    def _knows_init(self, lane: int, barrier: Barrier) -> bool:
        column = self.clocks.column[barrier.init_lane]
        known = self.clocks.know[self.clocks.row[lane], column] >= barrier.init_stamp
        return bool(known) or lane == barrier.init_lane

    def check_published(self, copy: Copy, barrier: Barrier) -> None:
        """The copy engine may use a barrier once its init is fenced.

        Triton fences nothing here: it expects the bytes, passes a barrier of the block, and issues
        the copy then. That works on every Hopper GPU, and is let pass.
        """
        if 0 <= barrier.touched_at < self.synced_at[copy.lane]:
            barrier.is_published = True
        if barrier.is_published:
            return
        column = int(self.clocks.column[barrier.init_lane])
        if self.clocks.lane_sees_one_fenced(copy.lane, column, barrier.init_stamp):
            barrier.is_published = True
        elif self._knows_init(copy.lane, barrier):
            self.notes.add(
                self.m, "barrier-not-published", copy.instr, copy.lane, barrier.init,
                index=barrier.index,
            )  # fmt: skip

    # ---------------------------------------------------------------------------------- arriving
    def by_barrier(
        self, instr: Instr, lanes: Lanes, index: np.ndarray
    ) -> Iterator[tuple[Barrier | None, Lanes, Any]]:
        """The lanes of each barrier: (barrier or None, its lanes, their positions)."""
        groups: list[tuple[int, Any]]
        step = index[1:] - index[:-1]
        cuts = step.nonzero()[0]
        if not cuts.size:
            groups = [(int(index[0]), slice(None))]
        elif int(np.minimum.reduce(step)) >= 0:
            starts = [0, *(cuts + 1).tolist()]
            stops = [*starts[1:], lanes.size]
            groups = [(int(index[a]), slice(a, b)) for a, b in zip(starts, stops, strict=True)]
        else:
            groups = [(at, np.flatnonzero(index == at)) for at in np.unique(index).tolist()]
        for at, part in groups:
            mine = lanes[part]
            found = self.at.get(at)
            if found is not None and found.is_live and self._is_known_to_block(found):
                yield found, mine, part
                continue
            found = self.usable(instr, int(mine[0]), at)
            if found is not None and mine.size > 1:
                strangers = mine[~self._knowing(found, mine)]
                if strangers.size:
                    self.usable(instr, int(strangers[0]), at)
            yield found, mine, part

    def _knowing(self, barrier: Barrier, lanes: Lanes) -> np.ndarray:
        """Which lanes know that the barrier is initialised."""
        column = self.clocks.column[barrier.init_lane]
        know = self.clocks.know[self.clocks.row[lanes], column] >= barrier.init_stamp
        return know | (lanes == barrier.init_lane)

    def _is_known_to_block(self, barrier: Barrier) -> bool:
        """Whether all threads of the barrier's own block do; then nobody is asked again."""
        if not barrier.is_known_to_all and self.m.cluster_nblocks == 1:
            first = barrier.block * self.m.padded_threads
            rows = self.clocks.row[first : first + self.m.threads]
            column = self.clocks.column[barrier.init_lane]
            known = self.clocks.know[rows, column] >= barrier.init_stamp
            known[barrier.init_lane - first] = True
            barrier.is_known_to_all = bool(known.all())
        return barrier.is_known_to_all

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
                barrier.dropped += total
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
