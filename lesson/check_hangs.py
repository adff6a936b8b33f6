"""A hang as one finding: why the barrier that everybody waits at never opens.

Reads who waits where (`Hang.waits`) and the sums of the barriers, and names the cause rather than
the 256 threads.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lesson.check_hangs_arrivals import arrived_astray, missing
from lesson.check_scene import Scene
from lesson.check_words import WORDS
from lesson.emulator.ordering_notes import Note
from lesson.emulator.ordering_phases import Barrier
from lesson.emulator.progress import Wait
from lesson.emulator.ptx import Instr
from lesson.errors import Hang
from lesson.findings import Finding


def explain_hang(error: Hang, scene: Scene) -> Finding:
    """The finding for a hang."""
    waits = [wait for wait in error.waits if isinstance(wait, Wait)]
    if scene.m is None or not waits:
        return scene.finding(None, "hang", 0, str(error), "Check what each wait needs.")
    first = min(wait.block for wait in waits)
    mine = [wait for wait in waits if wait.block == first]
    on_barriers = [wait for wait in mine if wait.kind == "mbarrier"]
    others = [wait for wait in mine if wait.kind in ("bar", "cluster", "warp")]
    lonely = _nobody_arrives(on_barriers, scene)
    if lonely is not None:
        return lonely
    for wait in sorted(on_barriers, key=_is_spinning):
        found = _mbarrier(wait, mine, scene)
        if found is not None:
            return found
    if others:
        return _block_barrier(others[0], mine, scene)
    spin = mine[0]
    return scene.finding(
        _note("hang", spin), "hang", scene.line_of(spin.instr),
        f"{len(spin.lanes)} threads of the block loop here for ever: nothing that they look at "
        "changes any more.",
        "Check what the loop waits for, and who should bring it about.",
        _who(mine, scene), scene.place(spin.instr, "here"),
    )  # fmt: skip


def _nobody_arrives(waits: list[Wait], scene: Scene) -> Finding | None:
    """A barrier that nobody has ever arrived at, while copies complete on another one."""
    barriers = [scene.barrier(int(np.atleast_1d(wait.detail["index"])[0])) for wait in waits]
    if not any(b is not None and b.number and b.copies_ever for b in barriers):
        return None
    for wait, barrier in zip(waits, barriers, strict=True):
        if barrier is None or barrier.number or barrier.copies_ever or barrier.now.arrivals:
            continue
        name = scene.at(barrier.index)
        read = _last_read(scene)
        return scene.finding(
            _note("hang", wait), "arrivals-missing", scene.line_of(read or wait.instr),
            f"{len(wait.lanes)} threads wait for {name}, and nobody has ever arrived at it "
            f"(it wants {barrier.count} arrivals a phase).",
            "Let every reader arrive at it behind its last read of the buffer.",
            {"barrier": name, "arrivals": 0, "of": barrier.count, **_who(waits, scene)},
            scene.place(read, "the read behind which an arrival belongs")
            + scene.place(barrier.init, "the init")
            + scene.place(wait.instr, "the wait"),
        )  # fmt: skip
    return None


def _last_read(scene: Scene) -> Instr | None:
    """What read the bytes of the first copy."""
    shadow, copies = scene.observer.shadow, scene.observer.copies
    if not copies or not shadow.readers.flush():
        return None
    return shadow.instrs[int(shadow.readers.instr[copies[0].smem_start >> shadow.shift])]


def _is_spinning(wait: Wait) -> bool:
    return wait.kind == "spin"


def _note(kind: str, wait: Wait, **facts: object) -> Note:
    where = wait.where
    return Note(
        kind,
        wait.instr,
        None,
        getattr(where, "block", None),
        getattr(where, "thread", None),
        facts,
        len(wait.lanes),
        wait.lanes[0] if wait.lanes else -1,
    )


def _who(waits: list[Wait], scene: Scene) -> dict[str, object]:
    """Who waits where, line by line."""
    return {
        f"line {scene.line_of(wait.instr)}": f"{len(wait.lanes)} threads ({wait.kind})"
        for wait in waits
    }


# ----------------------------------------------------------------------------------- mbarriers
def _mbarrier(wait: Wait, mine: list[Wait], scene: Scene) -> Finding | None:
    index = int(np.atleast_1d(wait.detail["index"])[0])
    parity = int(np.atleast_1d(wait.detail["parity"])[0]) & 1
    barrier = scene.barrier(index)
    note = _note("hang", wait, index=index)
    if barrier is None:
        return WORDS["barrier-not-initialised"](note, scene)
    phase = barrier.now
    wants = barrier.count - barrier.dropped
    if phase.arrivals > wants:
        note.facts |= {"count": barrier.count, "arrivals": phase.arrivals}
        note.other, note.instr = barrier.init, phase.arrive
        return WORDS["too-many-arrivals"](note, scene)
    unseen = _unseen_phase(wait, barrier, parity)
    if unseen is not None:
        return _wrong_parity(note, wait, barrier, parity, unseen, scene)
    if phase.arrivals < wants:
        return _arrivals(note, wait, mine, barrier, scene)
    if phase.expected_nbytes != phase.issued_nbytes:
        return _bytes(note, barrier, scene)
    return None


def _unseen_phase(wait: Wait, barrier: Barrier, parity: int) -> int | None:
    """The phase that is over and that the waiting thread has not seen, if it asks for the other
    parity."""
    if not barrier.number or barrier.now.arrivals:
        return None
    seen = barrier.waits.get(wait.lanes[0])
    last = barrier.number - 1
    if (seen is None or seen[1] < barrier.number) and last & 1 != parity:
        return last
    return None


def _wrong_parity(
    note: Note, wait: Wait, barrier: Barrier, parity: int, phase: int, scene: Scene
) -> Finding:
    name = scene.at(barrier.index)
    return scene.finding(
        note, "wait-wrong-parity", scene.line_of(wait.instr),
        f"The wait on {name} asks for parity {parity}, while phase {phase}, which this thread has "
        "not waited for yet, "
        f"has parity {phase & 1}: once that phase is over, the wait is for the one behind, which "
        "never ends; before, it passes at once.",
        f"Wait for parity {phase & 1} here: phase n of a barrier has parity n & 1, and the parity "
        "flips each time that "
        "the barrier is used again.",
        {"barrier": name, "phases over": barrier.number, "parity asked": parity},
        scene.place(wait.instr, "the wait"),
    )  # fmt: skip


def _bytes(note: Note, barrier: Barrier, scene: Scene) -> Finding:
    phase = barrier.now
    if not phase.issued_nbytes:
        name = scene.at(barrier.index)
        note.instr = phase.expect
        return scene.finding(
            note, "no-copy-issued", scene.line_of(phase.expect),
            f"The barrier {name} expects {phase.expected_nbytes} bytes, and no copy that completes "
            "on it was ever issued.",
            "Issue the copy, on this barrier; or do not expect its bytes.",
            {"barrier": name, "bytes expected": phase.expected_nbytes, "bytes of the copies": 0},
            scene.place(phase.expect, "the bytes are expected"),
        )  # fmt: skip
    before = set(map(id, scene.observer.notes))
    scene.observer.barriers.note_bytes(barrier, phase)
    for found in scene.observer.notes:
        is_of_it = found.facts.get("index") == barrier.index and found.kind in WORDS
        if is_of_it and (id(found) not in before or "expected" in found.facts):
            return WORDS[found.kind](found, scene)
    return scene.finding(
        note, "hang", scene.line_of(note.instr), "The bytes never add up.", "Count them."
    )


def _arrivals(note: Note, wait: Wait, mine: list[Wait], barrier: Barrier, scene: Scene) -> Finding:
    m, phase, name = scene.m, barrier.now, scene.at(barrier.index)
    wants = barrier.count - barrier.dropped
    state = {
        "barrier": name, "phase": barrier.number, "arrivals": phase.arrivals, "of": wants,
        "bytes expected": phase.expected_nbytes, "bytes of the copies": phase.issued_nbytes,
        **_who(mine, scene),
    }  # fmt: skip
    first = barrier.block % m.cluster_nblocks * m.padded_threads
    lanes = scene.observer.clocks.domain_lanes
    here = phase.arrived(lanes)[first : first + m.threads]
    last = barrier.last.arrived(lanes)[first : first + m.threads] if barrier.last else None
    if last is not None and phase.arrivals and _is_split(here > 0, last > 0):
        note.facts |= {"count": barrier.count, "arrivals": m.threads}
        note.other, note.instr = barrier.init, phase.arrive
        return replace(WORDS["too-many-arrivals"](note, scene), is_proved=True)
    astray = arrived_astray(note, wait, barrier, state, scene)
    if astray is not None:
        return astray
    elsewhere = [
        w for w in mine if w.kind in ("bar", "cluster", "warp") or _other_barrier(w, barrier)
    ]
    absent = [w for w in elsewhere if not here[[lane % m.padded_threads for lane in w.lanes]].any()]
    if absent:
        return _different(note, absent[0], wait, name, state, scene)
    if int((here > 0).sum()) == m.threads and wants > phase.arrivals:
        return scene.finding(
            note, "init-count-too-large", scene.line_of(barrier.init),
            f"The barrier {name} was initialised for {barrier.count} arrivals, and only "
            f"{phase.arrivals} come: all "
            f"{m.threads} threads of the block have arrived, and nobody is left.",
            f"Initialise it for {phase.arrivals} arrivals.",
            state, scene.place(barrier.init, "the init") + scene.place(wait.instr, "the wait"),
        )  # fmt: skip
    return missing(note, wait, barrier, name, state, scene)


def _is_split(here: np.ndarray, before: np.ndarray) -> bool:
    """Whether the threads of the block arrived once each, some in the phase before this one."""
    return not (here & before).any() and bool((here | before).all())


def _other_barrier(wait: Wait, barrier: Barrier) -> bool:
    return wait.kind == "mbarrier" and int(np.atleast_1d(wait.detail["index"])[0]) != barrier.index


def _different(
    note: Note, absent: Wait, wait: Wait, name: str, state: dict[str, object], scene: Scene
) -> Finding:
    if absent.kind == "mbarrier":
        found = _fresh_ring(absent, wait, scene)
        if found is not None:
            return found
    what = {"bar": "__syncthreads()", "cluster": "the barrier of the cluster", "warp": "its warp"}
    other = what.get(absent.kind, "another mbarrier")
    note.instr = absent.instr
    return scene.finding(
        note,
        "different-barriers",
        scene.line_of(absent.instr),
        f"{len(absent.lanes)} of the block's threads wait here for {other}, and {len(wait.lanes)} "
        f"wait for {name}, at "
        "which those have yet to arrive: each waits for the other.",
        "Let all threads pass the same barriers in the same order: no __syncthreads() in a branch "
        "that only some "
        "threads take, and arrive before you wait elsewhere.",
        state,
        scene.place(absent.instr, "some wait here") + scene.place(wait.instr, "the others here"),
    )


def _fresh_ring(absent: Wait, wait: Wait, scene: Scene) -> Finding | None:
    """Two barriers that nothing has happened to, and threads at both: one of them should not wait
    yet."""
    both = [
        (each, scene.barrier(int(np.atleast_1d(each.detail["index"])[0])))
        for each in (absent, wait)
    ]
    if any(b is None or b.number or b.now.arrivals or b.copies_ever for _, b in both):
        return None
    each, barrier = min(both, key=lambda pair: len(pair[0].lanes))
    name = scene.at(barrier.index)
    return scene.finding(
        _note("hang", each),
        "wait-wrong-parity",
        scene.line_of(each.instr),
        f"{len(each.lanes)} threads wait for the first phase of the fresh barrier {name}, which "
        "only those could complete "
        "who wait for these threads in turn: each waits for the other.",
        "Let the producer pass a fresh `empty` barrier: it waits for parity 1 on the first lap "
        "((lap & 1) ^ 1), which "
        "counts as over.",
        {"barrier": name, "phases over": 0},
        scene.place(each.instr, "this wait should pass at first")
        + scene.place(wait.instr, "others wait"),
    )


# -------------------------------------------------------------------------------- block barriers
def _block_barrier(wait: Wait, mine: list[Wait], scene: Scene) -> Finding:
    others = [w for w in mine if w is not wait]
    places = scene.place(wait.instr, "some wait here")
    for other in others:
        places += scene.place(other.instr, "others wait here")
    what = {"bar": "__syncthreads()", "cluster": "barrier of the cluster", "warp": "warp-wide"}
    if others:
        return scene.finding(
            _note("hang", wait), "different-barriers", scene.line_of(wait.instr),
            f"{len(wait.lanes)} threads of the block wait at one barrier and "
            f"{len(others[0].lanes)} at another: each waits "
            "for the other.",
            "Let all threads pass the same barriers in the same order.",
            _who(mine, scene), places,
        )  # fmt: skip
    return scene.finding(
        _note("hang", wait), "divergent-barrier", scene.line_of(wait.instr),
        f"{len(wait.lanes)} threads wait for the rest of the block at this "
        f"{what.get(wait.kind, 'barrier')}, and the rest "
        "never comes.",
        "Put the barrier where every thread passes it, not inside a branch.",
        _who(mine, scene), places,
    )  # fmt: skip
