"""`python -m lesson run` on small notebooks: what it prints, writes and says when a cell fails."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lesson import __main__ as command_line
from lesson import run_lesson
from lesson.errors import NotebookError

ROUND_TRIP = "round trip: PASS. 65536 elements, 16 tiles of 64 x 64 floats"


def write_notebook(path: Path, *sources: str) -> Path:
    cells = [new_markdown_cell("# A small lesson"), *map(new_code_cell, sources)]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)
    return path


def run(notebook: Path, *more: str) -> int:
    out = notebook.parent / "out"
    return command_line.main(["run", str(notebook), "--out", str(out), *more])


def test_a_run_prints_the_round_trip_line_and_where_the_pages_are(tmp_path, capsys):
    source = write_notebook(tmp_path / "a b" / "small.ipynb", "1", f"print('.\\n{ROUND_TRIP}')")
    assert run(source) == 0
    printed = capsys.readouterr().out.splitlines()
    out = source.parent / "out"
    assert printed == [
        ROUND_TRIP,
        f"executed notebook: {out / 'small.ipynb'}",
        f"page to read:      {out / 'small.html'}",
    ]
    cells = nbformat.read(out / "small.ipynb", as_version=4).cells
    assert cells[1].outputs[0].data["text/plain"] == "1"
    assert "lesson_started" not in cells[1].metadata
    assert ROUND_TRIP in (out / "small.html").read_text()


def test_the_kernel_imports_the_same_package_as_the_command(tmp_path, capsys):
    code = f"import lesson\nprint('round trip: PASS.', lesson.__file__)\nprint({sys.path[0]!r})"
    assert run(write_notebook(tmp_path / "small.ipynb", code)) == 0
    assert capsys.readouterr().out.split("\n")[0] == f"round trip: PASS. {command_line_package()}"


def command_line_package() -> str:
    return str(Path(command_line.__file__).parent / "__init__.py")


def test_a_failing_cell_is_named_and_what_ran_before_it_is_kept(tmp_path, capsys):
    source = write_notebook(
        tmp_path / "small.ipynb", "print('before')", "x = 1\nx / 0", "print('after')"
    )
    assert run(source) == 2
    said = capsys.readouterr().err
    assert "lesson run: Code cell 2 (x = 1) failed: ZeroDivisionError: division by zero" in said
    assert "Traceback" not in said
    cells = nbformat.read(tmp_path / "out" / "small.ipynb", as_version=4).cells
    assert cells[1].outputs[0].text == "before\n"
    assert cells[3].outputs == []


def test_a_round_trip_that_failed_fails_the_command(tmp_path, capsys):
    source = write_notebook(tmp_path / "small.ipynb", "print('round trip: FAIL at 7')")
    assert run(source) == 1
    assert capsys.readouterr().out.startswith("round trip: FAIL at 7\n")


def test_a_notebook_without_a_round_trip_is_not_taken_for_the_lesson(tmp_path, capsys):
    assert run(write_notebook(tmp_path / "small.ipynb", "print('hello')")) == 2
    assert "must print a line 'round trip: ...', got none" in capsys.readouterr().err


def test_a_cell_that_does_not_end_is_named(tmp_path, capsys):
    source = write_notebook(tmp_path / "small.ipynb", "import time\ntime.sleep(60)")
    assert run(source, "--timeout", "1") == 2
    assert "Code cell 1 (import time) must end within 1 s" in capsys.readouterr().err


def test_a_kernel_that_dies_is_named(tmp_path, capsys):
    source = write_notebook(tmp_path / "small.ipynb", "import os\nos._exit(3)")
    assert run(source) == 2
    assert "Code cell 1 (import os) ended its Python process" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content,reason",
    [
        (None, "No such file"),
        (b"", "not a notebook"),
        (b"{}", "not a notebook"),
        (b"[1]", "not a notebook"),
        (b"\xff\xfe", "not a notebook"),
        (b'{"nbformat": "x"}', "not a notebook"),
        (b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 3}', "not a notebook"),
        (b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "not a notebook"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused(tmp_path, capsys, content, reason):
    source = tmp_path / "broken.ipynb"
    if content is not None:
        source.write_bytes(content)
    assert run(source) == 2
    said = capsys.readouterr().err
    assert f"NOTEBOOK must be a Jupyter notebook, got {source}: {reason}" in said


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    source = write_notebook(tmp_path / "small.ipynb", f"print('{ROUND_TRIP}')")
    (tmp_path / "out").write_text("a file, not a folder")
    assert run(source) == 2
    assert "--out must be a folder to write to, got" in capsys.readouterr().err


def test_an_install_without_jupyter_says_which_extra_brings_it():
    with pytest.raises(NotebookError, match=r"pip install 'tma-lesson\[notebook\]'"):
        run_lesson.jupyter("no_such_module_of_jupyter")


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "ten"])
def test_a_time_limit_must_be_a_whole_number_of_seconds(text, capsys):
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["run", f"--timeout={text}"])
    assert stopped.value.code == 2
    assert f"must be a whole number of seconds above 0, got '{text}'" in capsys.readouterr().err
