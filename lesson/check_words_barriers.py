"""Notes on barriers and their bytes as findings."""

from __future__ import annotations

from lesson.check_scene import Scene
from lesson.check_words import both, words
from lesson.emulator.ordering_notes import Note
from lesson.findings import Finding
from lesson.map_doctor import explain


def barrier_name(note: Note, scene: Scene) -> str:
    """The barrier of a note, in words."""
    return scene.at(note.facts["index"])


# ----------------------------------------------------------------------------------- set up
@words("barrier-not-initialised")
def not_initialised(note: Note, scene: Scene) -> Finding:
    """Never, not yet, or not known to be."""
    name = barrier_name(note, scene)
    init = scene.find_instr("mbarrier", "init")
    use, set_up = scene.line_of(note.instr), scene.line_of(init)
    if init is None or not set_up:
        return scene.finding(
            note, "barrier-not-initialised", use,
            f"The barrier {name} is used, and nobody ever initialises it.",
            "One thread runs mbarrier.init (ptx::mbarrier_init, or init(&bar, count)), then "
            "fence.proxy.async, then "
            "__syncthreads().",
            {"barrier": name}, scene.place(note.instr, "the first use"),
        )  # fmt: skip
    if set_up <= use:
        return _unsynced(note, scene, name, set_up, scene.place(init, "the init"))
    return scene.finding(
        note, "barrier-not-initialised", use,
        f"The barrier {name} is used before it is initialised, so this use is lost.",
        "Initialise it first, then __syncthreads(), then use it.",
        {"barrier": name}, scene.place(note.instr, "the first use") + scene.place(init, "the init"),
    )  # fmt: skip


def _unsynced(note: Note, scene: Scene, name: str, line: int, places: tuple) -> Finding:
    return scene.finding(
        note, "barrier-init-unsynced", line,
        f"{scene.thread_name(note.lane).capitalize()} uses the barrier {name} without knowing that "
        "it has been "
        "initialised: nothing orders the use behind the init.",
        "__syncthreads() between the init and the first use (a cluster: barrier.cluster arrive and "
        "wait).",
        {"barrier": name}, places + scene.place(note.instr, "the use"),
    )  # fmt: skip


@words("barrier-init-unsynced")
def init_unsynced(note: Note, scene: Scene) -> Finding:
    """A use that nothing orders behind the init."""
    line = scene.line_of(note.other) or scene.line_of(note.instr)
    return _unsynced(
        note, scene, barrier_name(note, scene), line, scene.place(note.other, "the init")
    )


@words("barrier-not-published")
def not_published(note: Note, scene: Scene) -> Finding:
    """The copy engine may not see the init."""
    name = barrier_name(note, scene)
    return scene.finding(
        note, "barrier-not-published", scene.line_of(note.other) or scene.line_of(note.instr),
        f"The copy engine uses the barrier {name} through the async proxy, and no fence has made "
        "its init visible "
        "there.",
        "Behind the init, in the same thread: fence.proxy.async.shared::cta, or "
        "fence.mbarrier_init.release.cluster; "
        "then __syncthreads().",
        {"barrier": name}, both(note, scene, "the init", "the copy that uses it"),
    )  # fmt: skip


@words("barrier-reinit")
def reinit(note: Note, scene: Scene) -> Finding:
    """Two inits."""
    name = barrier_name(note, scene)
    return scene.finding(
        note, "barrier-reinit", scene.line_of(note.instr),
        f"The barrier {name} is initialised again while it is live: arrivals and bytes counted so "
        "far are lost.",
        "Initialise it once and let its phases go on; or mbarrier.inval first, when all are done "
        "with it.",
        {"barrier": name}, both(note, scene, "the first init", "the second init"),
    )  # fmt: skip


@words("barrier-after-inval")
def after_inval(note: Note, scene: Scene) -> Finding:
    """Used after its end."""
    name = barrier_name(note, scene)
    return scene.finding(
        note, "barrier-after-inval", scene.line_of(note.instr),
        f"The barrier {name} is used after mbarrier.inval.",
        "Initialise it again first, or invalidate it later.",
        {"barrier": name}, both(note, scene, "the init", "the use"),
    )  # fmt: skip


@words("barrier-inval-early")
def inval_early(note: Note, scene: Scene) -> Finding:
    """The end of a barrier at which others may still be."""
    name = barrier_name(note, scene)
    waiter = scene.thread_name(note.facts["column"])
    return scene.finding(
        note, "barrier-inval-early", scene.line_of(note.instr),
        f"{scene.thread_name(note.lane).capitalize()} invalidates the barrier {name} while "
        f"{waiter} may still wait at it: having passed the wait itself says nothing of others.",
        "__syncthreads() between the last wait and mbarrier.inval.",
        {"barrier": name}, both(note, scene, "the wait", "the barrier is invalidated"),
    )  # fmt: skip


@words("too-many-arrivals")
def too_many_arrivals(note: Note, scene: Scene) -> Finding:
    """More arrivals than the init said."""
    name, facts = barrier_name(note, scene), note.facts
    return scene.finding(
        note, "init-count-too-small", scene.line_of(note.other) or scene.line_of(note.instr),
        f"The barrier {name} was initialised for {facts['count']} arrivals a phase, and "
        f"{facts['arrivals']} come: what is "
        "too many counts in the next phase, which then ends too early or never.",
        "Give mbarrier.init the number of arrivals of one phase, or let fewer threads arrive.",
        {"barrier": name, "init count": facts["count"], "arrivals": facts["arrivals"]},
        both(note, scene, "the init", "the arrival that is too many"),
    )  # fmt: skip


# ------------------------------------------------------------------------------------- bytes
@words("too-few-bytes-expected", "too-many-bytes-expected", "bytes-not-expected")
def bytes_differ(note: Note, scene: Scene) -> Finding:
    """The sum of expect_tx is not the sum of the copies."""
    facts, name = note.facts, barrier_name(note, scene)
    expected, issued, copy = facts["expected"], facts["issued"], facts["copy"]
    state = {
        "barrier": name,
        "phase": facts["phase"],
        "bytes expected": expected,
        "bytes of the copies": issued,
        "difference": expected - issued,
        "copies": facts["copies"],
        "arrivals pending": facts["pending"],
    }
    places = scene.place(note.instr, "the bytes are expected") + scene.place(note.other, "the copy")
    if note.kind == "bytes-not-expected":
        line = scene.line_of(note.other) or scene.line_of(note.instr)
        return scene.finding(
            note, "bytes-not-expected", line,
            f"Nobody tells the barrier {name} to expect the {issued} bytes of the copy, so it does "
            "not wait for them: "
            "the phase ends while they are in flight, or never.",
            f"Arrive with the bytes: mbarrier.arrive.expect_tx of {issued} "
            "(cuda::device::barrier_arrive_tx(bar, 1, "
            f"{issued})).",
            state, both(note, scene, "the arrival", "the copy"),
        )  # fmt: skip
    few = note.kind == "too-few-bytes-expected"
    result = (
        "the phase ends while bytes are still in flight, or never"
        if few
        else "the rest never comes, and every wait hangs"
    )
    why = why_bytes(scene, copy, expected, issued)
    return scene.finding(
        note,
        note.kind,
        scene.line_of(note.instr),
        f"The barrier {name} expects {expected} bytes, and the copies of the phase bring {issued}: "
        + f"{result}. {why}".strip(),
        f"Expect exactly what the box brings: {issued} bytes here, also where the box hangs over "
        "the edge; or mend the "
        "map, if that is what is wrong.",
        state,
        places,
    )


def why_bytes(scene: Scene, copy: object, expected: int, issued: int) -> str:
    """What the two numbers suggest."""
    tmap = getattr(copy, "tmap", None)
    if tmap is None or not issued:
        return ""
    suspicions = [s for s in explain(tmap).suspicions if s.kind == "dtype-size"]
    if suspicions:
        return suspicions[0].says
    if expected == 2 * issued:
        return "That is twice as many."
    if 2 * expected == issued:
        return "That is half as many."
    if expected * tmap.itemsize == issued:
        return (
            "The expected number is the count of elements, not of bytes: an element has "
            f"{tmap.itemsize}."
        )
    if expected < issued and any(
        c + b > d for c, b, d in zip(copy.coords, tmap.box, tmap.dims, strict=True)
    ):
        return "The box hangs over the edge of the tensor, and counts in full all the same."
    if expected % issued == 0:
        return (
            f"That is {expected // issued} times as many: the sum of several copies, or of "
            "several threads."
        )
    return ""


@words("phase-over-early")
def phase_over_early(note: Note, scene: Scene) -> Finding:
    """A phase that did not wait for its copy."""
    name = barrier_name(note, scene)
    return scene.finding(
        note, "phase-over-early", scene.line_of(note.instr),
        f"Phase {note.facts['phase']} of the barrier {name} ends while this copy is still in "
        "flight: its bytes were "
        "taken for those of another.",
        "Expect the bytes of every copy of the phase, in the phase in which it is issued.",
        {"barrier": name}, both(note, scene, "the arrival", "the copy"),
    )  # fmt: skip
