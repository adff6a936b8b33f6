"""Keyboard only, and what a screen reader is told: checked on the page that `lesson run` writes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lesson import run_lesson

# What has no name for a screen reader, of all that a reader sees or operates.
NAMELESS = """() => {
    const named = e => (e.getAttribute('aria-label') || e.title || e.alt
        || (e.labels && e.labels.length && e.labels[0].textContent)
        || document.getElementById(e.getAttribute('aria-labelledby'))?.textContent
        || e.textContent || '').trim();
    return [...document.querySelectorAll('img, button, input, select, [role=slider], svg')]
        .filter(e => !e.closest('[aria-hidden=true]') && !named(e))
        .map(e => e.outerHTML.slice(0, 90));
}"""
UNREACHABLE = """() => [...document.querySelectorAll('[onclick], [role=button], summary')]
    .filter(e => e.tabIndex < 0).map(e => e.outerHTML.slice(0, 90))"""
SLIDER = "input[type=range]"


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The page to read, from the notebook's own outputs."""
    folder: Path = tmp_path_factory.mktemp("page")
    source = run_lesson.lesson_notebook()
    _, written = run_lesson.write(run_lesson.read(source), folder, source.stem)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.route("http*://**", lambda route: route.abort())  # MathJax and such: not needed here
    page.goto(written.as_uri())
    return page


def test_the_page_names_its_language_and_title(page):
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.title().strip()


def test_everything_to_see_or_to_operate_has_a_name(page):
    assert page.evaluate("document.images.length") >= 10
    assert page.evaluate(NAMELESS) == []


def test_what_can_be_clicked_can_be_reached_by_key(page):
    assert page.evaluate(UNREACHABLE) == []


def test_no_heading_skips_a_level_and_there_is_one_of_the_first(page):
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(e => +e.tagName[1])"
    )
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_link_of_the_contents_leads_to_a_heading(page):
    broken = page.evaluate(
        """() => [...document.querySelectorAll('td a[href^="#"]')]
            .filter(a => !document.getElementById(decodeURIComponent(a.hash.slice(1))))
            .map(a => a.hash)"""
    )
    assert page.locator("td a[href^='#']").count() >= 10
    assert broken == []


def test_the_stepper_moves_by_keys_alone_and_says_where_it_is(page):
    slider = page.locator(SLIDER).first
    slider.focus()
    before = slider.input_value(), slider.get_attribute("aria-valuetext")
    page.keyboard.press("ArrowRight")
    after = slider.input_value(), slider.get_attribute("aria-valuetext")
    assert int(after[0]) == int(before[0]) + 1
    assert after[1]
    assert after[1] != before[1]


def test_the_stepper_s_buttons_are_next_in_the_order_of_the_tab_key(page):
    page.locator(SLIDER).first.focus()
    page.keyboard.press("Tab")
    name = page.evaluate("document.activeElement.textContent.trim()")
    assert page.evaluate("document.activeElement.tagName") == "BUTTON"
    assert name == "Next"
    before = page.locator(SLIDER).first.input_value()
    page.keyboard.press("Enter")
    assert int(page.locator(SLIDER).first.input_value()) == int(before) + 1
