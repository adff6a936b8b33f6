"""Who does what at an event of a trace: the lanes of the timeline, and its words.

Does: one event in, words out, the lesson's own (issue, arrive, phase, transaction count).
Does not: look at other events, so the words hold for kernels that are edited or broken, too.
"""

from __future__ import annotations

from enum import StrEnum

from lesson.timeline_events import SHARED, Event, Kind

Runs = tuple[tuple[int, int, int], ...]


class Actor(StrEnum):
    """A lane of the timeline."""

    THREAD_0 = "thread 0"
    OTHERS = "other threads"
    ENGINE = "TMA engine"
    BARRIER = "mbarrier"


def actors(event: Event) -> tuple[Actor, ...]:
    """Who does it, from the top lane down."""
    if event.kind in (Kind.LAND, Kind.COMPLETE):
        return (Actor.ENGINE,)
    if event.kind == Kind.FLIP:
        return (Actor.BARRIER,)
    has_0, has_others = 0 in event.threads, any(event.threads)
    return (Actor.THREAD_0,) * has_0 + (Actor.OTHERS,) * has_others


def label(event: Event) -> str:
    """One or two short words for a box of the timeline."""
    if event.kind == Kind.ARRIVE and event.nbytes:
        return f"arrive\n+{event.nbytes}"
    return {
        Kind.INIT: "set up\nbarrier",
        Kind.INVAL: "end\nbarrier",
        Kind.FENCE: "fence",
        Kind.SYNC: "sync",
        Kind.ISSUE: "issue",
        Kind.ARRIVE: "arrive",
        Kind.EXPECT: "announce",
        Kind.WAIT: "wait",
        Kind.WAKE: "wake",
        Kind.LAND: "bytes\nland",
        Kind.COMPLETE: "report",
        Kind.FLIP: "phase\nover",
        Kind.READ: "read",
        Kind.WRITE: "store",
        Kind.ATOMIC: "update",
        Kind.EXIT: "end",
    }[event.kind]


def who(event: Event, threads: int) -> str:
    """ "thread 0", "the other 255 threads", "all 256 threads"."""
    n = len(event.threads)
    if n == 1:
        return f"thread {event.threads[0]}"
    if n == threads:
        return f"all {n} threads"
    if n == threads - 1 and 0 not in event.threads:
        return f"the other {n} threads"
    return f"{n} threads"


def sentence(event: Event, threads: int, stored: Runs = (), astray: int = 0) -> str:
    """What happens, in a sentence without its full stop."""
    by, s = who(event, threads), "s" if len(event.threads) == 1 else ""
    barrier = event.barrier
    phase = barrier.phase if barrier else 0
    match event.kind:
        case Kind.INIT:
            return f"{by} set{s} up the barrier: a phase needs {barrier.pending} arrivals"
        case Kind.INVAL:
            return f"{by} end{s} the barrier's life"
        case Kind.FENCE if "proxy" in event.instruction:
            return f"{by} execute{s} the proxy fence: now the engine can see the barrier"
        case Kind.FENCE:
            return f"{by} execute{s} {event.instruction}"
        case Kind.SYNC:
            return f"{by} have met at __syncthreads()"
        case Kind.ISSUE:
            return f"{by} issue{s} a copy of {event.nbytes} bytes, and go{s and 'es'} on"
        case Kind.ARRIVE if event.nbytes:
            return f"{by} arrive{s} and announce{s} {event.nbytes} bytes"
        case Kind.ARRIVE:
            return f"{by} arrive{s}"
        case Kind.EXPECT:
            return f"{by} announce{s} {event.nbytes} bytes"
        case Kind.WAIT:
            return f"{by} wait{s} for the end of phase {phase}"
        case Kind.WAKE:
            return f"{by} see{s} that phase {phase - 1} is over, and go{s and 'es'} on"
        case Kind.LAND:
            return f"{event.nbytes} bytes have landed in shared memory"
        case Kind.COMPLETE:
            return f"the engine reports {event.nbytes} bytes to the barrier"
        case Kind.FLIP:
            return f"both counts are zero: phase {phase - 1} is over, phase {phase} begins"
        case Kind.WRITE if event.where != SHARED:
            return f"{by} {_store_words(s, stored, astray)}"
        case Kind.READ | Kind.WRITE | Kind.ATOMIC:
            verb = {Kind.READ: "read", Kind.WRITE: "write", Kind.ATOMIC: "update"}[event.kind]
            return f"{by} {verb}{s} {'shared' if event.where == 'shared' else 'global'} memory"
    return f"{by} end{s}"


def _store_words(s: str, stored: Runs, astray: int) -> str:
    """Which rows of the tile a store fills, and how much of it goes elsewhere."""
    rows = sorted({row for row, _, _ in stored})
    if not rows:
        return f"store{s} {astray} elements outside of the block's tile"
    span = f"row {rows[0]}" if len(rows) == 1 else f"rows {rows[0]} to {rows[-1]}"
    strays = f", and {astray} elements outside of it" if astray else ""
    return f"store{s} {span} of the tile{strays}"
