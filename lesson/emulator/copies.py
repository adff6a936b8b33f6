"""Asynchronous copies in flight: a queue, and the schedule that says when each lands.

PTX ISA, "Asynchronous Data Copies" and "Data Movement and Conversion Instructions: cp.async,
cp.async.bulk". `eager`: a copy lands as it is issued. `late`: only when no thread can move, and
then only what somebody waits for, else the oldest of each block. `random`: at any time, in any
order, by a seed. A copy lands whole, and reads its source then; its mbarrier is told next. Moving
the bytes is up to `move`, which the instruction supplies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.lanes import Mask
from lesson.emulator.mbarrier_word import MbarrierFault, advance, unpack
from lesson.emulator.observe import Copy
from lesson.errors import LaunchFailure

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr
    from lesson.emulator.simt import Parked

SCHEDULES = ("eager", "late", "random")
LAND_CHANCE = 0.25
PIECE_NBYTES = 128


@dataclass(slots=True, eq=False)
class Deferred:
    """What some lanes do once those copies of theirs that were in flight have landed."""

    mask: Mask
    copies: list[Copy]
    run: Callable[[Mask], None]

    def ready(self) -> Mask:
        """The lanes that wait no longer."""
        bits = self.mask.bits.copy()
        for copy in self.copies:
            if not copy.has_landed:
                bits[copy.lanes] = False
        return Mask(bits)


class CopyEngine:
    """The copies of one batch."""

    def __init__(self, m: Machine, schedule: str, rng: np.random.Generator) -> None:
        self.m, self.schedule, self.rng = m, schedule, rng
        self.queue: list[tuple[Copy, Callable[[], None]]] = []
        self.deferred: list[Deferred] = []
        self.count = 0
        self.is_random = False
        self._grouped: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def issue(self, copy: Copy, move: Callable[[], None]) -> None:
        """Take a copy; `move` moves its bytes when it lands."""
        copy.id = self.count
        self.count += 1
        self._grouped.clear()
        self.m.version += 1
        for observer in self.m.observers:
            observer.copy_issued(self.m, copy)
        if self.schedule == "eager":
            self._land(copy, move)
        else:
            self.queue.append((copy, move))
            self.is_random = self.schedule == "random"

    def maybe_land(self) -> None:
        """Under the random schedule: land some copy, or none."""
        while self.queue and self.rng.random() < LAND_CHANCE:
            self._land(*self.queue.pop(int(self.rng.integers(len(self.queue)))))
        self.is_random = bool(self.queue)

    def land_at_stall(self) -> bool:
        """No thread can move: land what they wait for. False if nothing is in flight."""
        if not self.queue:
            return False
        if self.is_random:
            chosen = {int(self.rng.integers(len(self.queue)))}
        else:
            chosen = self._wanted() or self._oldest()
        landing = [each for at, each in enumerate(self.queue) if at in chosen]
        self.queue = [each for at, each in enumerate(self.queue) if at not in chosen]
        for copy, move in landing:
            self._land(copy, move)
        self.is_random = bool(self.queue) and self.schedule == "random"
        return True

    def land_all(self) -> None:
        """The blocks end: what is in flight still lands."""
        while self.queue:
            self._land(*self.queue.pop(0))
        self.is_random = False

    def pending(self, family: str, lanes: np.ndarray, upto: np.ndarray) -> np.ndarray:
        """Whether each lane has a copy of a family in flight whose group is at most `upto`."""
        found = np.zeros(self.m.nlanes, np.bool_)
        limit = np.full(self.m.nlanes, -1, np.int64)
        limit[lanes] = upto
        who, groups = self._in_flight(family)
        found[who[groups <= limit[who]]] = True
        return found[lanes]

    def _in_flight(self, family: str) -> tuple[np.ndarray, np.ndarray]:
        """The lanes of all copies of a family, and the group of each."""
        known = self._grouped.get(family)
        if known is None:
            mine = [copy for copy, _ in self.queue if copy.family == family and copy.is_grouped]
            nothing = np.zeros(0, np.int64)
            known = self._grouped[family] = (
                np.concatenate([nothing, *[copy.lanes for copy in mine]]),
                np.concatenate([nothing, *[copy.groups for copy in mine]]),
            )
        return known

    def after_cp_async(self, mask: Mask, run: Callable[[Mask], None]) -> None:
        """Run for each lane when its cp.async copies of up to now have landed."""
        copies = [copy for copy, _ in self.queue if copy.family == "cp_async"]
        self.deferred.append(Deferred(mask, copies, run))
        self._run_deferred()

    def _run_deferred(self) -> None:
        waiting, self.deferred = self.deferred, []
        for each in waiting:
            ready = each.ready()
            if ready.n:
                each.run(ready)
                each.mask = each.mask - ready
            if each.mask.n:
                self.deferred.append(each)

    def _land(self, copy: Copy, move: Callable[[], None]) -> None:
        m = self.m
        move()
        copy.has_landed = True
        self._grouped.clear()
        m.version += 1
        m.simt.is_dirty = True
        for observer in m.observers:
            observer.copy_landed(m, copy)
        if self.deferred:
            self._run_deferred()
        if copy.barrier >= 0:
            self.complete(copy.instr, copy.lane, copy.barrier, copy.nbytes)

    def complete(self, instr: Instr, lane: int, index: int, nbytes: int) -> None:
        """Tell an mbarrier that bytes have arrived.

        They count in pieces, so where fewer were expected the phase may be over before the last
        one. An H200 passed a wait for 8192 of 16384 bytes and hung in one for 704: pieces of 128
        bytes explain both.
        """
        state = unpack(int(self.m.shared.views[8][index >> 3]))
        if (
            state.pending == 0
            and 0 < state.tx_nbytes < nbytes
            and state.tx_nbytes % PIECE_NBYTES == 0
        ):
            self._complete(instr, lane, index, state.tx_nbytes)
            nbytes -= state.tx_nbytes
        self._complete(instr, lane, index, nbytes)

    def _complete(self, instr: Instr, lane: int, index: int, nbytes: int) -> None:
        m, words = self.m, self.m.shared.views[8]
        try:
            words[index >> 3], flips = advance(int(words[index >> 3]), 0, -nbytes, False, 0)
        except MbarrierFault as error:
            fault = m.fault(LaunchFailure, error.text, instr, lane, error.cure)
            fault.barrier = index  # type: ignore[attr-defined]
            raise fault from error
        for observer in m.observers:
            lanes, at = np.array([lane]), np.array([index])
            observer.mbar(m, None, "complete_tx", lanes, at, nbytes=nbytes)
            if flips:
                observer.mbar(m, None, "flip", lanes, at)

    def _wanted(self) -> set[int]:
        """Copies that complete on a barrier, or belong to a group, that somebody waits for."""
        barriers: set[int] = set()
        waits = []
        for each in self.m.simt.parked:
            if each.kind == "mbarrier":
                barriers.update((each.detail["index"]).tolist())
            elif each.kind == "group":
                waits.append(each)
        awaited = {copy.id for each in self.deferred for copy in each.copies} if barriers else ()
        chosen = {
            at
            for at, (copy, _) in enumerate(self.queue)
            if copy.barrier in barriers or copy.id in awaited
        }
        for each in waits:
            chosen |= {
                at for at, (copy, _) in enumerate(self.queue) if self._is_awaited(copy, each)
            }
        return chosen

    def _is_awaited(self, copy: Copy, wait: Parked) -> bool:
        """Whether some lane of a wait for groups waits for this copy."""
        family = wait.detail["family"]
        if copy.family != family or not copy.is_grouped:
            return False
        closed = self.m.groups_closed[family][copy.lanes]
        needed = copy.groups < closed - wait.detail["allowed"]
        return bool((needed & wait.mask.bits[copy.lanes]).any())

    def _oldest(self) -> set[int]:
        """The first copy of each block."""
        seen: dict[int, int] = {}
        for at, (copy, _) in enumerate(self.queue):
            seen.setdefault(copy.block, at)
        return set(seen.values())
