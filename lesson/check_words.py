"""Notes of the checks as findings: which line, one sentence, the proof, the cure. Shared memory and
its order.

One function a kind, in one table. The line is the one that the cure belongs to: a missing wait
stands in front of the read, a missing fence or barrier behind the write. Both accesses are among
the places.
"""

from __future__ import annotations

from collections.abc import Callable

from lesson.check_scene import Scene
from lesson.emulator.ordering_notes import Note
from lesson.emulator.ordering_phases import Barrier
from lesson.findings import Finding, Place

Words = Callable[[Note, Scene], Finding]
WORDS: dict[str, Words] = {}
PENDING = 1 << 30


def words(*kinds: str) -> Callable[[Words], Words]:
    """Register the words of some kinds of notes."""

    def register(function: Words) -> Words:
        WORDS.update(dict.fromkeys(kinds, function))
        return function

    return register


def both(note: Note, scene: Scene, first: str, second: str) -> tuple:
    """The two accesses: the earlier one, then the one where it shows."""
    return scene.place(note.other, first) + scene.place(note.instr, second)


def byte_of(note: Note, scene: Scene) -> str:
    """The shared byte of a note, in words."""
    return scene.at(note.facts["byte"])


# ------------------------------------------------------------------------------------- reading
@words("read-before-phase")
def read_before_phase(note: Note, scene: Scene) -> Finding:
    """Bytes of a copy are read by a thread that does not know its phase is over."""
    reader, what = scene.thread_name(note.lane), byte_of(note, scene)
    barrier = _barrier_of(note, scene)
    waited = barrier.waits.get(note.lane) if barrier is not None else None
    name = scene.at(barrier.index) if barrier is not None else "its barrier"
    phase = note.facts["stamp"] - 1
    places = both(note, scene, "the copy is issued", "the bytes are read")
    state = {
        "barrier": name,
        "phase of the copy": phase,
        "phases that the reader has seen end": note.facts["seen"],
        "bytes": what,
    }
    is_stale = waited is not None and note.facts["waited_since_issue"]
    if is_stale and not note.facts["expects"] and barrier.last is not None:
        return _not_expected(note, scene, barrier, places)
    if is_stale and "parity" in waited[0].mods:
        instr = waited[0]
        return scene.finding(
            note, "wait-wrong-parity", scene.line_of(instr),
            f"The wait on {name} asks for a phase that was over before, so it returns at once, and "
            f"{what} is read while the copy that completes phase {phase} may still be in flight.",
            f"Wait for parity {phase & 1} here: phase n of a barrier has parity n & 1, and the "
            "parity flips each "
            "time that the barrier is used again.",
            state, scene.place(instr, "this wait returns too early") + places,
        )  # fmt: skip
    if note.facts["seen"] == phase > 0 and not note.facts["read_before_refill"]:
        return scene.finding(
            note, "buffer-reused-early", scene.line_of(note.instr),
            f"{reader.capitalize()} has waited for phase {phase - 1} of {name}, and {what} was "
            "refilled before it read it: "
            "the buffer was released before the read.",
            "Release the buffer (arrive at its `empty` barrier) behind the last read of it, not in "
            "front.",
            state, places,
        )  # fmt: skip
    return scene.finding(
        note, "read-before-wait", scene.line_of(note.instr),
        f"{reader.capitalize()} reads {what} without having waited for {name}, on which the copy "
        "that fills it "
        "completes: the bytes may not have arrived.",
        f"Wait for {name} in front of this line, in every thread that reads, or in one with "
        "__syncthreads() behind.",
        state, places,
    )  # fmt: skip


def _not_expected(note: Note, scene: Scene, barrier: Barrier, places: tuple[Place, ...]) -> Finding:
    """A copy came behind the phase that was waited for, since nobody expected its bytes there."""
    name, last = scene.at(barrier.index), barrier.last
    line = scene.line_of(last.expect) or scene.line_of(note.other)
    return scene.finding(
        note, "too-few-bytes-expected", line,
        f"The barrier {name} expects {last.expected_nbytes} bytes, and another copy is issued on "
        "it "
        "whose bytes nobody expects: the phase ends without waiting for them.",
        "Expect the bytes of all copies of the phase together, before the first of them can land.",
        {"barrier": name, "bytes expected": last.expected_nbytes},
        scene.place(last.expect, "the bytes are expected") + places,
    )  # fmt: skip


def _barrier_of(note: Note, scene: Scene) -> Barrier | None:
    return scene.barrier(note.facts["barrier"]) if note.facts.get("barrier", -1) >= 0 else None


@words("read-uninitialised")
def read_uninitialised(note: Note, scene: Scene) -> Finding:
    """Nothing was ever written there."""
    what = byte_of(note, scene)
    wait = note.facts.get("trivial_wait")
    if wait is not None:
        return scene.finding(
            note, "wait-wrong-parity", scene.line_of(wait),
            f"The wait asks for parity 1 of a fresh barrier, which counts as over, so {what} is "
            "read before "
            "anything has been copied there.",
            "Wait for parity 0 first: the first phase of a barrier has parity 0.",
            {"bytes": what}, scene.place(wait, "this wait returns too early")
            + scene.place(note.instr, "the bytes are read"),
        )  # fmt: skip
    return scene.finding(
        note, "read-uninitialised", scene.line_of(note.instr),
        f"{scene.thread_name(note.lane).capitalize()} reads {what}, which nothing has written: no "
        "thread, and no copy. "
        + _brought(note, scene),
        "Bring as many bytes as are read (box, size of the copy), or read only what was brought.",
        {"bytes": what}, scene.place(note.instr, "the bytes are read"),
    )  # fmt: skip


def _brought(note: Note, scene: Scene) -> str:
    """Which bytes of the array the copies do bring."""
    found = scene.variable(note.facts["byte"])
    if found is None or scene.m is None:
        return ""
    start = note.facts["byte"] - found[1]
    mine = [c for c in scene.observer.copies if start <= c.smem_start < start + found[2]]
    if not mine:
        return "No copy into it was ever issued."
    stop = max(copy.smem_stop for copy in mine) - start
    return (
        f"The copies bring bytes {min(c.smem_start for c in mine) - start} to {stop} of "
        f"{found[0]}, which has {found[2]}."
    )


@words("read-unsynced")
def read_unsynced(note: Note, scene: Scene) -> Finding:
    """A plain race between a write and a read."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "read-unsynced", scene.line_of(note.other) or scene.line_of(note.instr),
        f"{scene.thread_name(note.lane).capitalize()} reads {what}, which another thread wrote, "
        "and nothing makes it "
        "wait for that write.",
        "Put __syncthreads() (or __syncwarp(), where both are in one warp) between the write and "
        "the read.",
        {"bytes": what}, both(note, scene, "the write", "the read"),
    )  # fmt: skip


@words("write-while-read")
def write_while_read(note: Note, scene: Scene) -> Finding:
    """A write that another thread's read may still be waiting for."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "write-while-read", scene.line_of(note.other) or scene.line_of(note.instr),
        f"{scene.thread_name(note.lane).capitalize()} writes {what} while another thread may still "
        "read what was there.",
        "Put __syncthreads() between the read and the next write.",
        {"bytes": what}, both(note, scene, "the read", "the write"),
    )  # fmt: skip


@words("read-before-cp-async")
def read_before_cp_async(note: Note, scene: Scene) -> Finding:
    """cp.async without its wait."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "read-before-cp-async", scene.line_of(note.instr),
        f"{what.capitalize() if what.startswith('byte') else what} is read before the group of its "
        "cp.async was "
        "waited for, by the thread that issued it.",
        "cp.async.wait_group (or __pipeline_wait_prior) in the issuing thread, then "
        "__syncthreads().",
        {"bytes": what}, both(note, scene, "cp.async", "the read"),
    )  # fmt: skip


@words("barrier-read-as-data")
def barrier_read_as_data(note: Note, scene: Scene) -> Finding:
    """A read that has run into a barrier."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "shared-out-of-bounds", scene.line_of(note.instr),
        f"{scene.thread_name(note.lane).capitalize()} reads {what} as data: an mbarrier lies "
        "there. The index has run past "
        "the end of the array in front of it.",
        "Check the index against the size of the array: the loop goes one step too far, or the "
        "array is too small.",
        {"bytes": what}, both(note, scene, "the barrier is initialised", "its bytes are read"),
    )  # fmt: skip


# ------------------------------------------------------------------------------------- writing
@words("write-into-copy")
def write_into_copy(note: Note, scene: Scene) -> Finding:
    """A thread and a copy write the same bytes."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "write-into-copy", scene.line_of(note.instr),
        f"{scene.thread_name(note.lane).capitalize()} writes {what}, which a copy may still be "
        "filling: whose bytes stay "
        "is chance.",
        "Wait for the barrier of the copy first.",
        {"bytes": what}, both(note, scene, "the copy is issued", "the write"),
    )  # fmt: skip


@words("copy-into-copy")
def copy_into_copy(note: Note, scene: Scene) -> Finding:
    """Two copies into the same bytes; by many threads, if it is one instruction in one phase."""
    copy, what = note.facts["copy"], byte_of(note, scene)
    twins = [
        c for c in scene.observer.copies
        if c.instr is copy.instr and c.block == copy.block and c.coords == copy.coords
        and c.smem_start == copy.smem_start and c.global_start == copy.global_start
    ]  # fmt: skip
    lanes = {c.lane for c in twins}
    if len(lanes) > 1:
        return scene.finding(
            note, "every-thread-issues", scene.line_of(note.instr),
            f"{len(lanes)} threads of a block issue the same copy into {what}: each brings all its "
            "bytes again, and "
            "the barrier counts them all.",
            "Let one thread issue it: `if (threadIdx.x == 0)`, or elect.sync in one warp.",
            {"threads that issue": len(lanes), "bytes each": copy.nbytes},
            scene.place(note.instr, "the copy is issued"),
        )  # fmt: skip
    return scene.finding(
        note, "copy-into-copy", scene.line_of(note.instr),
        f"A copy is issued into {what} while an earlier copy into the same bytes may still be in "
        "flight.",
        "Wait for the barrier of the first copy before you refill the buffer.",
        {"bytes": what}, both(note, scene, "the first copy", "the second copy"),
    )  # fmt: skip


@words("copy-over-unsynced-write")
def copy_over_unsynced_write(note: Note, scene: Scene) -> Finding:
    """A copy over a thread's data."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "copy-over-unsynced-write", scene.line_of(note.instr),
        f"A copy overwrites {what}, which another thread wrote, and nothing orders the two.",
        "Synchronise the writer with the thread that issues the copy first.",
        {"bytes": what}, both(note, scene, "the write", "the copy is issued"),
    )  # fmt: skip


@words("buffer-reused-early")
def buffer_reused_early(note: Note, scene: Scene) -> Finding:
    """A refill before the readers are done."""
    read, refill = scene.line_of(note.other), scene.line_of(note.instr)
    line = refill if refill >= read else read
    reader = scene.thread_name(note.facts["reading_lane"])
    what = byte_of(note, scene)
    return scene.finding(
        note, "buffer-reused-early", line,
        f"{scene.thread_name(note.lane).capitalize()} refills {what} by a copy while {reader} may "
        "still read what was "
        "there: the copy does not wait for it.",
        "Between the last read and the refill, synchronise: __syncthreads(), or let every reader "
        "arrive at an "
        "`empty` barrier (a whole warp first meets at __syncwarp()) and wait for it before the "
        "refill.",
        {"bytes": what, "reader": reader}, both(note, scene, "the read", "the refill is issued"),
    )  # fmt: skip


@words("barrier-overwritten")
def barrier_overwritten(note: Note, scene: Scene) -> Finding:
    """Data over a live barrier."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "barrier-overwritten", scene.line_of(note.instr),
        f"{scene.thread_name(note.lane).capitalize()} stores data over the barrier {what}, which "
        "is still live.",
        "mbarrier.inval first (ptx::mbarrier_inval, or the destructor of cuda::barrier), then use "
        "the bytes again.",
        {"bytes": what}, both(note, scene, "the barrier is initialised", "the store"),
    )  # fmt: skip
