"""Notes on where copies land, on maps and on lifetimes as findings."""

from __future__ import annotations

from lesson.check_scene import Scene, plain_name
from lesson.check_words import both, words
from lesson.check_words_barriers import barrier_name
from lesson.emulator.ordering_notes import Note
from lesson.findings import Finding, Place


# ------------------------------------------------------------------------------ maps and places
@words("map-pointer-unfenced")
def map_pointer_unfenced(note: Note, scene: Scene) -> Finding:
    """A map read from global memory."""
    return scene.finding(
        note, "map-pointer-unfenced", scene.line_of(note.instr),
        "The tensor map is read from global memory, and no thread of the block has fenced it: the "
        "engine may use an "
        "old copy from its cache.",
        "fence.proxy.tensormap::generic.acquire.gpu [map], 128 before the first copy "
        "(ptx::fence_proxy_tensormap_generic); or pass the map as const __grid_constant__ "
        "CUtensorMap.",
        {}, scene.place(note.instr, "the copy that uses the map"),
    )  # fmt: skip


@words("copy-overruns-array")
def copy_overruns_array(note: Note, scene: Scene) -> Finding:
    """The box is larger than the array."""
    facts = note.facts
    behind = ", ".join(plain_name(name) for name in facts["behind"])
    onto = f" and runs onto {behind}" if behind else ""
    if facts["leaves"]:
        onto += " and out of the shared memory of the block"
    return scene.finding(
        note, "copy-overruns-array", scene.line_of(note.instr),
        f"The copy brings {facts['nbytes']} bytes into {plain_name(facts['name'])}, which has room "
        f"for {facts['room']}"
        f"{onto}.",
        _box_cure(facts["copy"], scene),
        {"bytes of the copy": facts["nbytes"], "room": facts["room"]},
        scene.place(note.instr, "the copy") + _map_place(scene),
    )  # fmt: skip


def _map_place(scene: Scene) -> tuple:
    line = scene.head_line("map")
    return (Place(line, "the map", scene.text_at(line)),) if line else ()


def _box_cure(copy: object, scene: Scene) -> str:
    tmap = getattr(copy, "tmap", None)
    box = f" (its box is {' x '.join(map(str, tmap.box))} of {tmap.itemsize} bytes)" if tmap else ""
    return f"Make the array as large as the box of the map{box}, or the box as small as the array."


@words("misaligned-by-chance")
def misaligned_by_chance(note: Note, scene: Scene) -> Finding:
    """An array that only happens to be aligned."""
    facts, name = note.facts, plain_name(note.facts["name"])
    line = scene.find_line(rf"__shared__.*\b{name}\b") or scene.line_of(note.instr)
    return scene.finding(
        note, "misaligned-shared", line,
        f"The shared memory address of a copy must be a multiple of {facts['unit']} bytes, and "
        f"{name} is declared for {facts['align']}: that it lies at such an address is chance, and "
        "ends with the next variable in front of it.",
        f"Declare it with alignas({facts['unit']}).",
        {"aligned to": facts["align"], "must be multiple of": facts["unit"]},
        scene.place(note.instr, "the copy"),
    )  # fmt: skip


@words("copy-over-barrier")
def copy_over_barrier(note: Note, scene: Scene) -> Finding:
    """The copy destroys a barrier."""
    copy = note.facts["copy"]
    what = scene.at(note.facts["byte"])
    return scene.finding(
        note, "copy-overruns-barrier", scene.line_of(note.instr),
        f"The copy of {copy.nbytes} bytes runs over the barrier at {what}, "
        f"{note.facts['byte'] - copy.smem_start} bytes "
        "behind its start: what the barrier then holds is data, and waits on it hang or pass by "
        "chance.",
        _box_cure(copy, scene),
        {"bytes of the copy": copy.nbytes, "barrier": what},
        both(note, scene, "the barrier is initialised", "the copy") + _map_place(scene),
    )  # fmt: skip


# -------------------------------------------------------------------------------------- lifetimes
@words("copy-never-waited")
def copy_never_waited(note: Note, scene: Scene) -> Finding:
    """The block ends under a copy."""
    name = barrier_name(note, scene)
    return scene.finding(
        note, "copy-never-waited", scene.line_of(note.instr),
        f"The block exits without having waited for {name}: the copy may still write its shared "
        "memory, which by then "
        "may be another block's.",
        f"Wait for {name} before the block ends, or do not issue the copy.",
        {"barrier": name}, scene.place(note.instr, "the copy"),
    )  # fmt: skip


@words("remote-before-start")
def remote_before_start(note: Note, scene: Scene) -> Finding:
    """A peer's memory before the peer."""
    return scene.finding(
        note, "remote-before-start", scene.line_of(note.instr),
        "The shared memory of another block of the cluster is used before that block is known to "
        "run.",
        "barrier.cluster.arrive and wait (cluster.sync()) before the first use.",
        {}, scene.place(note.instr, "the use"),
    )  # fmt: skip


@words("block-exits-early")
def block_exits_early(note: Note, scene: Scene) -> Finding:
    """A block leaves while its memory is in use."""
    return scene.finding(
        note, "block-exits-early", scene.line_of(note.instr),
        "A block exits while another block of its cluster may still use its shared memory here.",
        "barrier.cluster.arrive and wait (cluster.sync()) as the last step of every block.",
        {}, scene.place(note.instr, "the use by another block"),
    )  # fmt: skip


@words("written-by-several-blocks")
def several_blocks(note: Note, scene: Scene) -> Finding:
    """Two blocks, one element."""
    facts = note.facts
    element = facts["byte"] // 4
    return scene.finding(
        note, "written-by-several-blocks", scene.line_of(note.instr),
        f"Blocks {facts['other_block']} and {note.block} both write element {element} of "
        f"{scene.named(facts['array']) or 'an array'}"
        + (", with different values" if facts["how"] == "differ" else "")
        + ": which one stays is chance.",
        "Check the index of the write: row * (width of the matrix) + column, with rows and columns "
        "of this block's tile "
        "only, and guard the edge.",
        {"element": element}, scene.place(note.instr, "the write"),
    )  # fmt: skip
