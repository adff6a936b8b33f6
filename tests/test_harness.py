"""Composed kernels: edits land where they should, and every line keeps its number."""

from __future__ import annotations

import numpy as np
import pytest

from lesson import harness, snippets
from lesson.compile import to_ptx
from lesson.errors import CompileError, SnippetError
from tests.test_compile import lines_of, needs_nvrtc

SOURCE = snippets.lesson_source()
STORE = SOURCE.snippet("plain-store")


def test_without_edits_the_source_is_the_file():
    kernel = harness.kernel_source()
    assert kernel.text == SOURCE.text
    assert (kernel.name, kernel.kernel) == ("tma_tile.cu", "loadTileTma")
    assert kernel.lines["tma_tile.cu", STORE.first_line] == STORE.lines[0]


def test_an_edited_snippet_of_as_many_lines_leaves_every_other_line_alone():
    edited = STORE.text.replace("+ 1.0f", "+ 2.0f")
    kernel = harness.kernel_source({"plain-store": edited})
    before, after = SOURCE.text.split("\n"), kernel.text.split("\n")
    assert len(before) == len(after)
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b]
    assert len(changed) == 1
    assert STORE.first_line <= changed[0] <= STORE.last_line


@pytest.mark.parametrize("edited", ["", "    int gone;", "    int a;\r\n    int b;\r\n"])
def test_lines_behind_a_shorter_edit_keep_their_numbers(edited: str):
    kernel = harness.kernel_source({"plain-store": edited})
    for number in range(STORE.last_line + 1, len(SOURCE.lines) + 1):
        assert kernel.lines["tma_tile.cu", number] == SOURCE.lines[number - 1]


def test_a_longer_edit_counts_its_own_lines_and_the_rest_keeps_its_numbers():
    kernel = harness.kernel_source({"plain-store": "int a;\n" * 20})
    assert kernel.lines["plain-store, edited", 20] == "int a;"
    for number in (*range(1, STORE.first_line), *range(STORE.last_line + 1, 140)):
        assert kernel.lines["tma_tile.cu", number] == SOURCE.lines[number - 1]


def test_two_snippets_may_be_edited_at_once():
    kernel = harness.kernel_source({"plain-store": "int a;", "issue-tma": "int b;\n" * 30})
    assert kernel.lines["tma_tile.cu", STORE.first_line] == "int a;"
    assert kernel.lines["issue-tma, edited", 30] == "int b;"
    assert kernel.lines["tma_tile.cu", STORE.first_line - 2] == SOURCE.lines[STORE.first_line - 3]


def test_an_unknown_snippet_and_markers_in_an_edit_are_refused():
    with pytest.raises(SnippetError, match="It marks: issue-tma, plain-store, encode-map"):
        harness.kernel_source({"plain-stores": "int a;"})
    with pytest.raises(SnippetError, match="must hold no markers, got one for 'b'"):
        harness.kernel_source({"plain-store": "// snippet: b\nint a;\n// end snippet\n"})


def test_text_outside_the_snippets_is_replaced_where_it_stands_once():
    kernel = harness.kernel_source(replace={"init(&bar, blockDim.x)": "init(&bar, 1)"})
    assert "init(&bar, 1);  // a phase" in kernel.text
    with pytest.raises(SnippetError) as caught:
        harness.kernel_source(replace={"tile": "pile"})
    assert str(caught.value) == (
        "the text to replace must stand once in tma_tile.cu before its host half, got it "
        f"{SOURCE.text.split('#define CUDA_CHECK')[0].count('tile')} times: 'tile'. "
        "Pass a longer piece of the line."
    )
    with pytest.raises(SnippetError, match="got it 0 times: ''"):
        harness.kernel_source(replace={"": "x"})


def test_the_host_program_is_never_edited_by_accident():
    kernel = harness.kernel_source(replace={"+ 1.0f": "+ 2.0f"})
    assert "const float want = in[i] + 1.0f;" in kernel.text


def test_a_replacement_of_another_length_is_refused():
    with pytest.raises(SnippetError, match=r"as many lines as what it replaces \(1\), got 2"):
        harness.kernel_source(replace={"__syncthreads();": "__syncthreads();\n"})


def test_a_new_write_record_says_that_nobody_wrote():
    record = harness.new_write_record(5)
    assert record.writer_blocks.tolist() == [harness.NOBODY] * 5
    assert record.writer_threads.tolist() == [harness.NOBODY] * 5
    assert record.write_counts.tolist() == [0] * 5
    assert record.write_counts.dtype == np.uint32


def test_the_recording_kernel_holds_the_snippets_unchanged():
    recording = harness.recording_source()
    assert STORE.text in recording.text
    assert SOURCE.snippet("issue-tma").text in recording.text
    for number in range(STORE.first_line, STORE.last_line + 1):
        assert recording.lines["tma_tile.cu", number] == SOURCE.lines[number - 1]


def test_only_a_kernel_with_out_as_its_last_parameter_can_record():
    with pytest.raises(SnippetError) as caught:
        harness.recording_text("__global__ void k(float* result) { }", "cell 3", "k")
    assert str(caught.value) == (
        "kernel 'k' must be defined once with `float* out` as its last parameter, got 0 such "
        "definitions. cell 3. Name the output `out` and put it last."
    )


@needs_nvrtc
def test_the_recording_kernel_compiles_and_its_stores_keep_the_snippets_line():
    recording = harness.recording_source()
    ptx = to_ptx(recording.text, name=recording.name)
    assert ptx.kernels == ("recordTileWrites",)
    assert ptx.log == ""
    store_line = 1 + SOURCE.text[: SOURCE.text.index("out[(tileY + row)")].count("\n")
    assert f"inlined_at 1 {store_line} " in ptx.text
    assert lines_of(ptx.text, "record_writes.cuh")


@needs_nvrtc
@pytest.mark.parametrize(
    "statement",
    ["out[i] = 1.0f", "out[i] += 1.0f", "*(out + i) = 1.0f", "out[i] = out[0]",
     "const float before = out[i]; out[i] = before"],
)  # fmt: skip
def test_an_out_that_records_takes_what_a_pointer_takes(statement: str):
    text = (
        'extern "C" __global__ void k(int n, float* __restrict__ out)\n'
        f"{{ const size_t i = threadIdx.x; if (i < n) {{ {statement}; }} }}\n"
    )
    recording = harness.recording_text(text, "cell 3", "k", first_line=10)
    ptx = to_ptx(recording, name="cell 3")
    assert ptx.kernels == ("recordTileWrites",)
    assert ptx.text.count("atom.global.add.u32") + ptx.text.count("red.global.add.u32") == 1
    assert "inlined_at" in ptx.text


@needs_nvrtc
def test_an_error_behind_edits_names_the_line_that_a_reader_sees():
    kernel = harness.kernel_source(
        {"issue-tma": SOURCE.snippet("issue-tma").text + "\n\n    nonsense;\n"},
        {"bar.wait(cuda::std::move(token));": "bar.wait(oops);"},
    )
    with pytest.raises(CompileError) as caught:
        to_ptx(kernel.text, name=kernel.name)
    own = len(SOURCE.snippet("issue-tma").lines) + 3
    wait = 1 + SOURCE.text[: SOURCE.text.index("bar.wait(")].count("\n")
    found = {(each.file, each.line): each.source_line for each in caught.value.errors}
    assert found["issue-tma, edited", own] == "    nonsense;"
    assert found["tma_tile.cu", wait] == "    bar.wait(oops);"
