"""The data of the timeline, the two doors and the swizzle: what their artists hold and say."""

from functools import cache

import pytest
from matplotlib.patches import FancyArrowPatch

from lesson import banks, figures_memory, figures_timeline, timeline
from lesson.figure_style import Picture
from lesson.kernel_source import TileKernel
from lesson.timeline import Timeline

TOO_MANY = ("issue-tma", "sizeof(tile)", "2 * sizeof(tile)")
NO_FENCE = ("kernel", "ptx::fence_proxy_async(ptx::space_shared);", "")


@cache
def story(*edit: str) -> Timeline:
    return timeline.record(TileKernel().edit(*edit) if edit else None)


@cache
def reads() -> tuple[banks.TileReads, ...]:
    return tuple(banks.read_tile(s, by) for s in ("NONE", "128B") for by in ("rows", "columns"))


def texts(picture: Picture, axes: int = 0) -> list[str]:
    return [text.get_text() for text in picture.figure.axes[axes].texts]


def row(picture: Picture, name: str) -> list[str]:
    """The texts on the height of a row's name, from left to right."""
    found = picture.figure.axes[0].texts
    y = next(t for t in found if t.get_text() == name).get_position()[1]
    level = sorted((t.get_position()[0], t.get_text()) for t in found if t.get_position()[1] == y)
    return [text for _, text in level[1:]]


def test_alike_moments_share_a_column():
    columns = figures_timeline.columns(story())
    assert [column.times for column in columns] == [1] * 11 + [16, 1]
    assert columns[11].label == "store\n16 x"
    assert columns[11].last.stored[-1][0] == 63


def test_the_lanes_show_each_event_once_and_the_counts_below_it():
    picture = figures_timeline.swim_lanes(story())
    said = texts(picture)
    for label in (
        "set up\nbarrier",
        "fence",
        "sync",
        "issue",
        "wait",
        "bytes\nland",
        "phase\nover",
    ):
        assert said.count(label) == 1
    assert row(picture, "phase") == ["0"] * 9 + ["1"] * 4
    assert row(picture, "missing arrivals") == [
        *["256"] * 3, "1", "1", *["0"] * 4, *["256"] * 4,
    ]  # fmt: skip
    assert row(picture, "missing bytes") == [*["0"] * 5, *["16384"] * 3, *["0"] * 5]


def test_the_lines_of_code_stand_under_their_events():
    columns = figures_timeline.columns(story())
    wanted = [str(c.first.line) if c.first.line else "–" for c in columns]
    assert row(figures_timeline.swim_lanes(story()), "line of code") == wanted


def test_a_run_that_hangs_ends_in_a_box_that_says_so():
    picture = figures_timeline.swim_lanes(story(*TOO_MANY))
    assert texts(picture)[-1] == "hang"
    assert "the run ends here: hang" in picture.alt
    assert "phase\nover" not in texts(picture)


def test_the_words_of_the_timeline_tell_the_counts_when_they_change():
    alt = figures_timeline.swim_lanes(story()).alt
    assert "the other 255 threads arrive (phase 0, missing: 1 arrivals, 0 bytes)" in alt
    assert "16 times: all 256 threads store rows 0 to 3 of the tile, up to:" in alt


def test_the_doors_number_the_steps_in_order_with_their_lines():
    said = texts(figures_memory.doors(story()))
    lines = {moment.label: moment.line for moment in story().moments}
    numbered = sorted(text for text in said if text[0].isdigit() and "  " in text)
    assert [text.split(",")[0] for text in numbered] == [
        "1  set up", "2  proxy fence", "3  issue", "4  bytes land", "5  report", "6  wake",
        "7  read",
    ]  # fmt: skip
    assert numbered[2] == f"3  issue, line {lines['issue']}"


def test_without_a_fence_the_doors_show_the_gap():
    picture = figures_memory.doors(story(*NO_FENCE))
    said = texts(picture)
    assert "no fence: does the engine\nsee the barrier in time?" in said
    assert not any("proxy fence" in text for text in said)
    assert picture.alt.endswith("nothing makes the engine see the barrier in time.")
    dotted = [line for line in picture.figure.axes[0].lines if line.get_linestyle() == ":"]
    assert len(dotted) == 1


def test_with_a_fence_an_arrow_leads_from_door_to_door():
    def arrows(picture: Picture) -> int:
        return sum(isinstance(p, FancyArrowPatch) for p in picture.figure.axes[0].patches)

    with_fence = arrows(figures_memory.doors(story()))
    assert with_fence == arrows(figures_memory.doors(story(*NO_FENCE))) + 1


def test_the_swizzle_picture_marks_the_32_words_of_the_column():
    picture = figures_memory.swizzle(reads(), 5)
    plain, swizzled, bars = picture.figure.axes
    for axes, in_use in ((plain, 1), (swizzled, 8)):
        grid = axes.images[0].get_array()
        assert grid.sum() == 32
        assert (grid.sum(axis=0) > 0).sum() == in_use
        assert (grid.sum(axis=1) == 1).all()
    assert [bar.get_width() for bar in bars.patches] == [32, 1024, 32, 128]
    assert plain.get_title(loc="left").endswith("32 passes")
    assert swizzled.get_title(loc="left").endswith("4 passes")


PICTURES = {
    "timeline": lambda: figures_timeline.swim_lanes(story()),
    "timeline of a hang": lambda: figures_timeline.swim_lanes(story(*TOO_MANY)),
    "doors": lambda: figures_memory.doors(story()),
    "swizzle": lambda: figures_memory.swizzle(reads(), 5),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_has_alt_text_white_paper_and_letters_for_a_projector(name):
    picture = PICTURES[name]()
    assert len(picture.alt) > 40
    assert picture.alt.endswith(".")
    assert picture.figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    sizes = [t.get_fontsize() for axes in picture.figure.axes for t in axes.texts]
    assert min(sizes) >= 14
    assert picture.figure.get_figheight() <= 6  # inches: fits a slide of 720 pixels


def boxes_with_their_words(picture: Picture) -> list[tuple[str, bool]]:
    """Each word of the lanes, and whether it fits into the box that it stands in."""
    figure = picture.figure
    figure.draw_without_rendering()
    axes = figure.axes[0]
    boxes = [p.get_window_extent() for p in axes.patches if type(p).__name__ == "FancyBboxPatch"]
    found = []
    for text in axes.texts:
        extent = text.get_window_extent()
        x, y = (extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2
        for box in boxes:
            if box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1:
                found.append((text.get_text(), box.width + 1 >= extent.width))
    return found


@pytest.mark.parametrize("name", ["timeline", "timeline of a hang", "doors"])
def test_words_fit_into_their_boxes(name):
    found = boxes_with_their_words(PICTURES[name]())
    assert len(found) >= 4
    assert [text for text, fits in found if not fits] == []
