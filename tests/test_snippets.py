"""Regions of a .cu file: their text and lines, and a clear answer for every way to err."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson import snippets
from lesson.errors import SnippetError

TWO = """\
int before;
// snippet: first
  int a;
    int b;
  // end snippet
int between;
\t//snippet:second-one
\tint c;
// end snippet
"""


def refusal(text: str) -> str:
    with pytest.raises(SnippetError) as caught:
        snippets.parse(text, "toy.cu")
    return str(caught.value)


def test_a_region_knows_its_text_and_its_lines():
    first, second = snippets.parse(TWO, "toy.cu").snippets
    assert (first.name, first.first_line, first.last_line) == ("first", 3, 4)
    assert first.text == "  int a;\n    int b;\n"
    assert first.lines == ("  int a;", "    int b;")
    assert first.source_name == "toy.cu"
    assert (second.name, second.first_line, second.last_line) == ("second-one", 8, 8)


def test_a_region_is_shown_at_the_left_margin_with_tabs_as_four_columns():
    first, second = snippets.parse(TWO).snippets
    assert first.dedented() == "int a;\n  int b;\n"
    assert second.dedented() == "int c;\n"
    mixed = snippets.parse("// snippet: m\n\tint a;\n    int b;\n// end snippet\n").snippets[0]
    assert mixed.dedented() == "int a;\nint b;\n"


def test_windows_line_ends_read_like_unix_ones(tmp_path: Path):
    path = tmp_path / "windows.cu"
    path.write_bytes(b"\xef\xbb\xbf" + TWO.replace("\n", "\r\n").encode())
    from_windows, from_unix = snippets.read(path), snippets.parse(TWO, "windows.cu")
    assert from_windows == from_unix
    assert from_windows.sha256 == from_unix.sha256


def test_only_a_newline_ends_a_line_as_the_compiler_has_it():
    text = "// form feed \f, line separator \u2028\n// snippet: a\nint x;\n// end snippet\n"
    assert snippets.parse(text).snippets[0].first_line == 3


def test_asking_for_a_missing_region_lists_those_there_are():
    with pytest.raises(SnippetError) as caught:
        snippets.parse(TWO, "toy.cu").snippet("third")
    assert str(caught.value) == (
        "snippet 'third' must be marked in toy.cu, got no such marker. It marks: first, "
        "second-one. Ask for one of these, or put `// snippet: third` before the region."
    )


def test_a_file_without_markers_has_no_regions():
    with pytest.raises(SnippetError, match="It marks: none"):
        snippets.parse("int x;\n").snippet("a")


def test_a_repeated_name_is_refused():
    text = "// snippet: a\nint x;\n// end snippet\n" * 2
    assert refusal(text) == (
        "snippet 'a' must be marked once, got a second marker (the first is on line 1). "
        "toy.cu, line 4. Rename one of the two."
    )


def test_a_nested_region_is_refused():
    assert refusal("// snippet: a\nint x;\n// snippet: b\n// end snippet\n") == (
        "snippets must not be nested, got 'b' inside 'a' (line 1). toy.cu, line 3. "
        "Put `// end snippet` before it."
    )


def test_an_unclosed_region_is_refused():
    assert refusal("int x;\n// snippet: a\nint y;\n") == (
        "snippet 'a' must be closed, got the end of the file first. toy.cu, line 2. "
        "Put `// end snippet` behind its last line."
    )


def test_an_end_without_a_start_is_refused():
    assert refusal("int x;\n// end snippet\n") == (
        "`// end snippet` must close a snippet, got none open. toy.cu, line 2. "
        "Put `// snippet: some-name` before the region, or take this line away."
    )


@pytest.mark.parametrize("content", ["", "\n", "   \n\t\n"])
def test_an_empty_region_is_refused(content: str):
    says = refusal(f"// snippet: a\n{content}// end snippet\n")
    assert says.startswith("snippet 'a' must hold code, got an empty region. toy.cu, lines 1 to ")


@pytest.mark.parametrize(
    "marker",
    ["// snippet:", "// Snippet: a", "// snippet: Two Words", "/// snippet: a", "// end-snippet",
     "// END SNIPPET", "// end snippet a", "// snippet : a"],
)  # fmt: skip
def test_what_nearly_is_a_marker_is_refused(marker: str):
    assert refusal(f"int x;\n{marker}\n") == (
        f"a marker must read `// snippet: some-name` or `// end snippet`, got `{marker}`. "
        "toy.cu, line 2. Write it that way, or reword the comment."
    )


def test_prose_about_markers_is_no_marker():
    text = '// quotes the regions between "// snippet: NAME" and "// end snippet"\n// snippets\n'
    assert snippets.parse(text).snippets == ()


@pytest.mark.parametrize("character, spelled", [("\r", "carriage return"), ("\0", "NUL")])
def test_characters_that_shift_lines_are_refused(character: str, spelled: str):
    says = refusal(f"int x;\nint{character}y;\n")
    assert spelled in says
    assert "toy.cu must be text" in says
    assert "Line 2." in says


def test_a_file_that_is_not_there_names_its_neighbours(tmp_path: Path):
    (tmp_path / "real.cu").write_text("int x;\n")
    with pytest.raises(SnippetError, match=r"got nothing there\. .* holds: real\.cu\."):
        snippets.read(tmp_path / "unreal.cu")
    with pytest.raises(SnippetError, match=r"holds: no \.cu file"):
        snippets.read(tmp_path / "nowhere" / "unreal.cu")


def test_a_directory_is_refused(tmp_path: Path):
    with pytest.raises(SnippetError, match=r"must be a \.cu file, got a directory\. Name a file"):
        snippets.read(tmp_path)


def test_a_path_that_no_file_can_have_is_refused():
    with pytest.raises(SnippetError, match="must be a readable file, got"):
        snippets.read("a\0b.cu")


def test_text_that_is_not_utf8_is_refused(tmp_path: Path):
    path = tmp_path / "latin.cu"
    path.write_bytes("int x;\n// caf\xe9\n".encode("latin-1"))
    with pytest.raises(SnippetError) as caught:
        snippets.read(path)
    assert str(caught.value) == (
        "latin.cu must be UTF-8 text, got byte 0xE9 at offset 13. Line 2. "
        "Save the file as UTF-8 in your editor."
    )


def test_the_lessons_kernel_has_its_three_regions():
    source = snippets.lesson_source()
    assert [each.name for each in source.snippets] == ["issue-tma", "plain-store", "encode-map"]
    for snippet in source.snippets:
        assert snippet.lines == source.lines[snippet.first_line - 1 : snippet.last_line]


codes = st.lists(st.text("ab{};/ \t", max_size=6), max_size=4)
names = st.lists(st.from_regex(r"[a-z0-9]{1,4}(-[a-z0-9]{1,3})?", fullmatch=True), unique=True)


@given(st.data(), names)
def test_every_region_comes_out_as_it_went_in(data: st.DataObject, wanted: list[str]):
    lines: list[str] = []
    expected = []
    for name in wanted:
        lines += data.draw(codes)
        content = [*data.draw(codes), "x;"]
        lines.append(f"  // snippet: {name}")
        expected.append((name, len(lines) + 1, content))
        lines += [*content, "// end snippet"]
    source = snippets.parse("\n".join(lines))
    assert [(s.name, s.first_line, list(s.lines)) for s in source.snippets] == expected


pieces = st.sampled_from(
    ["// snippet: a", "// snippet: b", "// end snippet", "\n", "\r\n", "\r", " ", "\t", "x", "//",
     "/*", "*/", '"', "'", "constexpr int a = ", "const int b{", "a", "b", "1", "+", "<<", "(", ")",
     "}", ";", ",", "0x", "9" * 90, "sizeof(float)", "\0", "\u2028", "é"]
)  # fmt: skip


@given(st.lists(pieces, max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_lesson_error(text: str):
    with contextlib.suppress(SnippetError):
        source = snippets.parse(text)
        values = dict(source.constants)
        assert all(isinstance(value, int) for value in values.values())
