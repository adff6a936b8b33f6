"""Groups of bulk stores and of cp.async: committed, waited for, or left behind.

PTX ISA, "cp.async.bulk.commit_group", "cp.async.bulk.wait_group" and their counterparts without
.bulk. A thread that stores has two columns in its domain: how many of its groups have read their
source, and how many are done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.observe import Copy
from lesson.emulator.ordering_clocks import Clocks, Lanes
from lesson.emulator.ordering_notes import Notes
from lesson.emulator.ordering_shared import PENDING, SharedShadow

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr


@dataclass(slots=True)
class Storer:
    """A thread that issues bulk stores. `read` and `done`: its columns; `open`: stores not waited
    for."""

    read: int
    done: int
    open: list[tuple[Copy, int]] = field(default_factory=list)
    other_commit: Instr | None = None


class Groups:
    """The groups of one batch."""

    def __init__(self, m: Machine, clocks: Clocks, notes: Notes, shadow: SharedShadow) -> None:
        self.m, self.clocks, self.notes, self.shadow = m, clocks, notes, shadow
        self.storers: dict[int, Storer] = {}
        self.loads: list[tuple[Lanes, np.ndarray, np.ndarray, int]] = []

    # --------------------------------------------------------------------------------- bulk stores
    def store(self, copy: Copy) -> tuple[int, int]:
        """Column and stamp that say when the source of a bulk store has been read."""
        lane = copy.lane
        found = self.storers.get(lane)
        if found is None:
            domain = int(self.clocks.domain[lane])
            columns = self.clocks.new_column(domain), self.clocks.new_column(domain)
            found = self.storers[lane] = Storer(*columns)
        group = int(copy.groups[0]) if copy.groups.size and copy.barrier < 0 else 0
        if copy.barrier < 0:
            found.open.append((copy, group))
        return found.read, group + 1

    def commit(self, instr: Instr, lanes: Lanes) -> None:
        if "bulk" in instr.mods or not self.storers:
            return
        for lane in self.storers.keys() & set(lanes.tolist()):
            self.storers[lane].other_commit = instr

    def wait(self, instr: Instr, lanes: Lanes, n: int, read: bool) -> None:
        """Lanes have waited until at most `n` groups are pending."""
        if "bulk" not in instr.mods:
            self._settle(lanes, n)
            return
        for lane in self.storers.keys() & set(lanes.tolist()):
            storer = self.storers[lane]
            over = int(self.m.groups_closed["bulk"][lane]) - n
            self.clocks.learn(lane, storer.read, over)
            if not read:
                self.clocks.learn(lane, storer.done, over)
            storer.open = [(copy, group) for copy, group in storer.open if group >= over]

    def exit(self, lanes: Lanes) -> None:
        """Threads end: their stores must have read shared memory by now."""
        if not self.storers:
            return
        for lane in sorted(self.storers.keys() & set(lanes.tolist())):
            storer = self.storers[lane]
            if not storer.open:
                continue
            copy, group = storer.open[0]
            closed = int(self.m.groups_closed["bulk"][lane])
            kind = "store-not-waited" if group < closed else "store-not-committed"
            self.notes.add(
                self.m, kind, copy.instr, lane, storer.other_commit, copy=copy, group=group
            )

    # ------------------------------------------------------------------------------------ cp.async
    def cp_async(self, copy: Copy) -> None:
        """The words of a cp.async are nobody's until its group has been waited for."""
        lanes, shadow, clocks = copy.lanes, self.shadow, self.clocks
        shadow.write(copy.instr, lanes, copy.smem_index, copy.nbytes, False)
        at, count = shadow.units(copy.smem_index, copy.nbytes)
        shadow.written[at] = PENDING
        who, groups = np.repeat(lanes, count), np.repeat(copy.groups, count)
        self.loads.append((who, groups, at, int(clocks.clock[lanes[0]])))

    def _settle(self, lanes: Lanes, n: int) -> None:
        if not self.loads:
            return
        upto = np.full(self.m.nlanes, -1, np.int64)
        closed = self.m.groups_closed["cp_async"][lanes]
        upto[lanes] = closed - n - 1 if n >= 0 else closed
        left = []
        for who, groups, at, since in self.loads:
            over = groups <= upto[who]
            if over.any():
                self.shadow.settle(at[over], who[over])
            if not over.all():
                left.append((who[~over], groups[~over], at[~over], since))
        self.loads = left

    def settle_all(self, lanes: Lanes) -> None:
        """cp.async.mbarrier.arrive: the arrival comes when all copies of the lanes so far have
        landed."""
        self._settle(lanes, -1)
