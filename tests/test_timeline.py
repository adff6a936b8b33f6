"""The story of one block: what the emulator did, in order, with counts, lines and words."""

from functools import cache

import pytest

from lesson import snippets, targets, timeline
from lesson.kernel_source import TileKernel
from lesson.timeline import Moment, Timeline
from lesson.timeline_events import Kind
from lesson.timeline_words import Actor

TOO_MANY = ("issue-tma", "sizeof(tile)", "2 * sizeof(tile)")
TOO_FEW = ("issue-tma", "sizeof(tile)", "sizeof(tile) / 2")
NO_WAIT = ("kernel", "bar.wait(cuda::std::move(token));", "__syncthreads();")
NARROW = ("plain-store", "* kGmemWidth", "* kTileWidth")
IN_TILES = ("issue-tma", "{tileX, tileY}", "{blockIdx.x, blockIdx.y}")


@cache
def story(edit: tuple[str, str, str] | None = None, schedule: str = "late") -> Timeline:
    kernel = TileKernel().edit(*edit) if edit else None
    return timeline.record(kernel, schedule)


def kinds(told: Timeline) -> list[Kind]:
    return [moment.kind for moment in told.moments]


def the(told: Timeline, kind: Kind) -> Moment:
    return next(moment for moment in told.moments if moment.kind == kind)


def counts(told: Timeline) -> list[tuple[int, int, int]]:
    """Phase, missing arrivals and missing bytes, each time that one of them changes."""
    found = []
    for moment in told.moments:
        state = moment.barrier
        now = (state.phase, state.pending, state.tx_nbytes)
        if not found or found[-1] != now:
            found.append(now)
    return found


def line_of(code: str) -> int:
    lines = snippets.lesson_source().lines
    (number,) = [i for i, line in enumerate(lines, 1) if code in line]
    return number


def test_the_story_of_a_block_has_every_event_in_order():
    assert kinds(story()) == [
        Kind.INIT, Kind.FENCE, Kind.SYNC, Kind.ARRIVE, Kind.ISSUE, Kind.ARRIVE, Kind.WAIT,
        Kind.LAND, Kind.COMPLETE, Kind.FLIP, Kind.WAKE, *[Kind.WRITE] * 16, Kind.EXIT,
    ]  # fmt: skip
    assert story().ended == ""


def test_the_barrier_counts_arrivals_and_bytes_down_to_zero_and_starts_anew():
    assert counts(story()) == [
        (0, 256, 0), (0, 1, 0), (0, 0, 16384), (0, 0, 0), (1, 256, 0),
    ]  # fmt: skip


def test_a_copy_that_lands_at_once_takes_the_count_below_zero_first():
    assert counts(story(schedule="eager")) == [
        (0, 256, 0), (0, 1, 0), (0, 1, -16384), (0, 0, 0), (1, 256, 0),
    ]  # fmt: skip


def test_each_moment_names_the_line_of_the_program_that_did_it():
    told = story()
    assert the(told, Kind.INIT).line == line_of("init(&bar, blockDim.x);")
    assert the(told, Kind.FENCE).line == line_of("ptx::fence_proxy_async(ptx::space_shared);")
    assert the(told, Kind.SYNC).line == line_of("__syncthreads();")
    assert the(told, Kind.ISSUE).line == line_of("ptx::cp_async_bulk_tensor(")
    assert the(told, Kind.WAIT).line == line_of("bar.wait(")
    assert the(told, Kind.WRITE).line == line_of("out[(tileY + row)")
    assert {the(told, kind).line for kind in (Kind.LAND, Kind.COMPLETE, Kind.FLIP)} == {0}
    assert {moment.file for moment in told.moments} == {"tma_tile.cu", ""}


def test_each_moment_belongs_to_who_did_it():
    told = story()
    both = (Actor.THREAD_0, Actor.OTHERS)
    assert the(told, Kind.INIT).by == (Actor.THREAD_0,)
    assert the(told, Kind.ARRIVE).by == (Actor.OTHERS,)
    assert the(told, Kind.ISSUE).by == (Actor.THREAD_0,)
    assert the(told, Kind.SYNC).by == the(told, Kind.WAIT).by == the(told, Kind.WRITE).by == both
    assert the(told, Kind.LAND).by == the(told, Kind.COMPLETE).by == (Actor.ENGINE,)
    assert the(told, Kind.FLIP).by == (Actor.BARRIER,)


def test_the_words_say_who_and_how_many():
    told = story()
    assert the(told, Kind.INIT).says == "thread 0 sets up the barrier: a phase needs 256 arrivals"
    assert the(told, Kind.ARRIVE).says == "the other 255 threads arrive"
    assert the(told, Kind.ISSUE).says == "thread 0 issues a copy of 16384 bytes, and goes on"
    assert the(told, Kind.WAIT).says == "all 256 threads wait for the end of phase 0"
    assert the(told, Kind.FLIP).says == "both counts are zero: phase 0 is over, phase 1 begins"
    assert told.moments[5].says == "thread 0 arrives and announces 16384 bytes"


def test_the_tile_fills_at_once_and_the_output_four_rows_at_a_time():
    told = story()
    assert the(told, Kind.LAND).landed == tuple((row, 0, 64) for row in range(64))
    stores = [moment for moment in told.moments if moment.kind == Kind.WRITE]
    for step, moment in enumerate(stores):
        assert moment.stored == tuple((4 * step + row, 0, 64) for row in range(4))
        assert moment.read == moment.stored
        assert moment.astray == 0
    assert stores[-1].says == "all 256 threads store rows 60 to 63 of the tile"


def test_every_element_of_the_tile_is_stored_once():
    stored = [(row, column + i) for m in story().moments for row, column, n in m.stored
              for i in range(n)]  # fmt: skip
    assert len(stored) == len(set(stored)) == 4096


def test_a_story_of_another_block_is_the_same_story():
    told = timeline.record(block=(0, 3))
    assert [m.says for m in told.moments] == [m.says for m in story().moments]
    assert told.block == (0, 3)


def test_too_many_announced_bytes_end_in_a_hang_that_keeps_its_story():
    told = story(TOO_MANY)
    assert told.ended == "hang"
    assert kinds(told)[-3:] == [Kind.WAIT, Kind.LAND, Kind.COMPLETE]
    assert counts(told)[-1] == (0, 0, 16384)
    assert told.most_nbytes == 32768


def test_too_few_announced_bytes_end_the_phase_before_the_last_report():
    told = kinds(story(TOO_FEW))
    assert told[told.index(Kind.LAND) :][:5] == [
        Kind.LAND, Kind.COMPLETE, Kind.FLIP, Kind.COMPLETE, Kind.WAKE,
    ]  # fmt: skip
    assert counts(story(TOO_FEW))[-1] == (1, 256, -8192)


def test_without_the_wait_threads_store_before_the_bytes_land():
    told = kinds(story(NO_WAIT))
    assert Kind.WAIT not in told
    assert told.index(Kind.WRITE) < told.index(Kind.LAND)


def test_stores_that_leave_the_tile_are_counted_as_astray():
    told = story(NARROW)
    astray = sum(moment.astray for moment in told.moments)
    inside = sum(n for moment in told.moments for _, _, n in moment.stored)
    assert astray + inside == 4096
    assert astray > 2000
    assert "outside of" in the(told, Kind.WRITE).says


def test_a_fault_ends_the_story_with_its_name():
    assert story(IN_TILES).ended == "illegal instruction"


def test_an_edit_that_makes_a_snippet_longer_keeps_its_own_line_numbers():
    kernel = TileKernel().edit("plain-store", "const int column", "\n\nconst int column")
    told = timeline.record(kernel)
    assert the(told, Kind.WRITE).file == "plain-store, edited"
    assert (the(told, Kind.WRITE).file, the(told, Kind.WRITE).line) in {
        (file, line) for file, line, _ in told.listing
    }


def test_the_listing_holds_every_line_that_a_moment_names():
    told = story()
    text = {(file, line): code for file, line, code in told.listing}
    named = {(m.file, m.line) for m in told.moments if m.line}
    assert named <= set(text)
    assert "bar.wait(" in text["tma_tile.cu", the(told, Kind.WAIT).line]


def test_spans_reach_from_a_start_to_the_next_stop_or_to_the_end():
    several = [Kind.ISSUE, Kind.ISSUE, Kind.LAND, Kind.EXIT, Kind.ISSUE]
    assert timeline.spans(several, Kind.ISSUE, Kind.LAND) == [(0, 2), (1, 2), (4, 5)]


def test_the_story_costs_little(monkeypatch):
    launched = []
    real = targets.emulate

    def counting(*args: object, **more: object) -> float:
        launched.append(args)
        return real(*args, **more)

    monkeypatch.setattr(targets, "emulate", counting)
    timeline.record()
    assert len(launched) == 1


@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_every_schedule_has_a_story_that_comes_to_its_end(schedule):
    told = story(schedule=schedule)
    assert told.ended == ""
    assert kinds(told)[-1] == Kind.EXIT
    assert counts(told)[-1] == (1, 256, 0)
