"""Lifetimes: shared memory is gone when its block is, and a peer's is not there before it runs.

CUDA C++ Programming Guide, "Distributed Shared Memory": all blocks must have started before one
touches the shared memory of another, and none may exit before the others are done with its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.observe import Copy
from lesson.emulator.ordering_barriers import Barriers
from lesson.emulator.ordering_clocks import Clocks, Lanes, by_owner
from lesson.emulator.ordering_notes import Notes
from lesson.emulator.ordering_phases import Barrier

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr


class Life:
    """Who touches whose shared memory, and when blocks end."""

    def __init__(self, m: Machine, clocks: Clocks, notes: Notes, barriers: Barriers) -> None:
        self.m, self.clocks, self.notes, self.barriers = m, clocks, notes, barriers
        self.left = np.full(m.nblocks, m.threads, np.int64)
        self.known_at_exit: dict[int, np.ndarray] = {}
        self.touched: dict[int, dict[int, tuple[int, Instr]]] = {}
        self.copies: dict[int, list[tuple[Copy, Barrier, int]]] = {}

    def copy_into(self, copy: Copy) -> None:
        """A copy will write the shared memory of a block."""
        barrier = self.barriers.at.get(copy.barrier)
        if barrier is not None:
            mine = self.copies.setdefault(copy.block, [])
            mine.append((copy, barrier, barrier.number + 1))
        if copy.block != copy.lane // self.m.padded_threads:
            self._started(copy.instr, copy.lane, copy.block)

    def remote(self, instr: Instr, lanes: Lanes, blocks: np.ndarray) -> None:
        """Lanes touch the shared memory of blocks, their own or others'."""
        away = np.flatnonzero(self.m.block_of[lanes] != blocks)
        if not away.size:
            return
        stamps = self.clocks.clock
        for lane, block in zip(lanes[away].tolist(), blocks[away].tolist(), strict=True):
            self.touched.setdefault(block, {})[lane] = int(stamps[lane]), instr
        self._started(instr, int(lanes[away[0]]), int(blocks[away[0]]))

    def _started(self, instr: Instr, lane: int, block: int) -> None:
        m, clocks = self.m, self.clocks
        first = block % m.cluster_nblocks * m.padded_threads
        known = clocks.know[clocks.row[lane], first : first + m.padded_threads]
        if not known.any():
            self.notes.add(m, "remote-before-start", instr, lane, target=block)

    def exit(self, lanes: Lanes) -> None:
        """Threads end; with the last one its block does."""
        m = self.m
        for block, mine in by_owner(lanes, m.padded_threads):
            if block in self.touched or m.cluster_nblocks > 1:
                rows = np.unique(self.clocks.row[mine])
                known = self.clocks.know[rows].max(axis=0)[: self.clocks.domain_lanes]
                before = self.known_at_exit.get(block)
                self.known_at_exit[block] = known if before is None else np.maximum(before, known)
            self.left[block] -= mine.size
            if not self.left[block]:
                self._ended(block, int(mine[-1]))

    def _ended(self, block: int, lane: int) -> None:
        for copy, barrier, phase in self.copies.pop(block, ()):
            here = block % self.m.cluster_nblocks * self.m.padded_threads
            seen = barrier.waits.have_seen(phase, here, here + self.m.padded_threads)
            if not seen and self.barriers.at.get(barrier.index) is barrier:
                self.notes.add(
                    self.m, "copy-never-waited", copy.instr, copy.lane, copy=copy,
                    index=barrier.index, ended=block,
                )  # fmt: skip
                break

    def end_batch(self) -> None:
        """Every block has ended: were the others done with its memory?"""
        for block, users in self.touched.items():
            known = self.known_at_exit.get(block)
            for lane, (stamp, instr) in users.items():
                if known is None or known[self.clocks.column[lane]] < stamp:
                    self.notes.add(self.m, "block-exits-early", instr, lane, target=block)
                    break
