"""Notes on bulk stores as findings: fences, order, groups, reuse of the source."""

from __future__ import annotations

from lesson.check_scene import Scene
from lesson.check_words import both, byte_of, words
from lesson.emulator.ordering_notes import Note
from lesson.findings import Finding


@words("store-unfenced")
def store_unfenced(note: Note, scene: Scene) -> Finding:
    """Generic writes that the async proxy may not see."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "store-unfenced", scene.line_of(note.other) or scene.line_of(note.instr),
        f"Threads write {what} through the generic proxy and the bulk store reads it through the "
        "async proxy, with no "
        "proxy fence between: the store may send old bytes.",
        "fence.proxy.async.shared::cta (ptx::fence_proxy_async) in every writing thread behind its "
        "writes, then "
        "__syncthreads(), then the store.",
        {"bytes": what}, both(note, scene, "the write", "the bulk store"),
    )  # fmt: skip


@words("store-unsynced")
def store_unsynced(note: Note, scene: Scene) -> Finding:
    """The storing thread does not know the writers are done."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "store-unsynced", scene.line_of(note.other) or scene.line_of(note.instr),
        f"{scene.thread_name(note.lane).capitalize()} issues the bulk store of {what} without "
        "waiting for the threads that "
        "write it.",
        "fence.proxy.async in the writers, then __syncthreads(), then the store.",
        {"bytes": what}, both(note, scene, "the write", "the bulk store"),
    )  # fmt: skip


@words("store-before-phase")
def store_before_phase(note: Note, scene: Scene) -> Finding:
    """A bulk store of bytes that a load has not brought."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "store-before-phase", scene.line_of(note.instr),
        f"The bulk store reads {what}, which a copy may still be filling: its barrier was not "
        "waited for.",
        "Wait for the barrier of the load in the thread that stores.",
        {"bytes": what}, both(note, scene, "the load", "the bulk store"),
    )  # fmt: skip


@words("store-of-uninitialised")
def store_of_uninitialised(note: Note, scene: Scene) -> Finding:
    """A bulk store of nothing."""
    what = byte_of(note, scene)
    return scene.finding(
        note, "store-of-uninitialised", scene.line_of(note.instr),
        f"The bulk store reads {what}, which nothing has written.",
        "Fill the tile first, and store from where it was filled.",
        {"bytes": what}, scene.place(note.instr, "the bulk store"),
    )  # fmt: skip


@words("store-source-reused")
def store_source_reused(note: Note, scene: Scene) -> Finding:
    """The source of a store changes under it."""
    what = byte_of(note, scene)
    store, reuse = scene.line_of(note.other), scene.line_of(note.instr)
    return scene.finding(
        note, "store-source-reused", reuse if reuse >= store else store,
        f"{what} is overwritten while the bulk store may still read it: its group was not waited "
        "for, or the thread "
        "that writes does not know.",
        "cp.async.bulk.wait_group.read in the thread that stored, then __syncthreads(), before the "
        "buffer is "
        "written again.",
        {"bytes": what}, both(note, scene, "the bulk store", "the bytes are overwritten"),
    )  # fmt: skip


@words("store-not-committed")
def store_not_committed(note: Note, scene: Scene) -> Finding:
    """No bulk group."""
    wrong = scene.place(note.other, "this commits cp.async, not bulk copies")
    more = " cp.async.commit_group is another kind of group." if wrong else ""
    return scene.finding(
        note, "store-not-committed", scene.line_of(note.other) or scene.line_of(note.instr),
        "The bulk store is never committed to a bulk group, so nothing waits for it: the thread "
        "exits while the "
        f"engine may still read the block's shared memory.{more}",
        "cp.async.bulk.commit_group behind the store, then cp.async.bulk.wait_group.read 0, in the "
        "same thread.",
        {"group": note.facts["group"]}, scene.place(note.instr, "the bulk store") + wrong,
    )  # fmt: skip


@words("store-not-waited")
def store_not_waited(note: Note, scene: Scene) -> Finding:
    """No wait."""
    return scene.finding(
        note, "store-not-waited", scene.line_of(note.instr),
        "The thread exits without waiting for its bulk store, which may still read the block's "
        "shared memory.",
        "cp.async.bulk.wait_group.read 0 in the thread that stored, before it exits.",
        {"group": note.facts["group"]}, scene.place(note.instr, "the bulk store"),
    )  # fmt: skip


@words("global-read-early")
def global_read_early(note: Note, scene: Scene) -> Finding:
    """The result of a bulk store, read too early."""
    return scene.finding(
        note, "global-read-early", scene.line_of(note.instr),
        f"{scene.thread_name(note.lane).capitalize()} reads global memory that a bulk store may "
        "not "
        "have written yet: wait_group.read waits for the source only, not for the result.",
        "cp.async.bulk.wait_group 0 (without .read) in the thread that stored, then "
        "__syncthreads().",
        {}, both(note, scene, "the bulk store", "the read"),
    )  # fmt: skip


@words("global-unfenced")
def global_unfenced(note: Note, scene: Scene) -> Finding:
    """Generic writes to global memory, read by the async proxy."""
    return scene.finding(
        note, "global-unfenced", scene.line_of(note.instr),
        "The bulk load reads global memory that this block's threads wrote, with no proxy fence "
        "between.",
        "fence.proxy.async (or .global) in the writers behind their writes, then synchronise, then "
        "the load.",
        {}, scene.place(note.instr, "the bulk load"),
    )  # fmt: skip
