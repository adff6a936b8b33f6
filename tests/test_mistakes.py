"""A broken kernel before its judges: the recorded ones, the finding, and the card."""

import json

import pytest

from lesson import helpers, mistakes
from lesson.errors import LessonError
from lesson.findings import Outcome
from tests.extract_mistakes import SHOWN, SOURCE, extract

EDITS = {
    "expect-tx-too-large": ("issue-tma", "sizeof(tile)", "2 * sizeof(tile)"),
    "expect-tx-too-small": ("issue-tma", "sizeof(tile)", "sizeof(tile) / 2"),
    "no-wait": ("kernel", "bar.wait(cuda::std::move(token));", "__syncthreads();"),
    "no-proxy-fence": ("kernel", "ptx::fence_proxy_async(ptx::space_shared);", ""),
    "store-wrong-row-stride": ("plain-store", "* kGmemWidth", "* kTileWidth"),
    "every-thread-issues": ("issue-tma", "if (threadIdx.x == 0) {", "if (true) {"),
    "expect-tx-none": (
        "issue-tma", "cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile))", "bar.arrive()",
    ),
    "wait-wrong-parity": (
        "kernel", "bar.wait(cuda::std::move(token));",
        "while (!ptx::mbarrier_try_wait_parity(cuda::device::barrier_native_handle(bar), 1)) {}",
    ),
    "no-sync-after-init": ("kernel", "__syncthreads();", ""),
    "map-not-grid-constant": (
        "kernel", "const __grid_constant__ CUtensorMap tileMap", "CUtensorMap tileMap",
    ),
}  # fmt: skip
# What the card names, and a piece of the line that it quotes.
NAMED = {
    "expect-tx-too-large": ("too-many-bytes-expected", "2 * sizeof(tile)"),
    "expect-tx-too-small": ("too-few-bytes-expected", "sizeof(tile) / 2"),
    "no-wait": ("read-before-wait", "= tile[row][column] + 1.0f"),
    "no-proxy-fence": ("barrier-not-published", "init(&bar, blockDim.x)"),
    "store-wrong-row-stride": ("written-by-several-blocks", "* kTileWidth"),
    "every-thread-issues": ("every-thread-issues", "cp_async_bulk_tensor"),
    "expect-tx-none": ("bytes-not-expected", "token = bar.arrive();"),
    "wait-wrong-parity": ("wait-wrong-parity", "try_wait_parity"),
    "no-sync-after-init": ("barrier-init-unsynced", "init(&bar, blockDim.x)"),
    "map-not-grid-constant": ("map-not-grid-constant", "loadTileTma(CUtensorMap tileMap,"),
}


def card(like):
    return helpers.diagnose(helpers.edit(*EDITS[like]), like=like)


def test_what_the_package_shows_is_what_was_recorded():
    """Fails after new recordings: run `python -m tests.extract_mistakes`."""
    assert json.loads(mistakes.PATH.read_text(encoding="utf-8")) == extract()


def test_the_recordings_say_where_they_come_from():
    data = json.loads(mistakes.PATH.read_text(encoding="utf-8"))
    assert SOURCE.as_posix().endswith(data["source"].split(",")[0])
    assert (data["gpu"], data["sanitizer"].split()[:2]) == (
        "NVIDIA H200",
        ["Version", "2025.3.1.0"],
    )


@pytest.mark.parametrize("like", EDITS)
def test_each_mistake_is_named_at_its_line_on_the_lessons_own_kernel(like):
    finding = next(row.finding for row in card(like).rows if row.name == "this lesson")
    kind, piece = NAMED[like]
    assert finding.kind == kind
    assert piece in finding.source


def test_a_wrong_map_is_named_by_its_type():
    shown = helpers.diagnose(
        tensor_map=helpers.tensor_map(dtype="FLOAT16"), like="dtype-float16"
    ).rows[-1]
    assert "An element of the map is FLOAT16, 2 bytes where the array has 4" in shown.finding.says


def test_the_card_puts_the_finding_beside_the_chip_and_its_tools():
    rows = {row.name: row.says for row in card("no-sync-after-init").rows}
    assert rows == {
        "the bits here": "unspecified launch failure",
        "an H200": "unspecified launch failure",
        "compute-sanitizer": 'memcheck: "Unknown Error"; synccheck: "Barrier error detected.'
        ' Missing init"; the others: nothing',
        "this lesson": "barrier-init-unsynced, tma_tile.cu line 93",
    }


def test_right_bits_of_a_broken_kernel_are_luck():
    rows = {row.name: row.says for row in card("no-proxy-fence").rows}
    assert rows["the bits here"] == "all bits right"
    assert rows["an H200"] == "all bits right, by luck"
    assert rows["compute-sanitizer"] == "all 4 tools: nothing"


def test_the_lessons_own_kernel_has_no_finding():
    shown = helpers.diagnose()
    assert shown.is_good
    assert str(shown) == (
        "What each judge says:\n  the bits here  all bits right\n  this lesson    nothing found"
    )


def test_a_recording_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(LessonError, match=r"like must be one of expect-tx-too-large, .*'no-such'"):
        helpers.diagnose(like="no-such")


def test_answers_of_the_schedules_are_told_together_where_they_agree():
    assert mistakes.bits([Outcome("eager", "ok"), Outcome("late", "ok")], 8) == "all bits right"
    assert mistakes.bits(
        [Outcome("eager", "wrong", "", 3), Outcome("late", "wrong", "", 5)], 8
    ) == ("3 to 5 of 8 elements wrong, no error")
    assert mistakes.bits([Outcome("eager", "hang"), Outcome("late", "ok")], 8) == (
        "hang (copies land at once); all bits right (copies land as late as they can)"
    )


def test_the_table_knows_what_was_found_in_this_session(monkeypatch):
    monkeypatch.setattr(mistakes, "_tried", {})
    before = helpers.who_noticed().scores
    assert [score.lesson for score in before] == ["not tried yet"] * len(SHOWN)
    card("no-wait")
    after = {score.mistake: score.lesson for score in helpers.who_noticed().scores}
    assert after["nobody waits for the copy"] == "read-before-wait"
    assert list(after.values()).count("not tried yet") == len(SHOWN) - 1
