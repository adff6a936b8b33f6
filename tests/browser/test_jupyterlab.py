"""JupyterLab as a person uses it: run all, look, move the slider, edit a snippet, see more."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lesson import run_lesson
from tests.browser.lab import STEP_MS, Lab, Server, jupyterlab

FRESH, COMMITTED = "lesson.ipynb", "as_committed.ipynb"
TOO_MANY = 'too_many = helpers.edit("issue-tma", "sizeof(tile)", "3 * sizeof(tile)")'
MISSPELT = 'wrong = helpers.edit("issue-tma", "bar.arrive();", "bar.arive();")'


def without_outputs() -> nbformat.NotebookNode:
    """The lesson as a copy whose every output is still to be made, in the browser."""
    found = nbformat.read(run_lesson.lesson_notebook(), 4)
    for cell in found.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return found


def prepare(folder: Path) -> nbformat.NotebookNode:
    """The two notebooks that are opened: one without outputs, and the lesson as committed."""
    work = folder / "work"
    work.mkdir()
    fresh = without_outputs()
    nbformat.write(fresh, work / FRESH)
    shutil.copy(run_lesson.lesson_notebook(), work / COMMITTED)
    return fresh


# One test, not seven: the tests of a module may be dealt out to several processes, and each would
# start a server and run the whole lesson.
@pytest.mark.slow
@pytest.mark.timeout(480)
def test_a_person_runs_the_lesson_looks_steps_edits_and_gets_a_diagnosis(
    browser, tmp_path, screenshots
):
    fresh = prepare(tmp_path)
    codes = sum(cell.cell_type == "code" for cell in fresh.cells)
    with jupyterlab(tmp_path) as server:
        lab = Lab.open(browser, server, FRESH, len(fresh.cells))
        lab.run_all(codes)
        sees_the_round_trip_and_no_error(lab)
        sees_every_picture_at_its_size(lab, fresh, screenshots)
        steps_with_keys_that_do_not_reach_the_notebook(lab, screenshots)
        edits_a_snippet_and_gets_a_diagnosis(lab, screenshots)
        misspells_and_sees_the_compilers_words(lab, screenshots)
        assert lab.errors == []
        lab.page.close()
        sees_a_still_picture_where_nothing_is_trusted(browser, server, fresh, screenshots)


def sees_the_round_trip_and_no_error(lab: Lab) -> None:
    said = "\n".join(lab.page.locator(".jp-OutputArea-output").all_text_contents())
    assert "round trip: PASS. 65536 elements, 16 tiles of 64 x 64 floats" in said
    assert "Traceback" not in said


def sees_every_picture_at_its_size(lab: Lab, fresh: Any, screenshots: Path) -> None:
    images = lab.page.locator(".jp-OutputArea-output figure img")
    images.first.scroll_into_view_if_needed(timeout=STEP_MS)
    lab.page.screenshot(path=screenshots / "lab-first-picture.png")
    drawn = lab.page.evaluate(
        "[...document.querySelectorAll('.jp-OutputArea-output figure img')]"
        ".filter(e => !e.closest('.tma-stepper')).map(e => [e.naturalWidth, e.offsetWidth])"
    )
    draws = re.compile(r"^helpers\.draw_(?!timeline)", re.MULTILINE)
    assert len(drawn) >= sum(len(draws.findall(cell.source)) for cell in fresh.cells) >= 12
    assert all(pixels > 600 and width > 300 for pixels, width in drawn)


def steps_with_keys_that_do_not_reach_the_notebook(lab: Lab, screenshots: Path) -> None:
    stepper = lab.page.locator(".tma-stepper").first
    slider = stepper.get_by_role("slider", name="Step of the timeline")
    slider.scroll_into_view_if_needed(timeout=STEP_MS)
    slider.focus()
    before = lab.active_cell()
    for _ in range(4):
        lab.page.keyboard.press("ArrowRight")
    says = stepper.locator("[aria-live=polite]")
    assert says.inner_text().startswith("Step 5 of 28: thread 0 issues a copy of 16384 bytes")
    assert "cp_async_bulk_tensor" in stepper.locator("[aria-current=step]").inner_text()
    assert "asked for, under way" in stepper.inner_text()
    lab.page.keyboard.press("ArrowDown")
    lab.page.keyboard.press("End")
    assert says.inner_text() == "Step 28 of 28: all 256 threads end."
    assert lab.active_cell() == before
    stepper.screenshot(path=screenshots / "lab-stepper.png", timeout=STEP_MS)


def edits_a_snippet_and_gets_a_diagnosis(lab: Lab, screenshots: Path) -> None:
    cell = lab.rewrite(
        'too_many = helpers.edit("issue-tma"', f"{TOO_MANY}\nhelpers.diagnose(too_many)"
    )
    output = cell.locator(".jp-OutputArea-output", has_text="49152")
    output.wait_for(timeout=STEP_MS)
    said = output.inner_text()
    assert "hang" in said
    assert "too-many-bytes-expected" in said
    assert "tma_tile.cu line 111" in said
    assert "3 * sizeof(tile)" in said
    lab.page.screenshot(path=screenshots / "lab-edited.png")


def misspells_and_sees_the_compilers_words(lab: Lab, screenshots: Path) -> None:
    cell = lab.rewrite("too_few = helpers.edit(", f"{MISSPELT}\nhelpers.run_tile_kernel(wrong)")
    output = cell.locator(".jp-OutputArea-output", has_text="arive")
    output.last.wait_for(timeout=STEP_MS)
    said = output.last.inner_text()
    assert said.startswith("CompileError: ")
    assert "tma_tile.cu" in said
    assert "targets.py" not in said
    lab.page.screenshot(path=screenshots / "lab-compile-error.png")


def sees_a_still_picture_where_nothing_is_trusted(
    browser: Any, server: Server, fresh: Any, screenshots: Path
) -> None:
    """As somebody sees it who opens the file that another person ran: scripts are taken out."""
    lab = Lab.open(browser, server, COMMITTED, len(fresh.cells))
    still = lab.page.locator(".jp-OutputArea-output img[alt^='Timeline of block']").first
    still.scroll_into_view_if_needed(timeout=STEP_MS)
    still.screenshot(path=screenshots / "lab-not-trusted.png", timeout=STEP_MS)
    assert still.evaluate("e => e.naturalWidth") > 1000
    assert lab.page.get_by_role("slider").count() == 0
    assert "box-sizing" not in (lab.page.locator(".jp-Notebook").text_content() or "")
    assert lab.errors == []
    lab.page.close()
