"""`%%cuda` in IPython: a cell of CUDA C++ is checked, and its lines are those of the notebook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from lesson import diagnosis_magic, helpers
from lesson.errors import LaunchError, LessonError
from lesson.findings import Report

FOLDER = Path(__file__).parent / "mistakes"
BROKEN = (FOLDER / "no-copy.cu").read_text(encoding="utf-8")
MENDED = (FOLDER / "ok-for-no-copy.cu").read_text(encoding="utf-8")


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    """An IPython in which the notebook's door has enabled the magic."""
    made = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: made)
    helpers.enable_cuda_cells()
    return made


def lines_of(text: str, pattern: str) -> list[int]:
    """The lines of a cell, counted from 1 behind the magic's own, that hold a pattern."""
    found = enumerate(text.splitlines(), 2)
    return [number for number, line in found if re.search(pattern, line)]


def test_a_cell_that_describes_its_launch_is_checked_and_its_mistake_named(
    shell: InteractiveShell,
) -> None:
    report = shell.run_cell_magic("cuda", "", BROKEN)
    assert isinstance(report, Report)
    assert [finding.kind for finding in report.findings] == ["no-copy-issued"]


def test_the_line_of_a_finding_is_the_one_that_the_notebook_shows(shell: InteractiveShell) -> None:
    (finding,) = shell.run_cell_magic("cuda", "", BROKEN).findings
    assert finding.line in lines_of(BROKEN, r"^ +expect\(&bar, sizeof")
    assert finding.places[0].source == BROKEN.splitlines()[finding.line - 2].strip()


def test_a_correct_cell_has_no_finding_and_shows_a_card(shell: InteractiveShell) -> None:
    report = shell.run_cell_magic("cuda", "", MENDED)
    assert report.findings == ()
    assert "<" in report._repr_html_()


def test_the_options_of_the_magic_win_over_the_head_of_the_cell(shell: InteractiveShell) -> None:
    report = shell.run_cell_magic("cuda", "--grid 1025,65536 --block 256", MENDED)
    assert [finding.kind for finding in report.findings] == ["launch-refused"]


@pytest.mark.parametrize("options", ["--gird 4", "--grid four", "--block"])
def test_an_option_that_is_none_is_refused_in_words(shell: InteractiveShell, options: str) -> None:
    with pytest.raises(LaunchError, match="an option of %%cuda must be a known one, got: "):
        shell.run_cell_magic("cuda", options, MENDED)


def test_outside_of_a_notebook_the_magic_says_where_it_belongs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    with pytest.raises(LessonError, match="must be enabled in a notebook, got plain Python"):
        diagnosis_magic.enable()
