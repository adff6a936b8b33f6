"""Arrivals that do not come: where they went instead.

PTX ISA, "mbarrier.arrive", "cp.async.mbarrier.arrive" and "mapa". Used by `check_hangs`, once it
is known that a phase lacks arrivals.
"""

from __future__ import annotations

from lesson.check_scene import Scene
from lesson.emulator.ordering_notes import Note
from lesson.emulator.ordering_phases import Barrier
from lesson.emulator.progress import Wait
from lesson.emulator.ptx import Instr
from lesson.findings import Finding


def is_own_count(instr: Instr) -> bool:
    """Whether an arrival first raises the pending count by what it then takes."""
    return instr.opcode == "cp" and "mbarrier" in instr.mods and "noinc" not in instr.mods


def arrived_astray(
    note: Note, wait: Wait, barrier: Barrier, state: dict[str, object], scene: Scene
) -> Finding | None:
    """Arrivals at the same barrier of another block of the cluster, at which nobody waits."""
    m, every = scene.m, scene.observer.barriers.at
    first = barrier.block // m.cluster_nblocks * m.cluster_nblocks
    offset = barrier.index % m.shared_stride
    missing_count = barrier.count - barrier.dropped - barrier.now.arrivals
    for block in range(first, first + m.cluster_nblocks):
        twin = every.get(block * m.shared_stride + offset)
        if twin is None or twin is barrier or twin.waits.number.size:
            continue
        if twin.now.arrive is None or twin.number or twin.now.arrivals < missing_count:
            continue
        name = scene.at(barrier.index)
        place = scene.place(twin.now.arrive, "these arrivals go to another block")
        return scene.finding(
            note, "arrivals-missing", scene.line_of(twin.now.arrive),
            f"{barrier.now.arrivals} of {barrier.count} arrivals come at {name} of block "
            f"{barrier.block - first} of the cluster, where it is waited for; "
            f"{twin.now.arrivals} go to {name} of block {block - first}, where nobody waits.",
            "Arrive at the barrier of the block that waits: mapa with its rank in the cluster, "
            "then mbarrier.arrive.shared::cluster.",
            state, place + scene.place(wait.instr, "the wait"),
        )  # fmt: skip
    return None


def _counted_for_nothing(
    note: Note, wait: Wait, barrier: Barrier, name: str, state: dict[str, object], scene: Scene
) -> Finding:
    """cp.async.mbarrier.arrive without .noinc on a barrier whose init counted it already."""
    arrive = barrier.now.arrive
    return scene.finding(
        note, "arrivals-missing", scene.line_of(arrive),
        f"cp.async.mbarrier.arrive without .noinc first raises the pending count of {name} by the "
        f"arrival that it then makes: none of the {barrier.count} arrivals of the init ever comes.",
        "cp.async.mbarrier.arrive.noinc, if the init counts these arrivals; or arrive as well.",
        state,
        scene.place(arrive, "the arrival that counts itself")
        + scene.place(barrier.init, "the init") + scene.place(wait.instr, "the wait"),
    )  # fmt: skip


def missing(
    note: Note, wait: Wait, barrier: Barrier, name: str, state: dict[str, object], scene: Scene
) -> Finding:
    """Arrivals that nobody makes."""
    phase = barrier.now
    if phase.arrive is not None and is_own_count(phase.arrive) and not phase.arrivals:
        return _counted_for_nothing(note, wait, barrier, name, state, scene)
    places = scene.place(barrier.init, "the init") + scene.place(wait.instr, "the wait")
    if not phase.arrivals and not phase.issued_nbytes and not phase.expected_nbytes:
        kind = (
            "no-copy-issued"
            if not barrier.copies_ever and not barrier.number
            else "phase-never-ends"
        )
        return scene.finding(
            note, kind, scene.line_of(wait.instr),
            f"Nobody arrives at the barrier {name} in phase {barrier.number}, and no copy is "
            "issued on it, so this wait "
            "never ends.",
            "Arrive and issue the copy for every phase that is waited for; or wait for fewer.",
            state, places,
        )  # fmt: skip
    if not phase.arrivals:
        says = f"bytes are expected or copied on {name}, but nobody arrives"
    else:
        says = f"{phase.arrivals} of {barrier.count} arrivals come at {name}"
    return scene.finding(
        note, "arrivals-missing", scene.line_of(barrier.init),
        f"In phase {barrier.number} {says}, so the phase never ends and this block hangs.",
        f"Let {barrier.count} arrivals come in each phase, or initialise the barrier for those "
        "that do "
        f"({phase.arrivals}).",
        state, places,
    )  # fmt: skip
