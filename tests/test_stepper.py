"""The stepper's fragment: self-contained, the same each time, with its still picture inside.

How it behaves in a browser is tested in tests/browser.
"""

import base64
import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

from lesson import stepper, timeline
from lesson.kernel_source import TileKernel
from lesson.stepper import Stepper


@cache
def shown(*edit: str) -> Stepper:
    return stepper.of(timeline.record(TileKernel().edit(*edit) if edit else None))


def facts(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.S)[1])


class Tags(HTMLParser):
    """Opening tags with their attributes, and the depth at the end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.found.append((tag, dict(attrs)))
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_jupyter_gets_the_fragment_a_picture_for_paper_and_words_for_a_terminal():
    bundle = shown()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/png", "text/plain"}
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"].startswith("Timeline of block (2, 1), as the emulator recorded it.")


def test_the_fragment_starts_with_the_still_picture_and_its_words():
    tags = Tags(shown().html())
    names = [tag for tag, _ in tags.found]
    assert names == ["div", "figure", "img", "script", "style", "script"]
    assert tags.open == []
    image = dict(tags.found)["img"]
    assert image["src"].startswith("data:image/png;base64,")
    assert image["alt"] == shown().alt


def test_nothing_is_fetched_and_nothing_is_named_that_another_output_could_name():
    page = re.sub(r"base64,[^\"]+", "", shown().html())
    assert set(re.findall(r"https?://[^\"'\s]+", page)) == {"http://www.w3.org/2000/svg"}
    assert re.search(r"\b(import|fetch|XMLHttpRequest|eval|innerHTML)\b", page) is None
    assert re.search(r"\sid=|\.id\b|getElementById|url\(", page) is None


def test_the_same_run_gives_the_same_bytes():
    again = stepper.of(timeline.record())
    assert again.html() == shown().html()


def test_the_data_hold_a_step_a_moment_with_words_line_and_counts():
    data = facts(shown().html())
    moments = shown().timeline.moments
    assert len(data["steps"]) == len(moments)
    first, issue = data["steps"][0], data["steps"][4]
    assert first["barrier"] == [0, 256, 0]
    assert first["says"] == moments[0].says
    number, code = data["lines"][issue["line"]]
    assert number == moments[4].line
    assert "cp_async_bulk_tensor" in code
    assert data["steps"][7]["land"][0] == [0, 0, 64]
    assert data["steps"][7]["line"] == -1
    assert "no line of the program" in data["steps"][7]["note"]


def test_waits_and_the_flight_of_the_copy_are_spans_in_their_lanes():
    assert facts(shown().html())["spans"] == [[0, 6, 10], [1, 6, 10], [2, 4, 7]]


def test_a_run_that_hangs_ends_with_a_step_that_says_so():
    data = facts(shown("issue-tma", "sizeof(tile)", "2 * sizeof(tile)").html())
    assert data["steps"][-1]["says"] == "the run ends here: hang"
    assert data["steps"][-1]["by"] == []
    assert data["steps"][-1]["barrier"] == [0, 0, 16384]


def test_a_long_story_is_cut_and_says_so():
    told = shown().timeline
    long = replace(told, moments=told.moments * 20)
    data = stepper.facts(long)
    assert len(data["steps"]) == stepper.MAX_STEPS + 1
    assert (
        data["steps"][-1]["says"] == f"{len(told.moments) * 20 - 300} more steps follow, not shown"
    )


def test_source_that_closes_a_script_cannot_end_the_data():
    told = shown().timeline
    file, line, _ = told.listing[3]
    nasty = replace(told, listing=((file, line, "// </script><b>"),))
    page = Stepper(nasty, shown().picture).html()
    assert facts(page)["lines"] == [[line, "// </script><b>"]]
    assert page.count("</script>") == 2
