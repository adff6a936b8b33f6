"""Drawings that explain an idea: the matrix and its tiles, two ways to fetch one, the tensor map.

Does: numbers in (shapes, a block, a map's arguments), `Picture` out; no number is made up here.
Does not: run anything. What a run did is drawn in `figures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from lesson.figure_style import (
    BLUE,
    FONT_POINTS,
    INK,
    ORANGE,
    PALE,
    PAPER,
    SKY,
    Picture,
    bare,
    new_figure,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lesson.barrier_story import BarrierStep
    from lesson.tensor_map import TensorMap

Shape = tuple[int, int]
Point = tuple[float, float]


def matrix_and_paths(matrix: Shape, tile: Shape, block: Shape, threads: int) -> Picture:
    """The matrix with one block's tile, and the two ways to bring it to shared memory.

    All pairs are (x, y): `matrix` and `tile` in elements, `block` as blockIdx.
    """
    elements = tile[0] * tile[1]
    start = (block[0] * tile[0], block[1] * tile[1])
    with style():
        figure = new_figure(12.6, 5.2)
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.05, 1, 1])
        _matrix(left, matrix, tile, block)
        left.set_title("The matrix, one tile a block")
        _without_tma(middle, elements, threads)
        _with_tma(right, start, threads)
    alt = (
        f"Left: a matrix of {matrix[0]} x {matrix[1]} elements in tiles of {tile[0]} x {tile[1]};"
        f" the tile of block {block} starts at x {start[0]}, y {start[1]}. Middle: without TMA,"
        f" {threads} threads compute {elements} addresses, and the data pass through registers"
        f" on the way from global to shared memory. Right: with TMA, thread 0 names the tile, the"
        f" TMA engine copies it from global to shared memory, and the other {threads - 1} threads"
        f" load nothing."
    )
    return Picture(figure, alt)


def _matrix(axes: Axes, matrix: Shape, tile: Shape, block: Shape) -> None:
    """Tiles as squares; the block's own filled and named."""
    for y in range(0, matrix[1], tile[1]):
        for x in range(0, matrix[0], tile[0]):
            mine = (x // tile[0], y // tile[1]) == block
            axes.add_patch(
                Rectangle(
                    (x, y), *tile, facecolor=ORANGE if mine else PALE, edgecolor=PAPER, linewidth=3
                )
            )
            if mine:
                axes.text(
                    x + tile[0] / 2, y + tile[1] / 2, f"block\n{block}", ha="center", va="center"
                )
    axes.set_xlim(0, matrix[0])
    axes.set_ylim(matrix[1], 0)
    axes.set_aspect("equal")
    axes.set_xticks(range(0, matrix[0] + 1, tile[0]))
    axes.set_yticks(range(0, matrix[1] + 1, tile[1]))
    axes.set_xlabel("x (column)")
    axes.set_ylabel("y (row)")


def _box(axes: Axes, middle: Point, size: Point, text: str, colour: str) -> None:
    """A named station on the way of the data."""
    x, y = middle[0] - size[0] / 2, middle[1] - size[1] / 2
    axes.add_patch(
        FancyBboxPatch(
            (x, y),
            *size,
            boxstyle="round,pad=0,rounding_size=0.25",
            facecolor=colour,
            edgecolor=INK,
        )
    )
    ink = PAPER if colour == BLUE else INK
    axes.text(*middle, text, ha="center", va="center", color=ink, fontsize=FONT_POINTS)


def _arrow(axes: Axes, start: Point, end: Point, colour: str, bend: float = 0.0) -> None:
    """`bend`: how far the arrow leans out of the straight line, as a share of its length."""
    curve = f"arc3,rad={bend}"
    look = {"arrowstyle": "-|>", "mutation_scale": 24, "linewidth": 3, "color": colour}
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=curve, **look))


def _threads(axes: Axes, left: float, bottom: float, threads: int, busy: int) -> None:
    """A square a thread, the busy ones coloured."""
    columns, side = 16, 0.2
    for thread in range(threads):
        x = left + thread % columns * side
        y = bottom + (threads // columns - 1 - thread // columns) * side
        colour = ORANGE if thread < busy else PALE
        axes.add_patch(
            Rectangle((x, y), side, side, facecolor=colour, edgecolor=PAPER, linewidth=0.8)
        )


def _canvas(axes: Axes, title: str) -> None:
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 10)
    axes.set_title(title)
    bare(axes)


def _without_tma(axes: Axes, elements: int, threads: int) -> None:
    _canvas(axes, "Without TMA")
    _box(axes, (3.4, 9.2), (5.6, 1.3), "global memory", SKY)
    _box(axes, (3.4, 0.8), (5.6, 1.3), "shared memory", SKY)
    _arrow(axes, (3.4, 8.5), (3.4, 6.7), ORANGE)
    _arrow(axes, (3.4, 3.3), (3.4, 1.5), ORANGE)
    _threads(axes, 1.8, 3.4, threads, threads)
    axes.text(3.9, 7.6, f"{elements} addresses,\n{elements} loads", va="center")
    axes.text(5.4, 5.0, f"{threads} threads\nhold the data\nin registers", va="center")
    axes.text(3.9, 2.4, f"{elements} stores", va="center")


def _with_tma(axes: Axes, start: Shape, threads: int) -> None:
    _canvas(axes, "With TMA")
    _box(axes, (7.0, 9.2), (5.6, 1.3), "global memory", SKY)
    _box(axes, (7.0, 0.8), (5.6, 1.3), "shared memory", SKY)
    _box(axes, (7.4, 5.0), (3.4, 1.8), "TMA\nengine", BLUE)
    _arrow(axes, (7.4, 8.5), (7.4, 6.0), BLUE)
    _arrow(axes, (7.4, 4.0), (7.4, 1.5), BLUE)
    _threads(axes, 0.0, 3.0, threads, 1)
    _arrow(axes, (0.15, 6.2), (5.65, 5.4), ORANGE, bend=-0.14)
    axes.text(0.0, 7.1, f"thread 0: “the tile\nat x {start[0]}, y {start[1]}”", va="center")
    axes.text(0.0, 2.1, f"the other {threads - 1}\nload nothing", va="center")


def barrier_steps(steps: Sequence[BarrierStep], arrivals: int, nbytes: int) -> Picture:
    """Two counts of a barrier, step by step: arrivals that are missing, and bytes that are.

    `arrivals` and `nbytes` are what the phase waits for in all.
    """
    with style():
        figure = new_figure(12.0, 5.4)
        upper, lower = figure.subplots(2, 1, sharex=True)
        _count(upper, [step.pending for step in steps], arrivals, "missing\narrivals", ORANGE)
        _count(lower, [step.nbytes for step in steps], nbytes, "missing\nbytes", BLUE)
        lower.set_xticks(range(len(steps)), labels=[fill(step.event, 15) for step in steps])
        upper.set_title("One barrier, one phase: two counts go to zero")
        for before, (step, following) in enumerate(pairwise(steps)):
            if following.phase != step.phase:
                for axes in (upper, lower):
                    axes.axvline(before + 0.5, color=INK, linestyle="--", linewidth=2)
                upper.text(before + 0.46, arrivals * 1.12, "phase over", ha="right", va="center")
    told = "; ".join(f"{s.event}: {s.pending} arrivals, {s.nbytes} bytes" for s in steps)
    return Picture(figure, f"What a barrier still waits for, step by step. {told}.")


def _count(axes: Axes, values: list[int], most: int, name: str, colour: str) -> None:
    """One bar a step, its number on top."""
    bars = axes.bar(range(len(values)), values, color=colour, width=0.55)
    axes.bar_label(bars, labels=[str(v) for v in values], padding=3)
    axes.set_ylim(0, most * 1.3)
    axes.set_yticks([])
    axes.set_ylabel(name, rotation=0, ha="right", va="center")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="x", length=0)


def map_arguments(tmap: TensorMap) -> Picture:
    """What the arguments of a rank-2 tensor map mean, drawn on the matrix."""
    shape, box = tmap.dims, tmap.box
    meanings = _meanings(tmap)
    with style():
        figure = new_figure(13.2, 5.4)
        axes = figure.add_subplot()
        bare(axes)
        axes.set_xlim(-1.0, 19.6)
        axes.set_ylim(7.9, -1.0)
        axes.set_aspect("equal")
        axes.add_patch(Rectangle((0, 0), 7, 7, facecolor=PALE, edgecolor=INK, linewidth=2))
        width, height = 7 * box[0] / shape[0], 7 * box[1] / shape[1]
        axes.add_patch(
            Rectangle((2 * width, height), width, height, facecolor=ORANGE, edgecolor=INK)
        )
        axes.text(2.5 * width, 1.5 * height, "box", ha="center", va="center", fontweight="bold")
        axes.plot([0], [0], marker="o", markersize=13, color=BLUE, clip_on=False)
        for y in (4.6, 4.95):
            axes.plot([0, 7], [y, y], color=INK, linewidth=1)
        axes.annotate("", (-0.25, 4.95), (-0.25, 4.6), arrowprops={"arrowstyle": "->", "lw": 2})
        axes.text(-0.45, 4.78, "stride", ha="right", va="center", rotation=90)
        axes.annotate("", (7, 7.35), (0, 7.35), arrowprops={"arrowstyle": "<->", "lw": 1.5})
        axes.text(3.5, 7.7, f"{shape[0]} elements", ha="center", va="center")
        axes.text(-0.2, -0.6, "base", color=BLUE, fontweight="bold")
        for number, (name, meaning) in enumerate(meanings):
            x, y = 7.7 + number // 5 * 6.4, 0.1 + number % 5 * 1.45
            axes.text(x, y, name, fontweight="bold", va="center")
            axes.text(x, y + 0.6, meaning, va="center")
        axes.set_title("What the 128 bytes of a tensor map say")
    told = "; ".join(f"{name}: {meaning}" for name, meaning in meanings)
    return Picture(
        figure, f"A matrix with one box inside, and the arguments of its tensor map. {told}."
    )


def _meanings(tmap: TensorMap) -> list[tuple[str, str]]:
    """Each argument and what it says, those that the drawing shows first."""
    every = "every one" if set(tmap.element_strides) == {1} else "not all"
    return [
        ("element type", tmap.dtype.value),
        ("base", "the address of x 0, y 0"),
        ("shape", f"{_by(tmap.dims)} elements, x first"),
        ("stride", f"{tmap.strides_bytes[0]} bytes from row to row"),
        ("box", f"{_by(tmap.box)}: what a copy moves"),
        ("element strides", f"{_by(tmap.element_strides)}: take {every}"),
        ("interleave", _choice(tmap.interleave, "plain rows")),
        ("swizzle", _choice(tmap.swizzle, "row after row")),
        ("L2 promotion", _choice(tmap.l2_promotion, "fetch no more")),
        ("fill", _choice(tmap.oob_fill, "zeros outside")),
    ]


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _choice(value: Enum, meaning_of_none: str) -> str:
    """An enumeration's value, and what it means where it is NONE."""
    return f"NONE: {meaning_of_none}" if value.value == "NONE" else str(value.value)
