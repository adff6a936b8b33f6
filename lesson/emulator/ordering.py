"""Who may see what: phases observed, proxies fenced, barriers in order. An observer that notes
mistakes.

Checks what a run did against the causality order of the PTX ISA ("Memory Consistency Model", "Async
proxy"), so a mistake is found also where the bytes happened to come out right. It judges one run:
code that did not run is not judged. Strong operations (atomics, volatile, acquire, release) are
taken to synchronise all threads of a block that use any of them: that may miss a race and accuses
nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lesson.emulator import tma
from lesson.emulator.observe import Copy, Observer
from lesson.emulator.ordering_barriers import Barriers
from lesson.emulator.ordering_clocks import Clocks, Lanes, Shared, by_owner
from lesson.emulator.ordering_global import GlobalShadow
from lesson.emulator.ordering_groups import Groups
from lesson.emulator.ordering_life import Life
from lesson.emulator.ordering_notes import Notes
from lesson.emulator.ordering_places import Places
from lesson.emulator.ordering_shared import SharedShadow
from lesson.emulator.ordering_units import narrowest_store
from lesson.emulator.windows import SHARED_FIRST

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr
    from lesson.emulator.reach import Reach

STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
LOADS = ("load", "bulk_load", "bulk_shared", "st_async")
STORES = ("store", "reduce", "bulk_store", "bulk_reduce", "bulk_shared")


class Ordering(Observer):
    """The checks of one launch. `notes`: what they found; `copies`: all that were issued, by blocks
    `issuers`.

    `compares_values`: whether blocks that write one element are told apart by what they write; not
    needed where the right output is known."""

    def __init__(self, compares_values: bool = True) -> None:
        self.compares_values = compares_values
        self.notes = Notes()
        self.copies: list[Copy] = []
        self.issuers: list[int] = []
        self.m: Machine | None = None

    def begin_launch(self, m: Machine) -> None:
        self.notes = Notes()
        self.copies, self.issuers = [], []
        self.global_shadow = GlobalShadow(m, self.notes, self.compares_values)
        self.unit = narrowest_store(m.program)

    def begin_batch(self, m: Machine) -> None:
        self.m = m
        domain_lanes = m.padded_threads * m.cluster_nblocks
        self.clocks = clocks = Clocks(m.nlanes, domain_lanes)
        self.barriers = Barriers(m, clocks, self.notes)
        self.shadow = SharedShadow(m, clocks, self.notes, self.barriers, self.unit)
        self.groups = Groups(m, clocks, self.notes, self.shadow)
        self.life = Life(m, clocks, self.notes, self.barriers)
        self.places = Places(m, self.notes)
        self.pending: dict[tuple[int, int], Shared] = {}
        self.strong: dict[int, Shared] = {}
        self.map_fenced = np.zeros(m.nblocks, np.bool_)
        self.global_shadow.begin_batch(m, clocks)

    def end_batch(self, m: Machine) -> None:
        self.life.end_batch()

    # ------------------------------------------------------------------------------------ memory
    def access(
        self, m: Machine, instr: Instr, kind: str, space: str, lanes: Lanes, index: np.ndarray,
        nbytes: int,
    ) -> None:  # fmt: skip
        if space == "global":
            if kind == "atomic" or not STRONG.isdisjoint(instr.mods):
                self._strong(lanes)
                self.global_shadow.exempt(index)
                if kind != "read":
                    self.global_shadow.combined(instr, int(index[0]))
            elif kind == "write":
                self.global_shadow.write(instr, lanes, index, nbytes)
            else:
                self.global_shadow.read(instr, lanes, index, nbytes)
            return
        if space != "shared":
            return
        if m.cluster_nblocks > 1:
            self.life.remote(instr, lanes, index // m.shared_stride)
        is_atomic = kind == "atomic"
        if is_atomic or not STRONG.isdisjoint(instr.mods):
            self._strong(lanes)
            if kind != "read":
                self.shadow.write(instr, lanes, index, nbytes, True)
        elif kind == "write":
            self.shadow.write(instr, lanes, index, nbytes, False)
        else:
            self.shadow.read(instr, lanes, index, nbytes)

    def access_along(self, m: Machine, instr: Instr, kind: str, reach: Reach, nbytes: int) -> None:
        is_weak = STRONG.isdisjoint(instr.mods)
        if is_weak and reach.space == "global":
            self.global_shadow.along(instr, kind, reach, nbytes)
        elif is_weak and reach.space == "shared" and kind == "read" and m.cluster_nblocks == 1:
            self.shadow.read_along(instr, reach, nbytes)
        else:
            super().access_along(m, instr, kind, reach, nbytes)

    def _strong(self, lanes: Lanes) -> None:
        """Lanes meet all other users of strong operations of their domain."""
        clocks = self.clocks
        domains = clocks.domain[lanes]
        for domain in np.unique(domains).tolist():
            mine = lanes[domains == domain]
            known = self.strong.get(domain)
            if known is not None:
                clocks.acquire(mine, known)
            self.strong[domain] = clocks.release(mine, known)

    # ---------------------------------------------------------------------------------- barriers
    def bar_arrive(self, m: Machine, instr: Instr, lanes: Lanes, barrier: np.ndarray) -> None:
        number = int(barrier[0]) if barrier.size else 0
        if number == -1 and "relaxed" in instr.mods:
            return
        if self._is_of_all(m, instr, lanes, number):
            block = m.block_of[lanes]
            group = np.cumsum(np.diff(block, prepend=block[0]) != 0)
            self.clocks.meet(lanes, group, int(group[-1]) + 1)
            return
        blocks = m.cluster_nblocks if number == -1 else 1
        for owner, mine in by_owner(lanes, m.padded_threads * blocks):
            key = owner * blocks, number
            self.pending[key] = self.clocks.release(mine, self.pending.get(key))

    def _is_of_all(self, m: Machine, instr: Instr, lanes: Lanes, number: int) -> bool:
        """Whether every thread of the batch meets at this barrier, and nobody came before."""
        return (
            number >= 0
            and lanes.size == m.everyone.n
            and len(instr.operands) == 1
            and "sync" in instr.mods
            and not any(key[1] == number for key in self.pending)
        )

    def bar_release(self, m: Machine, lanes: Lanes, block: int, barrier: int) -> None:
        gathered = self.pending.pop((block, barrier), None)
        if gathered is not None:
            self.clocks.acquire(lanes, gathered)
        self.barriers.synced_at[lanes] = m.steps

    def warp_sync(self, m: Machine, instr: Instr, lanes: Lanes) -> None:
        if instr.opcode != "bar" or not lanes.size:
            return
        warp = lanes >> 5
        first = np.diff(warp, prepend=-1) != 0
        group = np.cumsum(first) - 1
        self.clocks.meet(lanes, group, int(group[-1]) + 1)

    def mbar(
        self, m: Machine, instr: Instr | None, op: str, lanes: Lanes, index: np.ndarray,
        **details: Any,
    ) -> None:  # fmt: skip
        barriers = self.barriers
        if op == "flip":
            for at in dict.fromkeys(index.tolist()):
                barriers.flip(at)
        elif op == "complete_tx":
            self._completed(instr, lanes, index, details["nbytes"])
        elif instr is None:
            return
        elif op == "init":
            self.shadow.mark_barrier(index, instr)
            barriers.init(instr, lanes, index, details["count"])
        elif op == "inval":
            barriers.inval(instr, lanes, index, self.strong)
            self.shadow.free_barrier(index)
        elif op == "arrive":
            if instr.opcode == "cp":
                self.groups.settle_all(lanes)
            if m.cluster_nblocks > 1:
                self.life.remote(instr, lanes, index // m.shared_stride)
            barriers.arrive(
                instr, lanes, index, details.get("count", 1), details.get("nbytes"),
                details.get("drop", False),
            )  # fmt: skip
        elif op == "expect_tx":
            barriers.expect_tx(instr, lanes, index, details["nbytes"])
        elif op in ("test", "try"):
            self._tested(instr, lanes, index, details["done"])

    def _completed(self, instr: Instr | None, lanes: Lanes, index: np.ndarray, nbytes: Any) -> None:
        if instr is None:
            self.barriers.landed(int(index[0]), nbytes)
            return
        amounts = np.broadcast_to(nbytes, index.size).tolist()
        for at, amount in zip(index.tolist(), amounts, strict=True):
            self.barriers.landed(at, amount)
            found = self.barriers.at.get(at)
            if found is not None:
                found.now.issued_nbytes += amount

    def _tested(self, instr: Instr, lanes: Lanes, index: np.ndarray, done: np.ndarray) -> None:
        over = np.broadcast_to(done, lanes.size)
        if over.all():
            self.barriers.waited(instr, lanes, index)
        elif over.any():
            self.barriers.waited(instr, lanes[over], index[over])
        if not over.all():
            late = ~over
            for _ in self.barriers.by_barrier(instr, lanes[late], index[late]):
                continue

    def fence(self, m: Machine, instr: Instr, lanes: Lanes) -> None:
        mods = instr.mods
        if "mbarrier_init" in mods:
            self.barriers.publish(lanes)
        if "async" in mods and "global" not in mods:
            self.clocks.fence_async(lanes)
        if "async" in mods and not {"shared::cta", "shared::cluster"} & set(mods):
            self.global_shadow.fence(lanes)
        if any("tensormap" in mod for mod in mods):
            self.map_fenced[np.unique(m.block_of[lanes])] = True

    # ------------------------------------------------------------------------------------ copies
    def copy_issued(self, m: Machine, copy: Copy) -> None:
        self.copies.append(copy)
        self.issuers.append(m.first_block + copy.lane // m.padded_threads)
        if copy.map_space == "global" and not self.map_fenced[copy.lane // m.padded_threads]:
            self.notes.add(m, "map-pointer-unfenced", copy.instr, copy.lane, copy=copy)
        if copy.kind == "cp_async":
            self.groups.cp_async(copy)
            return
        if copy.kind in LOADS:
            self._issue_load(m, copy)
        if copy.kind in STORES:
            self._issue_store(m, copy)
        if copy.kind in ("load", "bulk_load"):
            self.global_shadow.copy_reads(copy)

    def _issue_load(self, m: Machine, copy: Copy) -> None:
        self.places.copy(copy)
        barrier = self.barriers.issued(copy)
        self.life.copy_into(copy)
        if barrier is None:
            return
        hit = self.shadow.barriers_in(copy.smem_start, copy.smem_stop)
        if hit >= 0:
            self.notes.add(
                m, "copy-over-barrier", copy.instr, copy.lane, barrier.init, byte=hit, copy=copy
            )
        self.shadow.copy_in(copy, barrier.column, barrier.number + 1, self._ranges(m, copy))

    def _ranges(self, m: Machine, copy: Copy) -> list[tuple[int, int]]:
        """The bytes of shared memory that a copy touches, cut at the end of the block."""
        first = copy.block * m.shared_stride
        last = first + m.shared_stride
        ranges = [(copy.smem_start, copy.smem_stop)]
        if copy.tmap is not None and copy.smem_stop - copy.smem_start != copy.nbytes:
            shift = first - SHARED_FIRST
            found = tma.smem_footprint(copy.tmap, copy.smem_start - shift)
            ranges = [(a + shift, b + shift) for a, b in found]
        return [(a, min(b, last)) for a, b in ranges if a < last]

    def _issue_store(self, m: Machine, copy: Copy) -> None:
        start, stop = copy.smem_start, copy.smem_stop
        if copy.kind == "bulk_shared":
            start, stop = copy.source_start, copy.source_start + copy.nbytes
        else:
            self.places.copy(copy)
        column, stamp = self.groups.store(copy)
        if copy.kind != "bulk_shared":
            self.global_shadow.store_issued(copy, self.groups.storers[copy.lane].done, stamp)
        self.shadow.copy_out(copy, start, stop, column, stamp)

    def copy_landed(self, m: Machine, copy: Copy) -> None:
        if copy.kind in ("store", "bulk_store"):
            self.global_shadow.copy_writes(copy)
        elif copy.kind in ("reduce", "bulk_reduce"):
            self.global_shadow.combined(copy.instr, copy.global_start)

    def commit(self, m: Machine, instr: Instr, lanes: Lanes) -> None:
        self.groups.commit(instr, lanes)

    def wait_group(self, m: Machine, instr: Instr, lanes: Lanes, n: int, read: bool) -> None:
        self.groups.wait(instr, lanes, n, read)

    def exit(self, m: Machine, lanes: Lanes) -> None:
        self.groups.exit(lanes)
        self.life.exit(lanes)
