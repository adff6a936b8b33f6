"""Named barriers of a block and the barrier of a cluster: who has arrived, who waits, who may go.

Models PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier,
barrier.cluster" for all blocks of a batch. Masks are bool arrays over the lanes of the batch, block
after block. Parking the waiting lanes is the scheduler's business: it calls `arrive` for lanes that
execute a barrier, and `exited` after lanes have exited, and lets go of the lanes that come back.

A barrier without a thread count completes when every thread of the block that has not exited has
arrived. One with a count completes at so many arrivals, and a warp whose living lanes have all
arrived counts as 32, as the chip counts warps: a partial last warp is a whole one, and so is a warp
whose other lanes have exited, before or after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]

BARRIERS = 16
WARP = 32


@dataclass(frozen=True)
class Unfinished:
    """A barrier that some threads of a block wait at, for the words of a hang."""

    block: int
    barrier: int
    arrived: int
    needed: int
    waiting: tuple[int, ...]


class _Barrier:
    """One barrier number in all blocks of the batch."""

    def __init__(self, nblocks: int, padded_threads: int) -> None:
        self.arrivals = np.zeros((nblocks, padded_threads // WARP, WARP), np.int64)
        self.waiting = np.zeros((nblocks, padded_threads), np.bool_)
        self.needed = np.zeros(nblocks, np.int64)
        self.yes = np.zeros(nblocks, np.int64)
        self.asked = np.zeros(nblocks, np.int64)

    def note(self, lanes: Mask, needed: Counts, waits: bool) -> None:
        """Count arrivals."""
        self.arrivals += lanes.reshape(self.arrivals.shape)
        if waits:
            self.waiting |= lanes
        here = lanes.any(axis=1)
        self.needed[here] = needed[here]

    def release(self, live: Mask) -> tuple[Mask, Mask]:
        """The blocks whose barrier completes now, and the lanes that may go; it starts anew.

        Where all living lanes of a warp have arrived, those that exited and the padding count too.
        """
        arrivals = self.arrivals
        gone = ~live.reshape(arrivals.shape)
        complete = ((arrivals > 0) | gone).all(axis=2, keepdims=True)
        np.maximum(arrivals, arrivals.max(axis=2, keepdims=True) * (complete & gone), out=arrivals)
        total = arrivals.sum(axis=(1, 2))
        everyone = complete.all(axis=(1, 2))
        done = (total > 0) & np.where(self.needed == 0, everyone, total >= self.needed)
        going = self.waiting & done[:, None]
        arrivals[done] = 0
        self.waiting[done] = False
        return done, going


class NamedBarriers:
    """Barriers 0 to 15 of every block of a batch.

    `popc` is, for each lane, how many threads said yes at the last reduction that it passed, and
    `threads` how many were asked.
    """

    def __init__(self, nblocks: int, padded_threads: int) -> None:
        self.shape = nblocks, padded_threads
        self.popc = np.zeros(self.shape, np.uint32)
        self.threads = np.zeros(self.shape, np.uint32)
        self._barriers: dict[int, _Barrier] = {}

    def arrive(
        self,
        number: int,
        active: Mask,
        live: Mask,
        count: NDArray[np.uint32] | None = None,
        predicate: Mask | None = None,
        *,
        waits: bool = True,
    ) -> Mask:
        """Lanes of `active` arrive, and wait unless this is bar.arrive; the lanes that may go on.

        `count` and `predicate` have one element a lane or one for all. Among the lanes that may go
        are those that waited already. `live`: the threads that have not exited.
        """
        lanes, alive = active.reshape(self.shape), live.reshape(self.shape)
        said = None
        if predicate is not None:
            said = np.broadcast_to(predicate, active.shape).reshape(self.shape) & lanes
        state = self._barriers.get(number)
        is_fresh = state is None or not state.arrivals.any()
        if is_fresh and waits and self._all_are_here(lanes, alive, count):
            if said is not None:
                self._tell(lanes, said.sum(axis=1), lanes.sum(axis=1))
            return active
        if state is None:
            state = self._barriers[number] = _Barrier(*self.shape)
        needed = np.zeros(self.shape[0], np.int64)
        if count is not None:
            counts = np.broadcast_to(count, active.shape).reshape(self.shape)
            needed = np.where(lanes, counts, 0).max(axis=1).astype(np.int64)
        state.note(lanes, needed, waits)
        if said is not None:
            state.yes += said.sum(axis=1)
            state.asked += lanes.sum(axis=1)
        return self._let_go(state, alive).reshape(-1)

    def _all_are_here(self, lanes: Mask, alive: Mask, count: NDArray[np.uint32] | None) -> bool:
        """Whether lanes that arrive first complete the barrier of every block that they are in."""
        if count is None:
            here = lanes.any(axis=1)
            return bool((lanes[here] == alive[here]).all())
        if count.size > 1:
            return False
        warps = lanes.reshape(self.shape[0], -1, WARP)
        touched = warps.any(axis=2)
        whole = (warps == alive.reshape(warps.shape)).all(axis=2)
        threads = touched.sum(axis=1) * WARP
        return bool((whole | ~touched).all() and ((threads == 0) | (threads == count)).all())

    def exited(self, live: Mask) -> list[tuple[int, Mask]]:
        """Threads have exited: barriers that open for it, each with the lanes that waited there."""
        opened = []
        for number, state in self._barriers.items():
            if state.waiting.any():
                released = self._let_go(state, live.reshape(self.shape)).reshape(-1)
                if released.any():
                    opened.append((number, released))
        return opened

    def unfinished(self, live: Mask) -> list[Unfinished]:
        """Barriers on which somebody waits; `needed` counts threads, `arrived` too."""
        alive = live.reshape(self.shape)
        found = []
        for number, state in sorted(self._barriers.items()):
            for block in state.waiting.any(axis=1).nonzero()[0].tolist():
                needed = int(state.needed[block]) or int(alive[block].sum())
                waiting = tuple(state.waiting[block].nonzero()[0].tolist())
                arrived = int(state.arrivals[block].sum())
                found.append(Unfinished(block, number, arrived, needed, waiting))
        return found

    def _let_go(self, state: _Barrier, live: Mask) -> Mask:
        """Complete what can complete, and leave each released lane the result of its reduction."""
        done, going = state.release(live)
        self._tell(going, state.yes, state.asked)
        state.yes[done] = 0
        state.asked[done] = 0
        return going

    def _tell(self, lanes: Mask, yes: Counts, asked: Counts) -> None:
        """Leave lanes the result of their block's reduction."""
        np.copyto(self.popc, yes[:, None].astype(np.uint32), where=lanes)
        np.copyto(self.threads, asked[:, None].astype(np.uint32), where=lanes)


class ClusterBarriers:
    """`barrier.cluster` of every cluster of a batch: arrive now, wait later."""

    def __init__(self, nclusters: int, lanes_per_cluster: int) -> None:
        self.shape = nclusters, lanes_per_cluster
        self.phase = np.zeros(nclusters, np.int64)
        self._arrived_in = np.full(self.shape, -1, np.int64)

    def arrive(self, active: Mask, live: Mask) -> Mask:
        """Lanes of `active` arrive; the clusters whose phase completes now, as a mask."""
        np.copyto(self._arrived_in, self.phase[:, None], where=active.reshape(self.shape))
        return self.exited(live)

    def exited(self, live: Mask) -> Mask:
        """The clusters whose phase completes, given who is still there to wait for."""
        alive = live.reshape(self.shape)
        arrived = self._arrived_in == self.phase[:, None]
        done = (arrived | ~alive).all(axis=1) & arrived.any(axis=1)
        self.phase[done] += 1
        return done

    def may_pass(self, active: Mask) -> Mask:
        """The lanes of `active` that have arrived, and whose phase of that arrival is over."""
        over = (self._arrived_in >= 0) & (self._arrived_in < self.phase[:, None])
        return active & over.reshape(-1)
