"""A hang as one finding: why the barrier that everybody waits at never opens.

Reads who waits where (`Hang.waits`) and the sums of the barriers, and names the cause rather than
the 256 threads.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lesson.check_hangs_arrivals import arrived_astray, missing
from lesson.check_hangs_elsewhere import block_barrier, note_of, waits_elsewhere, who_waits
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
        return block_barrier(others[0], mine, scene)
    spin = mine[0]
    return scene.finding(
        note_of("hang", spin), "hang", scene.line_of(spin.instr),
        f"{len(spin.lanes)} threads of the block loop here for ever: nothing that they look at "
        "changes any more.",
        "Check what the loop waits for, and who should bring it about.",
        who_waits(mine, scene), scene.place(spin.instr, "here"),
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
            note_of("hang", wait), "arrivals-missing", scene.line_of(read or wait.instr),
            f"{len(wait.lanes)} threads wait for {name}, and nobody has ever arrived at it "
            f"(it wants {barrier.count} arrivals a phase).",
            "Let every reader arrive at it behind its last read of the buffer.",
            {"barrier": name, "arrivals": 0, "of": barrier.count, **who_waits(waits, scene)},
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


# ----------------------------------------------------------------------------------- mbarriers
def _mbarrier(wait: Wait, mine: list[Wait], scene: Scene) -> Finding | None:
    index = int(np.atleast_1d(wait.detail["index"])[0])
    parity = int(np.atleast_1d(wait.detail["parity"])[0]) & 1
    barrier = scene.barrier(index)
    note = note_of("hang", wait, index=index)
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
        **who_waits(mine, scene),
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
        return waits_elsewhere(note, absent[0], wait, name, state, scene)
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
