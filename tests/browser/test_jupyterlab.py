"""JupyterLab as a person uses it: run all, look, move the slider, edit a snippet, see more."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lesson import run_lesson
from tests.browser.lab import STEP_MS, Lab, Server, jupyterlab

FRESH, COMMITTED = "lesson.ipynb", "as_committed.ipynb"
TOO_MANY = 'too_many = helpers.edit("issue-tma", "sizeof(tile)", "3 * sizeof(tile)")'

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def notebook() -> nbformat.NotebookNode:
    """The lesson without outputs, so that what a test sees was made in the browser."""
    found = nbformat.read(run_lesson.lesson_notebook(), 4)
    for cell in found.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return found


def code_cells(notebook: nbformat.NotebookNode) -> int:
    return sum(cell.cell_type == "code" for cell in notebook.cells)


@pytest.fixture(scope="module")
def server(browser: Any, notebook: Any, tmp_path_factory: Any) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "work").mkdir()
    nbformat.write(notebook, folder / "work" / FRESH)
    shutil.copy(run_lesson.lesson_notebook(), folder / "work" / COMMITTED)
    with jupyterlab(folder) as running:
        yield running


@pytest.fixture(scope="module")
def lab(browser: Any, server: Server, notebook: nbformat.NotebookNode) -> Lab:
    """The lesson, all of its cells run."""
    opened = Lab.open(browser, server, FRESH, len(notebook.cells))
    opened.run_all(code_cells(notebook))
    return opened


@pytest.fixture
def photograph(lab: Lab, screenshots: Path) -> Any:
    return lambda name: lab.page.screenshot(path=screenshots / f"lab-{name}.png")


def test_all_cells_run_and_the_round_trip_passes(lab, photograph):
    said = "\n".join(lab.page.locator(".jp-OutputArea-output").all_text_contents())
    assert "round trip: PASS. 65536 elements, 16 tiles of 64 x 64 floats" in said
    assert "Traceback" not in said
    photograph("end")


def test_every_picture_is_seen_at_its_size(lab, notebook, photograph):
    lab.page.locator(".jp-OutputArea-output figure img").first.scroll_into_view_if_needed()
    photograph("first-picture")
    drawn = lab.page.evaluate(
        "[...document.querySelectorAll('.jp-OutputArea-output figure img')]"
        ".filter(e => !e.closest('.tma-stepper')).map(e => [e.naturalWidth, e.offsetWidth])"
    )
    calls = sum(len(re.findall(r"^helpers\.draw_(?!timeline)", c.source, re.M))
                for c in notebook.cells)  # fmt: skip
    assert len(drawn) == calls >= 12
    assert all(pixels > 600 and width > 300 for pixels, width in drawn)


def test_the_slider_steps_through_the_block_and_no_key_reaches_the_notebook(lab, photograph):
    stepper = lab.page.locator(".tma-stepper").first
    slider = stepper.get_by_role("slider", name="Step of the timeline")
    slider.scroll_into_view_if_needed()
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
    photograph("stepper")


def test_an_edited_snippet_is_compiled_and_diagnosed(lab, photograph):
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
    photograph("edited")


def test_an_edit_that_does_not_compile_shows_the_compilers_words(lab, photograph):
    broken = 'wrong = helpers.edit("issue-tma", "bar.arrive();", "bar.arive();")'
    cell = lab.rewrite("too_few = helpers.edit(", f"{broken}\nhelpers.run_tile_kernel(wrong)")
    output = cell.locator(".jp-OutputArea-output", has_text="arive")
    output.last.wait_for(timeout=STEP_MS)
    said = output.last.inner_text()
    assert said.startswith("CompileError: ")
    assert "tma_tile.cu" in said
    assert "targets.py" not in said
    photograph("compile-error")


def test_the_console_has_no_complaint(lab):
    assert lab.errors == []


def test_as_committed_and_not_trusted_the_still_timeline_stands_in(
    browser, server, notebook, screenshots
):
    opened = Lab.open(browser, server, COMMITTED, len(notebook.cells))
    still = opened.page.locator(".jp-OutputArea-output img[alt^='Timeline of block']").first
    still.scroll_into_view_if_needed(timeout=STEP_MS)
    still.screenshot(path=screenshots / "lab-not-trusted.png", timeout=STEP_MS)
    assert still.evaluate("e => e.naturalWidth") > 1000
    assert opened.page.get_by_role("slider").count() == 0
    assert "box-sizing" not in opened.page.locator(".jp-Notebook").inner_text()
    assert opened.errors == []
    opened.page.close()
