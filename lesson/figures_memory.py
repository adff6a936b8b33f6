"""Drawings of shared memory: its two doors and the fence between them, its banks and the swizzle.

Does: a `Timeline` or counted reads in, `Picture` out. Which arrow is there, its line and whether a
fence stands between come from the run; so do the banks and the passes.
Does not: run or count anything (`timeline` and `banks` do).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from lesson.figure_style import (
    BLUE,
    FONT_POINTS,
    GREEN,
    INK,
    ORANGE,
    PALE,
    PAPER,
    RED,
    SKY,
    WASH,
    Picture,
    bare,
    new_figure,
    style,
    text_on,
)
from lesson.timeline import Moment, Timeline
from lesson.timeline_events import Kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lesson.banks import TileReads

Point = tuple[float, float]
_GENERIC_X, _ASYNC_X = 8.4, 17.6
_BARRIER_Y, _FENCE_Y, _TILE_Y = 7.6, 5.2, 2.4


class Way(NamedTuple):
    """The arrow of one step: its name and colour, its ends, and where its caption stands."""

    name: str
    colour: str
    start: Point
    end: Point
    at: Point
    through: str = ""


_GENERIC, _ASYNC = ", through the generic proxy", ", through the async proxy"
_WAYS = {
    Kind.INIT: Way("set up", ORANGE, (4.1, 7.9), (10.8, 7.9), (6.05, 8.5), _GENERIC),
    Kind.FENCE: Way(
        "proxy fence",
        GREEN,
        (_GENERIC_X + 0.4, _FENCE_Y),
        (_ASYNC_X - 0.4, _FENCE_Y),
        (13.0, _FENCE_Y + 0.55),
    ),
    Kind.ISSUE: Way("issue", ORANGE, (2.2, 10.1), (23.8, 10.1), (13.0, 10.65)),
    Kind.LAND: Way("bytes land", BLUE, (21.9, _TILE_Y), (15.2, _TILE_Y), (20.0, 2.95), _ASYNC),
    Kind.COMPLETE: Way(
        "report", BLUE, (21.9, _BARRIER_Y), (15.2, _BARRIER_Y), (20.0, 8.15), _ASYNC
    ),
    Kind.WAKE: Way("wake", GREEN, (10.8, 6.95), (4.1, 6.95), (6.05, 6.35), _GENERIC),
    Kind.READ: Way("read", SKY, (10.8, _TILE_Y), (4.1, _TILE_Y), (6.05, 2.95), _GENERIC),
}


def doors(timeline: Timeline) -> Picture:
    """The two ways into shared memory, and what passes through each, numbered in order."""
    found = _steps(timeline)
    has_fence = Kind.FENCE in found
    with style():
        figure = new_figure(13.0, 5.6)
        axes = figure.add_subplot()
        bare(axes)
        axes.set_xlim(0, 26)
        axes.set_ylim(0, 11.2)
        _rooms(axes, timeline)
        for number, (kind, moment) in enumerate(found.items(), 1):
            _arrow(axes, kind, f"{number}  {_caption(kind, moment)}")
        if not has_fence:
            _missing_fence(axes)
        axes.set_title("Two doors to shared memory: the generic and the async proxy")
    return Picture(figure, _doors_alt(found, has_fence))


def _steps(timeline: Timeline) -> dict[Kind, Moment]:
    """The first moment of each kind that has an arrow, in the order in which they happened."""
    found: dict[Kind, Moment] = {}
    for moment in timeline.moments:
        kind = Kind.READ if moment.read else moment.kind
        is_other_fence = kind == Kind.FENCE and "proxy" not in moment.instruction
        is_late_fence = kind == Kind.FENCE and Kind.ISSUE in found
        if kind in _WAYS and not (is_other_fence or is_late_fence):
            found.setdefault(kind, moment)
    return found


def _caption(kind: Kind, moment: Moment) -> str:
    what = _WAYS[kind].name
    return f"{what}, line {moment.line}" if moment.line else what


def _doors_alt(found: dict[Kind, Moment], has_fence: bool) -> str:
    says = {kind: moment.says for kind, moment in found.items()}
    if Kind.READ in says:
        says[Kind.READ] = "they read the tile"
    told = [
        f"{number}. {what}{_WAYS[kind].through}"
        for number, (kind, what) in enumerate(says.items(), 1)
    ]
    missing = (
        "" if has_fence else " No proxy fence: nothing makes the engine see the barrier in time."
    )
    return (
        "Threads on the left reach shared memory through the generic proxy, the TMA engine on the"
        f" right through the async proxy. {'; '.join(told)}.{missing}"
    )


def _rooms(axes: Axes, timeline: Timeline) -> None:
    shared = (_GENERIC_X + 0.35, 0.5), _ASYNC_X - _GENERIC_X - 0.7, 8.9
    axes.add_patch(Rectangle(*shared, facecolor=WASH, edgecolor=INK))
    axes.text((_GENERIC_X + _ASYNC_X) / 2, 9.0, "shared memory", ha="center", va="center")
    width, height = timeline.tile
    _room(axes, (2.2, 5.0), (3.8, 5.6), f"{timeline.threads}\nthreads", ORANGE)
    _room(axes, (23.8, 5.0), (3.8, 5.6), "TMA\nengine", BLUE)
    _room(axes, (13.0, _BARRIER_Y), (4.4, 1.5), "mbarrier, 8 bytes", PAPER)
    _room(axes, (13.0, _TILE_Y), (4.4, 2.6), f"tile,\n{width * height * 4} bytes", PAPER)
    for x, name in ((_GENERIC_X, "generic proxy"), (_ASYNC_X, "async proxy")):
        corner, size = (x - 0.35, 0.5), (0.7, 8.9)
        axes.add_patch(Rectangle(corner, *size, facecolor=INK, edgecolor=INK, zorder=3))
        axes.text(
            x, 4.0, name, rotation=90, ha="center", va="center", color=PAPER, zorder=4,
            fontsize=FONT_POINTS - 1,
        )  # fmt: skip


def _room(axes: Axes, middle: Point, size: Point, text: str, colour: str) -> None:
    corner = (middle[0] - size[0] / 2, middle[1] - size[1] / 2)
    shape = "round,pad=0,rounding_size=0.2"
    axes.add_patch(
        FancyBboxPatch(corner, *size, boxstyle=shape, facecolor=colour, edgecolor=INK, zorder=2)
    )
    axes.text(*middle, text, ha="center", va="center", color=text_on(colour), zorder=3)


def _arrow(axes: Axes, kind: Kind, caption: str) -> None:
    """The way of one step, its caption above it."""
    way = _WAYS[kind]
    look = {"arrowstyle": "-|>", "mutation_scale": 22, "linewidth": 3, "color": way.colour}
    axes.add_patch(FancyArrowPatch(way.start, way.end, shrinkA=0, shrinkB=0, zorder=5, **look))
    axes.text(*way.at, caption, ha="center", va="center", fontsize=FONT_POINTS - 1, zorder=6)
    if kind == Kind.ISSUE:  # down to the engine, and up from the threads
        axes.plot([2.2, 2.2], [7.8, 10.1], color=ORANGE, linewidth=3)
        tip = FancyArrowPatch((23.8, 10.1), (23.8, 7.8), shrinkA=0, shrinkB=0, **look)
        axes.add_patch(tip)


def _missing_fence(axes: Axes) -> None:
    axes.plot(
        [_GENERIC_X + 0.5, _ASYNC_X - 0.5], [_FENCE_Y, _FENCE_Y], color=RED, linestyle=":", lw=4
    )
    words = "no fence: does the engine\nsee the barrier in time?"
    axes.text(13.0, _FENCE_Y + 0.75, words, ha="center", va="center", color=RED, fontweight="bold")


def swizzle(reads: Sequence[TileReads], at: int) -> Picture:
    """Where one column of a tile lies, plain and swizzled, and what reading it all takes.

    `reads`: the tile read by rows and by columns, plain, then swizzled. `at`: the column drawn.
    """
    by_columns = [tile for tile in reads if tile.by == "columns"]
    with style():
        figure = new_figure(13.0, 4.9)
        *grids, bars = figure.subplots(1, len(by_columns) + 1, width_ratios=[1, 1, 0.95])
        for axes, tile in zip(grids, by_columns, strict=True):
            _bank_grid(axes, tile, at)
        _passes(bars, reads)
    told = [
        f"{_swizzle_name(tile)}, its {tile.reads[at].words.size} elements lie in"
        f" {np.unique(tile.reads[at].banks).size} of 32 banks, and one read takes"
        f" {tile.reads[at].passes} passes"
        for tile in by_columns
    ]
    totals = [f"{tile.by}, {_swizzle_name(tile)}: {tile.passes}" for tile in reads]
    return Picture(
        figure,
        f"Column {at} of a tile in shared memory. {'; '.join(told)}."
        f" Passes to read the whole tile by {'; by '.join(totals)}.",
    )


def _short_name(tile: TileReads) -> str:
    return "plain" if tile.swizzle == "NONE" else "swizzled"


def _swizzle_name(tile: TileReads) -> str:
    return "plain" if tile.swizzle == "NONE" else f"swizzled by {tile.swizzle}"


def _bank_grid(axes: Axes, tile: TileReads, at: int) -> None:
    """Shared memory as 32 banks side by side; the words that one column read touches."""
    read = tile.reads[at]
    rows, banks = np.divmod(read.words, 32)
    grid = np.zeros((len(tile.reads), 32))
    grid[rows, banks] = 1
    axes.imshow(grid, cmap=ListedColormap([PALE, BLUE]), vmin=0, vmax=1, interpolation="nearest")
    edges = np.arange(1, 32) - 0.5
    axes.hlines(edges, -0.5, 31.5, colors=PAPER, linewidth=0.6)
    axes.vlines(edges, -0.5, 31.5, colors=PAPER, linewidth=0.6)
    axes.set_xticks([0, 8, 16, 24, 31])
    axes.set_yticks([0, 8, 16, 24, 31])
    axes.set_xlabel("bank")
    axes.set_ylabel("row of 128 bytes")
    axes.set_title(f"Column {at}, {_short_name(tile)}:\n{read.passes} passes", loc="left")


def _passes(axes: Axes, reads: Sequence[TileReads]) -> None:
    """How many passes the whole tile takes, each way."""
    names = [f"{tile.by},\n{_short_name(tile)}" for tile in reads]
    values = [tile.passes for tile in reads]
    colours = [RED if value == max(values) else SKY for value in values]
    bars = axes.barh(range(len(reads)), values, color=colours, height=0.6)
    axes.bar_label(bars, labels=[str(value) for value in values], padding=4)
    axes.set_yticks(range(len(reads)), labels=names)
    axes.invert_yaxis()
    axes.set_xlim(0, max(values) * 1.3)
    axes.set_xticks([])
    axes.set_box_aspect(1.15)
    axes.set_title("Passes to read\nthe whole tile", loc="left")
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
