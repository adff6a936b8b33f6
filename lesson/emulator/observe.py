"""What the emulator tells those who watch it: checks, traces, counters.

Every hook does nothing here; an observer overrides what it wants. The machine calls hooks only
while there are observers, so an unobserved run pays one test an instruction. Hooks must not change
what they are given.

Lanes are numbered over the batch: `block_in_batch * padded_threads + thread`. Shared byte indices
count in the flat shared array of the batch, global ones in the arena (see `memory`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr
    from lesson.emulator.reach import Reach

Lanes = np.ndarray
Index = np.ndarray


@dataclass(slots=True, eq=False)
class Copy:
    """One asynchronous copy, from its issue to its landing.

    `kind`: load, store, reduce, prefetch (tensor map); bulk_load, bulk_store, bulk_reduce,
    bulk_shared (one dimension, the last from one block's shared memory to another's); st_async (a
    register, `op` where it reduces); cp_async (one record for all lanes of an instruction). `lane`
    issued it, `lanes` are all lanes that did. `block`: block of the batch whose shared memory it
    touches (the destination of a load, which under multicast or in a cluster need not be the
    issuer's). Shared range: bytes [`smem_start`, `smem_stop`) of the flat shared array; of
    cp_async, `smem_index` has the first byte a lane and `nbytes` is what each lane writes.
    `global_start`: arena index of the first byte, or of the base of the tensor (cp_async:
    `global_index`, a lane each). `source_start`: flat shared index that bulk_shared reads.
    `barrier`: flat shared byte index of the mbarrier that it completes on, or -1. `groups`: the
    number of the bulk or cp.async group of each of `lanes`, or -1. `map_space`: where the tensor
    map lies (param, const, global).
    """

    id: int
    kind: str
    instr: Instr
    lane: int
    block: int
    tmap: Any = None
    coords: tuple[int, ...] = ()
    smem_start: int = -1
    smem_stop: int = -1
    global_start: int = -1
    source_start: int = -1
    nbytes: int = 0
    barrier: int = -1
    op: str | None = None
    lanes: Lanes = field(default_factory=lambda: np.zeros(0, np.int64))
    groups: Index = field(default_factory=lambda: np.zeros(0, np.int64))
    smem_index: Index | None = None
    global_index: Index | None = None
    has_landed: bool = False
    map_space: str = ""

    @property
    def is_grouped(self) -> bool:
        """Whether it belongs to a group of its thread, and not to an mbarrier."""
        return bool(self.groups.size) and int(self.groups[0]) >= 0

    @property
    def family(self) -> str:
        """Which groups it belongs to: those of cp.async, bulk groups, or none."""
        if self.kind in ("store", "reduce", "bulk_store", "bulk_reduce"):
            return "bulk"
        return "cp_async" if self.kind == "cp_async" else ""


class Observer:
    """Base of all observers."""

    def begin_launch(self, m: Machine) -> None:
        """Called once a launch, or again when the launch starts over with larger batches: forget
        everything.
        """

    def begin_batch(self, m: Machine) -> None:
        """Blocks `m.first_block` and up start."""

    def end_batch(self, m: Machine) -> None:
        """All threads of the batch have exited and all copies have landed."""

    def access(
        self,
        m: Machine,
        instr: Instr,
        kind: str,
        space: str,
        lanes: Lanes,
        index: Index,
        nbytes: int,
    ) -> None:
        """Threads read, write or update memory. `kind`: read, write, atomic. `space`: shared,
        global, local, const, param. `index`: first byte a lane; `nbytes` bytes each.
        """

    def access_along(self, m: Machine, instr: Instr, kind: str, reach: Reach, nbytes: int) -> None:
        """An access whose pattern of lanes is known: told as any other, unless an observer knows
        how to save itself the index of every lane.
        """
        self.access(m, instr, kind, reach.space, reach.act.idx, reach.now(), nbytes)

    def bar_arrive(self, m: Machine, instr: Instr, lanes: Lanes, barrier: np.ndarray) -> None:
        """Lanes arrive at named barriers (bar.sync counts as arrive, then release); barrier id a
        lane.
        """

    def bar_release(self, m: Machine, lanes: Lanes, block: int, barrier: int) -> None:
        """A named barrier lets its waiting lanes go. `barrier` is -1 for the barrier of a cluster,
        and `block` is then the first block of the cluster.
        """

    def warp_sync(self, m: Machine, instr: Instr, lanes: Lanes) -> None:
        """Lanes of one or more warps met at a warp-synchronous instruction."""

    def mbar(
        self, m: Machine, instr: Instr | None, op: str, lanes: Lanes, index: Index, **details: Any
    ) -> None:
        """Lanes act on mbarriers at flat shared byte indices. `op`: init, inval, arrive, expect_tx,
        complete_tx, test, try, flip. `instr` is None where the copy engine acts.
        """

    def fence(self, m: Machine, instr: Instr, lanes: Lanes) -> None:
        """Lanes execute a fence or membar."""

    def copy_issued(self, m: Machine, copy: Copy) -> None:
        """A lane asks for an asynchronous copy."""

    def copy_landed(self, m: Machine, copy: Copy) -> None:
        """The bytes of a copy have been moved; the mbarrier, if any, has been told next."""

    def commit(self, m: Machine, instr: Instr, lanes: Lanes) -> None:
        """Lanes close a bulk group or a cp.async group."""

    def wait_group(self, m: Machine, instr: Instr, lanes: Lanes, n: int, read: bool) -> None:
        """Lanes have waited until at most `n` of their groups are pending."""

    def exit(self, m: Machine, lanes: Lanes) -> None:
        """Lanes end."""
