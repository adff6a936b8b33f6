"""Edits of the lesson's kernel: exactly once, or an error that says so."""

import pytest

from lesson import snippets
from lesson.errors import SnippetError
from lesson.kernel_source import TileKernel, between, listing

SHIPPED = TileKernel()


def changed_lines(kernel: TileKernel) -> list[str]:
    before, after = SHIPPED.source().text.split("\n"), kernel.source().text.split("\n")
    return [new.strip() for old, new in zip(before, after, strict=True) if old != new]


def test_an_edit_changes_its_region_and_nothing_else():
    edited = SHIPPED.edit("issue-tma", "{tileX, tileY}", "{tileY, tileX}")
    assert changed_lines(edited) == ["const cuda::std::int32_t start[2] = {tileY, tileX};"]
    assert edited.is_edited
    assert not SHIPPED.is_edited


def test_edits_add_up_in_one_region_and_over_several():
    edited = (
        SHIPPED.edit("issue-tma", "sizeof(tile)", "8")
        .edit("issue-tma", "bar, 1, 8", "bar, 2, 8")
        .edit("plain-store", "1.0f", "2.0f")
        .edit("kernel", "init(&bar, blockDim.x)", "init(&bar, 7)")
    )
    said = "\n".join(changed_lines(edited))
    assert "barrier_arrive_tx(bar, 2, 8)" in said
    assert "+ 2.0f" in said
    assert "init(&bar, 7)" in said
    assert len(changed_lines(edited)) == 3


def test_the_kernel_can_be_edited_outside_the_snippets_but_not_the_host():
    edited = SHIPPED.edit("kernel", "bar.wait(cuda::std::move(token));", "__syncthreads();")
    assert changed_lines(edited) == ["__syncthreads();"]
    with pytest.raises(SnippetError, match="exactly once, got 0 times: 'cudaMalloc"):
        SHIPPED.edit("kernel", "cudaMalloc", "x")


def test_a_recording_kernel_carries_the_same_edit():
    edited = SHIPPED.edit("plain-store", "* kGmemWidth", "* kTileWidth")
    assert "* kTileWidth + (tileX" in edited.recording_source().text
    assert edited.recording_source().kernel != edited.source().kernel


@pytest.mark.parametrize("old, times", [("nowhere to be seen", 0), ("token", 4), ("", 0)])
def test_text_that_does_not_stand_there_exactly_once_is_refused(old, times):
    with pytest.raises(SnippetError, match=f"'issue-tma' exactly once, got {times} times"):
        SHIPPED.edit("issue-tma", old, "x")


def test_an_unknown_region_is_refused_with_the_regions_that_there_are():
    with pytest.raises(SnippetError, match="issue-tma"):
        SHIPPED.edit("no-such-region", "a", "b")


def test_a_listing_carries_the_line_numbers_of_the_file():
    lines = snippets.lesson_source().lines
    for shown in (listing("plain-store"), between("if (threadIdx.x == 0) {", "__syncthreads();")):
        for offset, line in enumerate(shown.lines):
            assert lines[shown.first_line - 1 + offset] == line
    assert "init(&bar, blockDim.x);" in shown.lines[1]


def test_lines_that_are_not_in_the_kernel_are_refused():
    with pytest.raises(SnippetError, match="no line with 'main\\(\\)'"):
        between("main()", "return")
    with pytest.raises(SnippetError, match="no line with 'cudaFree'"):
        between("bar.wait", "cudaFree")
