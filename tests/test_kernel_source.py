"""Edits of the lesson's kernel: exactly once, or an error that says so."""

import pytest

from lesson.errors import SnippetError
from lesson.kernel_source import shipped


def test_an_edit_changes_its_region_and_nothing_else():
    edited = shipped().edit("issue-tma", "{tileX, tileY}", "{tileY, tileX}")
    before, after = shipped().text.split("\n"), edited.text.split("\n")
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert [after[i].strip() for i in changed] == [
        "const cuda::std::int32_t start[2] = {tileY, tileX};"
    ]
    assert edited.edits == ("{tileX, tileY} -> {tileY, tileX}",)
    assert shipped().edits == ()


def test_edits_add_up():
    edited = shipped().edit("issue-tma", "sizeof(tile)", "8").edit("plain-store", "1.0f", "2.0f")
    assert len(edited.edits) == 2
    assert "barrier_arrive_tx(bar, 1, 8)" in edited.text
    assert "+ 2.0f" in edited.text


def test_the_kernel_can_be_edited_outside_the_snippets_but_not_the_host():
    edited = shipped().edit("kernel", "bar.wait(cuda::std::move(token));", "__syncthreads();")
    assert "bar.wait" not in edited.text
    with pytest.raises(SnippetError, match="exactly once, got 0 times: 'cudaMalloc"):
        shipped().edit("kernel", "cudaMalloc", "x")


@pytest.mark.parametrize("old, times", [("nowhere to be seen", 0), ("token", 4), ("", 0)])
def test_text_that_does_not_stand_there_exactly_once_is_refused(old, times):
    with pytest.raises(SnippetError, match=f"'issue-tma' exactly once, got {times} times"):
        shipped().edit("issue-tma", old, "x")


def test_an_unknown_region_is_refused_with_the_regions_that_there_are():
    with pytest.raises(SnippetError, match="issue-tma"):
        shipped().edit("no-such-region", "a", "b")


def test_a_listing_carries_the_line_numbers_of_the_file():
    lines = shipped().text.split("\n")
    for listing in (
        shipped().listing("plain-store"),
        shipped().between("if (threadIdx.x == 0) {", "__syncthreads();"),
    ):
        for offset, line in enumerate(listing.lines):
            assert lines[listing.first_line - 1 + offset] == line
    assert "init(&bar, blockDim.x);" in listing.lines[1]


def test_lines_that_are_not_in_the_kernel_are_refused():
    with pytest.raises(SnippetError, match="no line with 'main\\(\\)'"):
        shipped().between("main()", "return")
    with pytest.raises(SnippetError, match="no line with 'cudaFree'"):
        shipped().between("bar.wait", "cudaFree")
