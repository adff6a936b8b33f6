"""What the notebook says of broken kernels, and the story of a barrier."""

import pytest

from lesson import barrier_story, outcome, snippets
from lesson.kernel_source import TileKernel

WAIT = "bar.wait(cuda::std::move(token));"


def line_of(text: str) -> str:
    lines = snippets.lesson_source().lines
    return f"line {1 + next(i for i, line in enumerate(lines) if text in line)}"


def words(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def outcome_of(region: str, old: str, new: str, schedule: str = "eager") -> str:
    return outcome.of(TileKernel().edit(region, old, new), schedule)


def test_too_many_announced_bytes_hang_and_the_missing_bytes_are_named():
    said = outcome_of("issue-tma", "sizeof(tile)", "2 * sizeof(tile)")
    assert said.startswith("If copies land at once:\n    hang. 4096 threads wait, the first at ")
    assert f"tma_tile.cu {line_of(WAIT)}. The barrier of the" in words(said)
    assert words(said).endswith("first block still waits for 0 arrivals and 16384 bytes.")


def test_a_missing_arrival_hangs_and_is_named():
    said = outcome_of("kernel", "init(&bar, blockDim.x)", "init(&bar, blockDim.x + 1)")
    assert words(said).endswith("still waits for 1 arrivals and 0 bytes.")


def test_without_the_wait_the_schedule_decides():
    assert outcome_of("kernel", WAIT, "__syncthreads();") == (
        "If copies land at once:\n    all bits are right."
    )
    late = outcome_of("kernel", WAIT, "__syncthreads();", "late")
    assert late.startswith("If copies land as late as they can:\n    65")
    assert late.endswith("of 65536 elements are wrong.")


def test_a_start_off_the_16_bytes_is_the_illegal_instruction_of_the_chip_with_its_line():
    said = outcome_of("issue-tma", "{tileX, tileY}", "{tileX / kTileWidth, tileY}")
    assert said.startswith("If copies land at once:\n    illegal instruction: the innermost start")
    assert "PTX line" not in said
    assert max(len(line) for line in said.split("\n")) <= 92
    assert f"tma_tile.cu {line_of('cp_async_bulk_tensor(')}, block (1, 0, 0)," in words(said)


@pytest.fixture(scope="module")
def steps() -> list[barrier_story.BarrierStep]:
    return barrier_story.record()


def test_the_story_of_a_barrier_has_256_arrivals_and_16384_bytes(steps):
    assert (steps[0].pending, steps[0].nbytes) == (256, 0)
    assert any("announces 16384 bytes" in step.event for step in steps)
    assert (steps[-2].pending, steps[-2].nbytes, steps[-2].phase) == (0, 16384, 0)
    assert (steps[-1].pending, steps[-1].nbytes, steps[-1].phase) == (256, 0, 1)
    assert steps[-1].event == "the tile has landed"
