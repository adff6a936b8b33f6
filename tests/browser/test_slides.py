"""The slides in a browser at 1280 x 720: nothing overflows, nothing is fetched, notes are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from lesson import run_lesson, slides

WIDTH, HEIGHT = 1280, 720
# The largest right and bottom edge of anything that a slide shows, in pixels of the window. Screen
# readers' text, a pixel large, and the notes, which stand in the speaker's window, do not count.
EDGES = """() => {
    const slide = Reveal.getCurrentSlide();
    let right = 0, bottom = 0;
    for (const element of slide.querySelectorAll('*')) {
        if (element.closest('aside.notes')) continue;
        const box = element.getBoundingClientRect();
        if (box.width <= 1 || box.height <= 1) continue;
        right = Math.max(right, box.right);
        bottom = Math.max(bottom, box.bottom);
    }
    return [Math.ceil(right), Math.ceil(bottom)];
}"""
# Where an element's own content is wider or higher than the element, and is cut or scrolled.
CUT = """() => Array.from(Reveal.getCurrentSlide().querySelectorAll('*'))
    .filter(e => !e.closest('aside.notes') && e.clientWidth > 1
        && getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1)
    .map(e => e.textContent.slice(0, 60))"""


class Deck:
    """An open page of slides."""

    def __init__(self, browser: Any, page_file: Path) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text)
                if message.type in ("error", "warning")
                else None
            ),
        )
        self.page.goto(page_file.as_uri())
        self.page.wait_for_function("window.Reveal && Reveal.isReady()")

    def visit(self) -> Iterator[tuple[int, str]]:
        """Go to each slide, with all of its fragments shown. Yields its number and first words."""
        places = self.page.evaluate(
            "Reveal.getSlides().map(s => Reveal.getIndices(s)).map(i => [i.h, i.v || 0])"
        )
        for number, (h, v) in enumerate(places, 1):
            self.page.evaluate(f"Reveal.slide({h}, {v}, 999)")
            yield number, self.page.evaluate("Reveal.getCurrentSlide().innerText.slice(0, 60)")


def overflowing(deck: Deck, folder: Path | None = None) -> list[str]:
    found = []
    for number, words in deck.visit():
        if folder is not None:
            deck.page.screenshot(path=folder / f"slide-{number:02}.png")
        right, bottom = deck.page.evaluate(EDGES)
        if right > WIDTH or bottom > HEIGHT:
            found.append(f"slide {number} reaches {right} x {bottom}: {words!r}")
        found += [f"slide {number} cuts {text!r}" for text in deck.page.evaluate(CUT)]
    return found


def write_deck(folder: Path, *sources: str) -> Path:
    cells = [
        new_markdown_cell(source, metadata={"slideshow": {"slide_type": "slide"}})
        for source in sources
    ]
    page = folder / "slides.html"
    page.write_text(slides.render(new_notebook(cells=cells), "slides"), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def deck(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Deck:
    """The lesson's slides as `make slides` writes them."""
    page = tmp_path_factory.mktemp("slides") / "lesson.slides.html"
    source = run_lesson.lesson_notebook()
    page.write_text(slides.render(run_lesson.read(source), source.stem), encoding="utf-8")
    return Deck(browser, page)


def test_no_slide_overflows_at_1280_by_720(deck, screenshots):
    assert overflowing(deck, screenshots) == []


def test_an_overflowing_slide_is_noticed(browser, tmp_path):
    high = "\n\n".join(f"paragraph {i}" for i in range(40))
    wide = "<div style='width: 1400px'>wide</div>"
    cut = "<div style='width: 90px; overflow: hidden; white-space: nowrap'>too long to read</div>"
    found = overflowing(Deck(browser, write_deck(tmp_path, "# short", high, wide, cut)))
    assert [line.split()[1:3] for line in found] == [
        ["2", "reaches"],
        ["3", "reaches"],
        ["3", "cuts"],
        ["4", "cuts"],
    ]


def test_the_page_asks_the_network_for_nothing_and_complains_of_nothing(deck):
    for _ in deck.visit():
        pass
    asked = [url for url in deck.requests if not url.startswith(("file:", "data:", "blob:"))]
    assert asked == []
    assert deck.complaints == []


def test_every_section_has_notes_for_the_speaker(deck):
    without = deck.page.evaluate(
        """() => Array.from(document.querySelectorAll('.slides > section'))
            .filter(s => s.querySelector('h2') && !s.querySelector('aside.notes'))
            .map(s => s.querySelector('h2').textContent)"""
    )
    assert without == []


def test_keys_alone_lead_through_all_slides(deck):
    deck.page.evaluate("Reveal.slide(0)")
    last = deck.page.evaluate("Reveal.getTotalSlides()")
    for _ in range(10 * last):
        if deck.page.evaluate("Reveal.isLastSlide() && !Reveal.availableFragments().next"):
            break
        deck.page.keyboard.press("Space")
    assert deck.page.evaluate("Reveal.getSlidePastCount()") == last - 1


def test_the_speaker_view_opens_without_a_network_and_shows_the_notes(deck):
    deck.page.evaluate("Reveal.slide(2)")
    with deck.page.expect_popup() as popup:
        deck.page.keyboard.press("s")
    view = popup.value
    view.wait_for_function("document.querySelector('.speaker-controls-notes .value').innerText")
    notes = view.inner_text(".speaker-controls-notes .value")
    view.close()
    assert "minutes" in notes
