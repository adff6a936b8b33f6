"""The story of one block of the lesson's kernel, moment by moment, told from the emulator's trace.

Does: runs the kernel, as shipped or edited, in the emulator; says of each event who did what, in a
few words, and keeps the barrier's counts, the elements concerned and the source line beside it.
Does not: draw (`figures_timeline` and `stepper` do) or judge. A GPU shows neither its engine nor
its barriers, so the story is the emulator's on either target. It knows order, and no durations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from lesson import targets
from lesson.errors import DeviceFault, Hang, LimitExceeded
from lesson.kernel_source import TileKernel
from lesson.timeline_events import SHARED, BarrierState, BlockTrace, Event, Kind, events
from lesson.timeline_words import Actor, actors, label, sentence

ITEM_NBYTES = 4
CONTEXT_LINES = 3
Runs = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """One event as it is told.

    `by`: the lanes of the picture that it belongs to. `barrier`: its counts after the event, or as
    they were before where the event does not touch it; None before there is one. `landed`, `read`,
    `stored`: elements of the block's tile that this event concerns, as (row, first column, how
    many). `astray`: elements stored outside of the block's tile.
    """

    kind: Kind
    by: tuple[Actor, ...]
    label: str
    says: str
    file: str
    line: int
    instruction: str = ""
    barrier: BarrierState | None = None
    landed: Runs = ()
    read: Runs = ()
    stored: Runs = ()
    astray: int = 0


@dataclass(frozen=True)
class Timeline:
    """The moments of one block. `tile`: columns and rows. `listing`: (file, line, text) in order.

    `ended`: "" after a run that came to its end; else why it did not.
    """

    block: tuple[int, int]
    threads: int
    tile: tuple[int, int]
    schedule: str
    moments: tuple[Moment, ...]
    listing: tuple[tuple[str, int, str], ...]
    ended: str = ""

    @property
    def most_pending(self) -> int:
        """The largest number of arrivals that were missing."""
        return max((m.barrier.pending for m in self.moments if m.barrier), default=0)

    @property
    def most_nbytes(self) -> int:
        """The largest number of bytes that were missing, or too many."""
        return max((abs(m.barrier.tx_nbytes) for m in self.moments if m.barrier), default=0)


def spans(kinds: Sequence[Kind], start: Kind, stop: Kind) -> list[tuple[int, int]]:
    """(from, to) positions: each event of one kind, and the next of another, or the end."""
    found = []
    for at, kind in enumerate(kinds):
        if kind == start:
            ends = (i for i, other in enumerate(kinds) if i > at and other == stop)
            found.append((at, next(ends, len(kinds))))
    return found


def record(
    kernel: TileKernel | None = None, schedule: str = "late", block: tuple[int, int] = (2, 1)
) -> Timeline:
    """Runs the kernel in the emulator and tells the story of one block (x, y).

    A run that hangs or faults has a story, too, up to there.
    """
    source = (kernel or TileKernel()).source()
    grid, threads = targets.full_grid(), targets.threads_per_block()
    trace = BlockTrace(block[1] * grid[0] + block[0])
    args = [targets.lesson_map(), np.zeros_like(targets.new_matrix())]
    ended = ""
    try:
        targets.emulate(source, grid, (threads,), args, schedule, (trace,))
    except Hang:
        ended = "hang"
    except LimitExceeded:
        ended = "no end in sight"
    except DeviceFault as fault:
        ended = fault.cuda_error.removeprefix("CUDA_ERROR_").replace("_", " ").lower()
    moments = tell(events(trace), threads, targets.tile_shape(), block)
    lines = [(file, line, text) for (file, line), text in source.lines.items()]
    return Timeline(
        block,
        threads,
        targets.tile_shape(),
        schedule,
        moments,
        _listing(lines, moments),
        ended,
    )


def tell(
    happened: tuple[Event, ...], threads: int, tile: tuple[int, int], block: tuple[int, int]
) -> tuple[Moment, ...]:
    """The moments of the events of a kernel that works on one tile of the lesson's matrix a block.

    Threads that read and store in one source line make one moment, not two.
    """
    place = _Tile(tile, block, happened)
    moments: list[Moment] = []
    barrier: BarrierState | None = None
    pairs = pairwise([*happened, None])
    previous: Event | None = None
    for event, following in pairs:
        barrier = event.barrier or barrier
        if following is not None and _is_read_then_store(event, following):
            previous = event
            continue
        moment = _moment(event, threads, barrier, place)
        if previous is not None:
            moment = replace(moment, read=place.runs_of_shared(previous))
            previous = None
        moments.append(moment)
    return tuple(moments)


def _is_read_then_store(event: Event, following: Event) -> bool:
    """Whether two events are the halves of one assignment from shared to global memory."""
    return (
        (event.kind, event.where, following.kind) == (Kind.READ, SHARED, Kind.WRITE)
        and following.where != SHARED
        and (event.threads, event.line) == (following.threads, following.line)
    )


def _moment(event: Event, threads: int, barrier: BarrierState | None, place: _Tile) -> Moment:
    stored, astray = place.stored(event)
    return Moment(
        event.kind,
        actors(event),
        label(event),
        sentence(event, threads, stored, astray),
        event.file,
        event.line,
        event.instruction,
        barrier,
        landed=place.landed(event),
        read=place.runs_of_shared(event) if event.kind == Kind.READ else (),
        stored=stored,
        astray=astray,
    )


@dataclass(frozen=True)
class _Tile:
    """Where the block's tile lies in shared memory and in the matrix."""

    shape: tuple[int, int]
    block: tuple[int, int]
    happened: tuple[Event, ...]

    @property
    def shared_start(self) -> int:
        """First byte of the tile in shared memory: where the first copy delivers."""
        return next((e.start for e in self.happened if e.kind in (Kind.ISSUE, Kind.LAND)), 0)

    def landed(self, event: Event) -> Runs:
        """The elements that a landing copy fills."""
        if event.kind != Kind.LAND:
            return ()
        return self._runs(np.arange(event.start, event.stop, ITEM_NBYTES) - self.shared_start)

    def runs_of_shared(self, event: Event) -> Runs:
        """The elements of the tile that an access to shared memory concerns."""
        return self._runs(event.offsets - self.shared_start) if event.where == SHARED else ()

    def stored(self, event: Event) -> tuple[Runs, int]:
        """The elements of the tile that a store to global memory writes, and how many others."""
        if event.kind != Kind.WRITE or event.where == SHARED:
            return (), 0
        width, height = self.shape
        rows, columns = np.divmod(event.offsets // ITEM_NBYTES, targets.matrix_shape()[0])
        rows, columns = rows - self.block[1] * height, columns - self.block[0] * width
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        offsets = (rows[inside] * width + columns[inside]) * ITEM_NBYTES
        return self._runs(offsets), int(np.count_nonzero(~inside))

    def _runs(self, offsets: np.ndarray) -> Runs:
        """Byte offsets in the tile as runs along its rows; what lies outside is left out."""
        width, height = self.shape
        elements = np.unique(offsets // ITEM_NBYTES)
        elements = elements[(elements >= 0) & (elements < width * height)]
        if not elements.size:
            return ()
        is_start = np.diff(elements, prepend=-2) != 1
        starts = np.flatnonzero(is_start | (elements % width == 0))
        counts = np.diff(starts, append=elements.size)
        return tuple(
            (int(e) // width, int(e) % width, int(n))
            for e, n in zip(elements[starts], counts, strict=True)
        )


def _listing(
    lines: list[tuple[str, int, str]], moments: tuple[Moment, ...]
) -> tuple[tuple[str, int, str], ...]:
    """The source from a little before the first line that matters to a little behind the last."""
    touched = {(m.file, m.line) for m in moments}
    at = [i for i, (file, line, _) in enumerate(lines) if (file, line) in touched]
    if not at:
        return ()
    return tuple(lines[max(at[0] - CONTEXT_LINES, 0) : at[-1] + CONTEXT_LINES + 1])
