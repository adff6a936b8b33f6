"""The page of slides as text: nothing from elsewhere, notes unfolded, licence at hand."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from lesson import __main__ as command_line
from lesson import run_lesson, slides

ROOT = Path(__file__).resolve().parent.parent
NOTES = re.compile(
    r"<details><summary>Notes for the speaker</summary>\n\n(.*?)\n\n</details>", re.S
)


@cache
def cells() -> list[dict]:
    path = ROOT / "notebooks" / "day76_tma_tile.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def text(cell: dict) -> str:
    return "".join(cell["source"])


def slide_cell(source: str, kind: str) -> dict:
    return new_markdown_cell(source, metadata={"slideshow": {"slide_type": kind}})


def test_the_command_writes_one_page_and_says_how_to_present_it(tmp_path, capsys):
    assert command_line.main(["slides", "--out", str(tmp_path / "a b")]) == 0
    said = capsys.readouterr().out
    page = tmp_path / "a b" / "day76_tma_tile.slides.html"
    assert said.startswith(f"slides: {page}\n")
    assert [file.name for file in page.parent.iterdir()] == [page.name]
    html = re.sub(
        r"(<script>).*?</script>", r"\1", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert "round trip: PASS" in html
    loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"([^\"]{0,40})", html)
    assert [place for place in loaded if not place.startswith("data:")] == []
    assert "@import" not in html
    assert re.findall(r"url\(\s*['\"]?(?!data:|#)(\w+:)", html) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "out").write_text("a file, not a folder")
    assert command_line.main(["slides", "--out", str(tmp_path / "out")]) == 2
    assert "--out must be a folder to write to, got" in capsys.readouterr().err


def test_notes_are_folded_in_the_notebook_and_open_for_the_speaker():
    note = "<details><summary>Notes for the speaker</summary>\n\nAsk *first*.\n\n</details>"
    html = slides.render(
        new_notebook(cells=[slide_cell("# One", "slide"), slide_cell(note, "notes")]), "slides"
    )
    notes = re.search(r'<aside class="notes">(.*?)</aside>', html, re.DOTALL)[1]
    assert "<p>Ask <em>first</em>.</p>" in notes
    assert "details" not in notes


def test_each_section_has_one_note_that_gives_the_minutes_of_the_contents():
    prose = "\n".join(text(cell) for cell in cells() if cell["cell_type"] == "markdown")
    minutes = re.findall(r"\[(\d+)\. [^\]]+\]\([^)]+\) \| (\d+)( each)? \|", prose)
    found = []
    for cell, after in zip(cells(), cells()[1:], strict=False):
        if heading := re.match(r"## (\d+)\. ", text(cell)):
            note = NOTES.fullmatch(text(after))
            assert note, text(cell).split("\n")[0]
            assert after["metadata"]["slideshow"]["slide_type"] == "notes"
            found.append((heading[1], *re.match(r"(\d+) minutes?( each)?", note[1]).groups("")))
    assert found == minutes


def test_a_cell_without_a_slide_type_is_named():
    with pytest.raises(slides.NotebookError, match="without slide_type: '# Lost'"):
        slides.render(new_notebook(cells=[new_markdown_cell("# Lost\nand found")]), "slides")


def test_what_is_not_ours_stands_in_one_folder_with_its_licence():
    folder = run_lesson.PACKAGE / slides.TEMPLATE / "static" / "reveal"
    assert {file.name for file in folder.iterdir()} == {
        "LICENSE", "README.md", "notes.js", "reveal.css", "reveal.js",
    }  # fmt: skip
    assert "Permission is hereby granted, free of charge" in (folder / "LICENSE").read_text()
    assert "reveal.js 6.0.2, unchanged" in (folder / "README.md").read_text()
    assert sum(file.stat().st_size for file in folder.iterdir()) < 300_000
