"""Threads of one block that wait in different places, each for the other.

Used by `check_hangs`: block barriers that not all threads come to, and threads that wait elsewhere
before they have arrived.
"""

from __future__ import annotations

import numpy as np

from lesson.check_scene import Scene
from lesson.emulator.ordering_notes import Note
from lesson.emulator.progress import Wait
from lesson.findings import Finding


def note_of(kind: str, wait: Wait, **facts: object) -> Note:
    """A note on a wait."""
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


def who_waits(waits: list[Wait], scene: Scene) -> dict[str, object]:
    """Who waits where, line by line."""
    return {
        f"line {scene.line_of(wait.instr)}": f"{len(wait.lanes)} threads ({wait.kind})"
        for wait in waits
    }


def waits_elsewhere(
    note: Note, absent: Wait, wait: Wait, name: str, state: dict[str, object], scene: Scene
) -> Finding:
    """Threads that should arrive wait somewhere else."""
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
        note_of("hang", each),
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
def block_barrier(wait: Wait, mine: list[Wait], scene: Scene) -> Finding:
    """A barrier of the block that some of its threads do not come to."""
    others = [w for w in mine if w is not wait]
    places = scene.place(wait.instr, "some wait here")
    for other in others:
        places += scene.place(other.instr, "others wait here")
    what = {"bar": "__syncthreads()", "cluster": "barrier of the cluster", "warp": "warp-wide"}
    if others:
        return scene.finding(
            note_of("hang", wait), "different-barriers", scene.line_of(wait.instr),
            f"{len(wait.lanes)} threads of the block wait at one barrier and "
            f"{len(others[0].lanes)} at another: each waits "
            "for the other.",
            "Let all threads pass the same barriers in the same order.",
            who_waits(mine, scene), places,
        )  # fmt: skip
    return scene.finding(
        note_of("hang", wait), "divergent-barrier", scene.line_of(wait.instr),
        f"{len(wait.lanes)} threads wait for the rest of the block at this "
        f"{what.get(wait.kind, 'barrier')}, and the rest "
        "never comes.",
        "Put the barrier where every thread passes it, not inside a branch.",
        who_waits(mine, scene), places,
    )  # fmt: skip
