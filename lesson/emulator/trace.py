"""What happened in a launch, as plain records in order: for timelines, tables and tests.

A trace notes synchronisation and asynchronous copies, of all blocks or of some; memory accesses of
threads only on demand, since there is one an instruction. It judges nothing (that is for
`ordering`) and draws nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson.emulator.observe import Copy, Index, Lanes, Observer

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr

MAX_EVENTS = 100_000


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that threads of one block, or the copy engine for it, did.

    `step`: instructions issued before the stretch of straight code that it happened in. `kind`:
    read, write, atomic; arrive, release (named barriers); warp; init, inval, expect_tx,
    complete_tx, test, try, flip and "mbarrier arrive"; fence; issue, land (copies); commit, wait;
    exit. `block` counts in the grid, cluster after cluster; `threads` are linear thread numbers.
    `file` and `line`: where in the source, empty and 0 if unknown.
    """

    step: int
    kind: str
    block: int
    threads: tuple[int, ...]
    file: str
    line: int
    detail: dict[str, Any] = field(default_factory=dict)


class Trace(Observer):
    """Collects events; `is_full` when there were more than `max_events`, of which the first are
    kept.

    `blocks`: only these blocks of the grid (None: all). `accesses`: memory accesses too.
    """

    def __init__(
        self,
        blocks: Collection[int] | None = None,
        accesses: bool = False,
        max_events: int = MAX_EVENTS,
    ) -> None:
        self.blocks = None if blocks is None else frozenset(blocks)
        self.accesses, self.max_events = accesses, max_events
        self.events: list[Event] = []
        self.is_full = False

    def of_kind(self, *kinds: str) -> list[Event]:
        """The events of some kinds, in order."""
        return [event for event in self.events if event.kind in kinds]

    def _note(
        self, m: Machine, kind: str, instr: Instr | None, lanes: Lanes, **detail: Any
    ) -> None:
        """One event for each block that the lanes belong to; arrays with an element a lane are cut
        to it.
        """
        block_of = lanes // m.padded_threads
        loc = instr.loc if instr is not None else None
        for block in np.unique(block_of).tolist():
            number = m.first_block + block
            if self.blocks is not None and number not in self.blocks:
                continue
            if len(self.events) >= self.max_events:
                self.is_full = True
                return
            here = block_of == block
            mine = {name: _plain(value, here) for name, value in detail.items()}
            threads = tuple((lanes[here] % m.padded_threads).tolist())
            file, line = (loc.file, loc.line) if loc else ("", 0)
            self.events.append(Event(m.steps, kind, number, threads, file, line, mine))

    # ------------------------------------------------------------------------------------ hooks
    def begin_launch(self, m: Machine) -> None:
        self.events, self.is_full = [], False

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
        if self.accesses:
            self._note(m, kind, instr, lanes, space=space, index=index, nbytes=nbytes)

    def bar_arrive(self, m: Machine, instr: Instr, lanes: Lanes, barrier: np.ndarray) -> None:
        self._note(m, "arrive", instr, lanes, barrier=barrier)

    def bar_release(self, m: Machine, lanes: Lanes, block: int, barrier: int) -> None:
        self._note(m, "release", None, lanes, barrier=barrier)

    def warp_sync(self, m: Machine, instr: Instr, lanes: Lanes) -> None:
        self._note(m, "warp", instr, lanes)

    def mbar(
        self, m: Machine, instr: Instr | None, op: str, lanes: Lanes, index: Index, **details: Any
    ) -> None:
        kind = "mbarrier arrive" if op == "arrive" else op
        self._note(m, kind, instr, lanes, index=index, **details)

    def fence(self, m: Machine, instr: Instr, lanes: Lanes) -> None:
        self._note(m, "fence", instr, lanes, name=instr.name)

    def copy_issued(self, m: Machine, copy: Copy) -> None:
        self._copy(m, "issue", copy)

    def copy_landed(self, m: Machine, copy: Copy) -> None:
        self._copy(m, "land", copy)

    def commit(self, m: Machine, instr: Instr, lanes: Lanes) -> None:
        self._note(m, "commit", instr, lanes)

    def wait_group(self, m: Machine, instr: Instr, lanes: Lanes, n: int, read: bool) -> None:
        self._note(m, "wait", instr, lanes, allowed=n, read=read)

    def exit(self, m: Machine, lanes: Lanes) -> None:
        self._note(m, "exit", None, lanes)

    def _copy(self, m: Machine, kind: str, copy: Copy) -> None:
        """A copy counts for the block of the thread that issued it."""
        facts = {"copy": copy.id, "what": copy.kind, "nbytes": copy.nbytes, "coords": copy.coords}
        where = {"to_block": m.first_block + copy.block, "smem": (copy.smem_start, copy.smem_stop)}
        lanes = copy.lanes if copy.lanes.size else np.array([copy.lane])
        self._note(m, kind, copy.instr, lanes, barrier=copy.barrier, **facts, **where)


def _plain(value: Any, here: np.ndarray) -> Any:
    """A detail as plain Python values; of an array with an element a lane, those of some lanes."""
    if not isinstance(value, np.ndarray):
        return value
    if value.size == 1:
        return value.reshape(-1)[0].item()
    return value[here].tolist() if value.shape == here.shape else value.tolist()
