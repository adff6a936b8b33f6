"""The stepper in an exported page: no kernel behind it, several on a page, keys, and no scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lesson import stepper, timeline
from lesson.kernel_source import TileKernel

TOO_FEW = ("issue-tma", "sizeof(tile)", "sizeof(tile) / 2")
DARK = "<body style='background: #111; color: #eee'>"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with two steppers: the kernel of the day, and one that expects too few bytes."""
    right = stepper.of(timeline.record()).html()
    wrong = stepper.of(timeline.record(TileKernel().edit(*TOO_FEW))).html()
    path = tmp_path_factory.mktemp("page") / "steppers.html"
    head = "<!doctype html><html lang='en'><meta charset='utf-8'><title>Steppers</title>"
    path.write_text(f"{head}{DARK}{right}{wrong}", encoding="utf-8")
    return path


class Page:
    """An open page, what its console said and what it asked the network for."""

    def __init__(self, context: Any, path: Path) -> None:
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page = context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.goto(path.as_uri())

    def stepper(self, number: int) -> Any:
        return self.page.locator(".tma-stepper").nth(number)

    def slider(self, number: int) -> Any:
        return self.stepper(number).get_by_role("slider")

    def says(self, number: int) -> str:
        return self.stepper(number).locator("[aria-live=polite]").inner_text()


@pytest.fixture
def opened(browser: Any, page_file: Path) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    yield Page(context, page_file)
    context.close()


def go(opened: Page, number: int, step: int) -> None:
    opened.slider(number).fill(str(step - 1))


def test_each_stepper_of_a_page_moves_alone(opened):
    go(opened, 1, 9)
    assert opened.says(0).startswith("Step 1 of 28: thread 0 sets up the barrier")
    assert opened.says(1).startswith("Step 9 of 29: the engine reports 8192 bytes")


def test_the_page_asks_for_nothing_and_complains_of_nothing(opened):
    for step in range(1, 29):
        go(opened, 0, step)
    assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []
    assert opened.complaints == []


def test_the_tile_fills_when_the_bytes_land_and_the_output_with_the_stores(opened):
    def filled() -> list[str]:
        return [text for text in opened.stepper(0).locator("p").all_inner_texts()
                if "elements" in text or "under way" in text]  # fmt: skip

    go(opened, 0, 1)
    assert filled() == ["0 of 4096 elements", "0 of 4096 elements"]
    go(opened, 0, 7)
    assert filled() == ["asked for, under way", "0 of 4096 elements"]
    go(opened, 0, 8)
    assert filled() == ["4096 of 4096 elements", "0 of 4096 elements"]
    go(opened, 0, 13)
    assert filled() == ["4096 of 4096 elements", "512 of 4096 elements"]


def test_the_barrier_counts_and_a_count_below_zero_is_shown(opened):
    def counts(number: int) -> list[str]:
        return opened.stepper(number).locator("b").all_inner_texts()

    go(opened, 0, 6)
    assert counts(0) == ["0", "0", "16384"]
    go(opened, 0, 10)
    assert counts(0) == ["1", "256", "0"]
    go(opened, 1, 29)
    assert counts(1) == ["1", "256", "-8192"]


def test_the_line_at_work_is_marked_and_where_no_thread_works_words_say_so(opened):
    code = opened.stepper(0).locator("pre")
    go(opened, 0, 7)
    assert "bar.wait(" in code.locator("[aria-current=step]").inner_text()
    go(opened, 0, 8)
    assert code.locator("[aria-current=step]").count() == 0
    assert "The engine does this, not a thread" in code.inner_text()


def test_keys_and_buttons_move_one_step(opened):
    opened.slider(0).focus()
    opened.page.keyboard.press("ArrowRight")
    assert opened.says(0).startswith("Step 2 of 28")
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.press("Enter")  # Next
    assert opened.says(0).startswith("Step 3 of 28")
    opened.stepper(0).get_by_role("button", name="Back").click()
    assert opened.says(0).startswith("Step 2 of 28")


def test_a_screen_reader_hears_the_step_at_the_slider(opened):
    go(opened, 0, 5)
    heard = opened.slider(0).get_attribute("aria-valuetext")
    assert heard == opened.says(0)
    assert opened.slider(0).get_attribute("aria-label") == "Step of the timeline"
    group = opened.stepper(0).get_by_role("group")
    assert group.get_attribute("aria-label").startswith("Step by step: block (2, 1)")


def test_the_ends_have_no_further_step(opened):
    back = opened.stepper(0).get_by_role("button", name="Back")
    following = opened.stepper(0).get_by_role("button", name="Next")
    assert (back.is_disabled(), following.is_disabled()) == (True, False)
    go(opened, 0, 28)
    assert (back.is_disabled(), following.is_disabled()) == (False, True)


def test_it_fits_a_small_window_and_reads_on_a_dark_page(opened, screenshots):
    go(opened, 0, 18)
    box = opened.stepper(0).bounding_box()
    assert box["width"] <= 1280
    assert box["height"] <= 720
    colours = opened.stepper(0).evaluate(
        "e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    )
    assert colours == ["rgb(26, 26, 26)", "rgb(255, 255, 255)"]
    opened.page.screenshot(path=screenshots / "stepper-dark-page.png")
    opened.page.set_viewport_size({"width": 420, "height": 900})
    assert opened.stepper(0).evaluate("e => e.scrollWidth <= document.body.clientWidth")
    opened.page.screenshot(path=screenshots / "stepper-narrow.png")


def test_without_scripts_the_still_timeline_stands_there(browser, page_file, screenshots):
    context = browser.new_context(java_script_enabled=False)
    opened = Page(context, page_file)
    image = opened.stepper(0).get_by_role("img")
    assert image.is_visible()
    assert image.get_attribute("alt").startswith("Timeline of block (2, 1)")
    assert opened.slider(0).count() == 0
    opened.page.screenshot(path=screenshots / "stepper-without-scripts.png")
    context.close()
