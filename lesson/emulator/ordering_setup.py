"""Which mbarriers there are, and who may use them: from init to inval.

PTX ISA, "mbarrier.init", "mbarrier.inval" and "fence.mbarrier_init": a thread must know of the init
before it uses a barrier, and the async proxy must have been told of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson.emulator.observe import Copy
from lesson.emulator.ordering_clocks import Clocks, Lanes, Shared
from lesson.emulator.ordering_notes import Notes
from lesson.emulator.ordering_phases import Barrier, Waits

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr


class SetUp:
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
