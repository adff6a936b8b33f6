"""The pictures' data: what their artists hold and say, never their pixels."""

import base64
import re
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from lesson import figures, figures_story, figures_values
from lesson.barrier_story import BarrierStep
from lesson.figure_parts import NOBODY
from lesson.figure_style import INK, PAPER, Picture, text_on
from lesson.targets import lesson_map

TILE = (64, 64)
GRID = (4, 4)
ROWS, COLUMNS = np.mgrid[0:256, 0:256]
BLOCKS = ROWS // 64 * 4 + COLUMNS // 64
THREADS = (ROWS % 64 * 64 + COLUMNS % 64) % 256
MATRIX = np.arange(65536, dtype=np.float32).reshape(256, 256)


def texts(picture: Picture) -> list[str]:
    return [text.get_text() for axes in picture.figure.axes for text in axes.texts]


def legend(picture: Picture) -> list[str]:
    return [t.get_text() for t in picture.figure.axes[0].get_legend().get_texts()]


def test_each_tile_is_labelled_by_the_block_that_wrote_it():
    picture = figures.tile_writers(BLOCKS, GRID, TILE)
    assert texts(picture) == [f"({x}, {y})" for y in range(4) for x in range(4)]
    np.testing.assert_array_equal(picture.figure.axes[0].images[0].get_array(), BLOCKS)


def test_a_label_stands_in_the_middle_of_its_tile():
    picture = figures.tile_writers(BLOCKS, GRID, TILE)
    label = next(t for t in picture.figure.axes[0].texts if t.get_text() == "(2, 1)")
    assert label.get_position() == (159.5, 95.5)


def test_a_tile_that_nobody_wrote_and_one_of_several_writers_say_so():
    blocks = BLOCKS.copy()
    blocks[192:, :64] = NOBODY
    blocks[0, 0] = 5
    labels = figures.tile_labels(blocks, GRID, TILE)
    assert labels[3][0] == "nobody"
    assert labels[0][0] == "several"
    assert labels[0][1] == "(1, 0)"


def test_the_map_of_threads_shows_the_recorded_threads_and_the_warps_of_each_row():
    picture = figures.thread_writers(THREADS[:64, :64], "(0, 0)", 256)
    whole, rows = picture.figure.axes[:2]
    np.testing.assert_array_equal(whole.images[0].get_array(), THREADS[:64, :64])
    names = [t.get_text() for t in rows.texts]
    assert names == [f"warp {w}" for w in (0, 1, 2, 3, 4, 5, 6, 7, 0, 1)]
    assert {bar.get_width() for bar in rows.patches} == {32}


def test_runs_of_a_warp_are_cut_where_the_warp_changes():
    row = np.array([0, 31, 32, 33, -1, 5])
    assert figures.warp_runs(row) == [(0, 0, 2), (1, 2, 2), (-1, 4, 1), (0, 5, 1)]


def test_the_counts_picture_tells_never_once_and_more_apart():
    counts = np.ones((256, 256), int)
    counts[:64] = 0
    counts[64, :10] = 2
    counts[64, 10:13] = 16
    picture = figures.write_counts(counts, TILE)
    assert legend(picture) == [
        "never: 16384 elements",
        "once: 49139 elements",
        "more than once: 13 elements",
    ]
    np.testing.assert_array_equal(
        picture.figure.axes[0].images[0].get_array(), np.minimum(counts, 2)
    )
    assert texts(picture) == [*["never"] * 4, "1 to 16 x", *["1 x"] * 11]


def test_before_and_after_show_the_corner_that_was_asked_for():
    picture = figures_values.before_after(MATRIX, MATRIX + 1, (128, 64), size=2)
    assert texts(picture)[:8] == [
        "16512", "16513", "16768", "16769",
        "16513", "16514", "16769", "16770",
    ]  # fmt: skip
    assert "Output minus input is 1 everywhere." in picture.alt
    assert texts(picture)[8:] == ["65536"]


def test_a_difference_other_than_one_shows_in_the_bars():
    after = MATRIX + 1
    after[0, 0] = 0
    picture = figures_values.before_after(MATRIX, after, (0, 0))
    bars = picture.figure.axes[2]
    assert [t.get_text() for t in bars.texts] == ["1", "65535"]
    assert [t.get_text() for t in bars.get_xticklabels()] == ["0", "1"]


def swapped() -> np.ndarray:
    after = np.empty_like(MATRIX)
    for y in range(0, 256, 64):
        for x in range(0, 256, 64):
            after[y : y + 64, x : x + 64] = MATRIX[x : x + 64, y : y + 64] + 1
    return after


def test_with_x_and_y_swapped_the_four_diagonal_tiles_are_right():
    picture = figures_values.right_tiles(swapped(), MATRIX, TILE, "Swapped.")
    assert legend(picture) == ["right: 4 tiles", "wrong: 12 tiles"]
    said = np.array(texts(picture)).reshape(4, 4)
    assert [said[i, i] for i in range(4)] == ["right"] * 4
    assert said[1, 2] == "holds\n(1, 2)"


def test_one_wrong_element_makes_a_tile_wrong():
    after = MATRIX + 1
    after[255, 255] = 0
    picture = figures_values.right_tiles(after, MATRIX, TILE, "One off.")
    assert legend(picture) == ["right: 15 tiles", "wrong: 1 tiles"]
    assert texts(picture)[-1] == "wrong"


def test_a_store_at_the_edge_counts_what_it_changed_inside_and_in_the_padding():
    before = np.arange(128.0).reshape(8, 16)
    after = before.copy()
    after[:, 8:] = -1
    picture = figures_values.store_at_the_edge(before, after, 13)
    assert legend(picture) == [
        "stored, inside:\n40 elements",
        "stored, in the padding:\n24 elements",
    ]
    assert picture.alt.endswith("in columns 13, 14, 15.")
    assert texts(picture)[8:10] == ["-1", "-1"]


STEPS = [
    BarrierStep("init", 256, 0, 0),
    BarrierStep("all arrive", 0, 16384, 0),
    BarrierStep("the tile lands", 256, 0, 1),
]


def test_the_barrier_picture_shows_both_counts_and_where_the_phase_ends():
    picture = figures_story.barrier_steps(STEPS, 256, 16384)
    upper, lower = picture.figure.axes
    assert [bar.get_height() for bar in upper.patches] == [256, 0, 256]
    assert [bar.get_height() for bar in lower.patches] == [0, 16384, 0]
    assert [line.get_xdata()[0] for line in upper.lines] == [1.5]
    assert [t.get_text() for t in lower.get_xticklabels()] == [
        "init",
        "all arrive",
        "the tile lands",
    ]


def test_the_drawing_of_the_paths_names_block_start_and_thread_counts():
    picture = figures_story.matrix_and_paths((256, 256), TILE, (2, 1), 256)
    said = " ".join(texts(picture)).replace("\n", " ")
    for words in ("block (2, 1)", "x 128, y 64", "4096 loads", "256 threads", "other 255"):
        assert words in said
    squares = [p for p in picture.figure.axes[2].patches if isinstance(p, Rectangle)]
    assert len(squares) == 256


def test_the_drawing_of_the_map_shows_every_argument():
    swizzled = lesson_map(box=(32, 64), swizzle="128B")
    said = texts(figures_story.map_arguments(swizzled))
    for words in ("FLOAT32", "1024 bytes from row to row", "256 x 256 elements, x first"):
        assert words in said
    for words in ("32 x 64: what a copy moves", "128B", "NONE: plain rows", "NONE: zeros outside"):
        assert words in said
    names = {"element strides", "interleave", "swizzle", "L2 promotion", "fill"}
    assert names <= set(said)


PICTURES: dict[str, Callable[[], Picture]] = {
    "tile writers": lambda: figures.tile_writers(BLOCKS, GRID, TILE),
    "thread writers": lambda: figures.thread_writers(THREADS[:64, :64], "(0, 0)", 256),
    "write counts": lambda: figures.write_counts(np.ones((256, 256), int), TILE),
    "before and after": lambda: figures_values.before_after(MATRIX, MATRIX + 1, (0, 0)),
    "right tiles": lambda: figures_values.right_tiles(swapped(), MATRIX, TILE, "Swapped."),
    "two paths": lambda: figures_story.matrix_and_paths((256, 256), TILE, (2, 1), 256),
    "barrier": lambda: figures_story.barrier_steps(STEPS, 256, 16384),
    "edge": lambda: figures_values.store_at_the_edge(np.zeros((8, 16)), np.ones((8, 16)), 13),
    "map": lambda: figures_story.map_arguments(lesson_map()),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_has_alt_text_white_paper_and_letters_for_a_projector(name):
    picture = PICTURES[name]()
    assert len(picture.alt) > 40
    assert picture.alt.endswith(".")
    assert picture.figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    sizes = [t.get_fontsize() for axes in picture.figure.axes for t in axes.texts]
    assert min(sizes, default=15) >= 14
    assert picture.figure.get_figheight() <= 6  # inches: fits a slide of 720 pixels


def test_jupyter_gets_an_image_with_alt_text_and_a_terminal_gets_the_text():
    picture = PICTURES["tile writers"]()
    bundle = picture._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert f'alt="{picture.alt}"' in bundle["text/html"]
    data = re.search(r"base64,([^\"]+)", bundle["text/html"])[1]
    assert base64.b64decode(data).startswith(b"\x89PNG")
    assert bundle["text/plain"] == picture.alt


def test_a_picture_drawn_twice_has_the_same_bytes():
    again = figures.tile_writers(BLOCKS, GRID, TILE)
    assert again.png() == PICTURES["tile writers"]().png()


def test_the_readers_own_matplotlib_settings_do_not_change_the_pictures():
    import matplotlib

    with matplotlib.rc_context({"font.size": 5, "axes.facecolor": "black", "text.color": "white"}):
        again = figures.tile_writers(BLOCKS, GRID, TILE)
        assert again.png() == PICTURES["tile writers"]().png()


def test_text_takes_the_colour_that_reads_on_its_ground():
    assert text_on("#000000") == PAPER
    assert text_on("#FFFFFF") == INK
