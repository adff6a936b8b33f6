"""The events of one block as the timeline tells them, made of the emulator's trace.

Does: adds to the trace what the story needs and only the running machine knows (the counts of a
barrier, which allocation an access hits), then sorts it: a wait is told once, threads that wake are
told, and what ended a phase is shown with the counts of zero that it ended with.
Does not: choose words (`timeline_words`), draw or judge. Accesses to parameters, constants and
local memory are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from lesson.emulator import Event as Traced
from lesson.emulator import Trace, mbarrier
from lesson.emulator.observe import Copy


class Kind(StrEnum):
    """What an event is. The names are those of the lesson."""

    INIT = "init"  # a thread sets up an mbarrier
    INVAL = "inval"  # a thread ends the life of an mbarrier
    FENCE = "fence"  # threads execute a fence or membar
    SYNC = "sync"  # a barrier of the block lets its threads go
    ISSUE = "issue"  # a thread asks for a copy
    ARRIVE = "arrive"  # threads arrive at an mbarrier, and may announce bytes
    EXPECT = "expect"  # a thread announces bytes without arriving
    WAIT = "wait"  # threads ask for the end of a phase that is not over
    WAKE = "wake"  # threads learn that the phase is over
    LAND = "land"  # the bytes of a copy have been moved
    COMPLETE = "complete"  # the engine takes landed bytes off the transaction count
    FLIP = "flip"  # both counts are zero: the phase is over and the next one starts
    READ = "read"  # threads read memory
    WRITE = "write"  # threads write memory
    ATOMIC = "atomic"  # threads update memory
    EXIT = "exit"  # threads end


@dataclass(frozen=True, slots=True)
class BarrierState:
    """An mbarrier: finished phases, arrivals still missing, bytes still missing (may be negative).

    `index`: where it lies, a flat shared byte index of the batch; tells barriers apart.
    """

    index: int
    phase: int
    pending: int
    tx_nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One thing that happened.

    `threads` of the block did it; none where the copy engine or the barrier itself acts. `nbytes`:
    of a copy, of an announcement, of a report, or of one thread's access. `barrier`: its state
    after the event. `start`, `stop`: bytes of shared memory that a copy fills or empties, and
    `offsets`: first byte of each thread's access; both count from the start of `where`: the block's
    own shared memory, or the allocation of that name.
    """

    kind: Kind
    threads: tuple[int, ...] = ()
    file: str = ""
    line: int = 0
    instruction: str = ""
    nbytes: int = 0
    barrier: BarrierState | None = None
    start: int = -1
    stop: int = -1
    where: str = ""
    offsets: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)


SHARED = "shared"
_KINDS = {
    "init": Kind.INIT,
    "inval": Kind.INVAL,
    "fence": Kind.FENCE,
    "release": Kind.SYNC,
    "issue": Kind.ISSUE,
    "mbarrier arrive": Kind.ARRIVE,
    "expect_tx": Kind.EXPECT,
    "land": Kind.LAND,
    "complete_tx": Kind.COMPLETE,
    "flip": Kind.FLIP,
    "read": Kind.READ,
    "write": Kind.WRITE,
    "atomic": Kind.ATOMIC,
    "exit": Kind.EXIT,
}
_BY_NO_THREAD = (Kind.LAND, Kind.COMPLETE, Kind.FLIP)


class BlockTrace(Trace):
    """The trace of one block, with the counts of its barriers and the ground of its accesses.

    `block` counts in the grid. `max_events` bounds a kernel that spins.
    """

    def __init__(self, block: int, max_events: int = 20_000) -> None:
        super().__init__(blocks=[block], accesses=True, max_events=max_events)
        self.block = block

    def access(
        self,
        m: Any,
        instr: Any,
        kind: str,
        space: str,
        lanes: np.ndarray,
        index: np.ndarray,
        nbytes: int,
    ) -> None:
        row = self.block - m.first_block
        mine = np.asarray(lanes) // m.padded_threads == row
        if space not in ("shared", "global") or not mine.any():
            return
        start, where = 0, SHARED
        first = np.broadcast_to(index, mine.shape)[mine]
        if space == "shared":
            start = int(first[0]) // m.shared_stride * m.shared_stride
        elif segment := m.memory.segment_of(int(first[0])):
            start, where = segment.start, segment.name
        offsets = first - start
        self._note(
            m, kind, instr, np.asarray(lanes)[mine], nbytes=nbytes, where=where, offsets=offsets
        )

    def mbar(
        self, m: Any, instr: Any, op: str, lanes: np.ndarray, index: np.ndarray, **details: Any
    ) -> None:
        at = np.broadcast_to(index, np.shape(lanes))
        mine = at // m.shared_stride == self.block - m.first_block
        for one in np.unique(at[mine]).tolist():
            here = mine & (at == one)
            cut = {name: _cut(value, here) for name, value in details.items()}
            who = np.asarray(lanes)[here]
            super().mbar(m, instr, op, who, at[here], state=_state(m, one), **cut)

    def _copy(self, m: Any, kind: str, copy: Copy) -> None:
        row = self.block - m.first_block
        if copy.block != row:
            return
        base = row * m.shared_stride
        span = {"start": copy.smem_start - base, "stop": copy.smem_stop - base}
        lanes, state = np.array([copy.lane]), _state(m, copy.barrier)
        self._note(m, kind, copy.instr, lanes, nbytes=copy.nbytes, state=state, **span)


def _state(m: Any, index: int) -> BarrierState | None:
    """An mbarrier's counts as they lie in memory; phases are numbered later."""
    if index < 0:
        return None
    state = mbarrier.unpack(int(m.shared.views[8][index >> 3]))
    return BarrierState(index, state.phase, state.pending, state.tx_nbytes)


def _cut(value: Any, here: np.ndarray) -> Any:
    """A detail with an element a lane, for some lanes."""
    return value[here] if isinstance(value, np.ndarray) and value.shape == here.shape else value


def events(trace: BlockTrace) -> tuple[Event, ...]:
    """What happened, in order."""
    told: list[Event] = []
    for event in _numbered(_sorted(trace.events)):
        if event.kind == Kind.FLIP and told and _ended_it(told[-1], event):
            ended = replace(event.barrier, phase=event.barrier.phase - 1, pending=0, tx_nbytes=0)
            told[-1] = replace(told[-1], barrier=ended)
        told.append(event)
    return tuple(told)


def _ended_it(before: Event, flip: Event) -> bool:
    """Whether an event is what ended the phase: its state was read when the next had begun."""
    return before.barrier is not None and before.barrier.index == flip.barrier.index


def _sorted(traced: Iterable[Traced]) -> Iterator[Event]:
    """The trace's records by what they mean."""
    waiting: set[int] = set()
    line = ("", 0)
    for each in traced:
        if each.kind in ("try", "test"):
            yield from _asked(each, waiting)
        elif each.kind == "arrive":  # at a barrier of the block; the release says who went on
            line = (_base(each.file), each.line)
        elif each.kind in _KINDS:
            event = _plain(each, _KINDS[each.kind])
            if event.kind == Kind.SYNC:
                event = replace(event, file=line[0], line=line[1])
            yield event


def _asked(each: Traced, waiting: set[int]) -> Iterator[Event]:
    """Threads that hear yes go on; those that hear no wait, which is told once."""
    done = np.broadcast_to(np.asarray(each.detail["done"]), len(each.threads))
    for kind, answer in ((Kind.WAKE, True), (Kind.WAIT, False)):
        threads = [t for t, yes in zip(each.threads, done, strict=True) if yes == answer]
        if kind == Kind.WAIT:
            threads = [thread for thread in threads if thread not in waiting]
            waiting.update(threads)
        else:
            waiting.difference_update(threads)
        if threads:
            yield replace(_plain(each, kind), threads=tuple(threads))


def _plain(each: Traced, kind: Kind) -> Event:
    detail = each.detail
    by_no_thread = kind in _BY_NO_THREAD
    return Event(
        kind,
        () if by_no_thread else each.threads,
        "" if by_no_thread else _base(each.file),
        0 if by_no_thread else each.line,
        detail.get("name", ""),
        int(np.max(detail.get("nbytes", 0))),
        detail.get("state"),
        detail.get("start", -1),
        detail.get("stop", -1),
        detail.get("where", ""),
        np.atleast_1d(np.asarray(detail.get("offsets", []), np.int64)),
    )


def _base(file: str) -> str:
    return file.rsplit("/", 1)[-1]


def _numbered(plain: Iterable[Event]) -> Iterator[Event]:
    """Phases counted on from 0 instead of by their parity."""
    phases: dict[int, int] = {}
    for event in plain:
        state = event.barrier
        if state is None:
            yield event
            continue
        if event.kind == Kind.INIT:
            phases[state.index] = 0
        elif event.kind == Kind.FLIP:
            phases[state.index] = phases.get(state.index, 0) + 1
        yield replace(event, barrier=replace(state, phase=phases.get(state.index, 0)))
