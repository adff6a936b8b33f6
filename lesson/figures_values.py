"""Heatmaps of what came out: values before and after, right and wrong tiles, a store at an edge.

Does: arrays in, `Picture` out. Labels come from the arrays, so a broken run shows as broken.
Does not: run, compile or measure anything. Who wrote what is drawn in `figures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import ListedColormap

from lesson.figure_parts import Shape, legend, tile_axes, tiles
from lesson.figure_style import (
    BLUE,
    FONT_POINTS,
    INK,
    ORANGE,
    PALE,
    PAPER,
    PEACH,
    RED,
    SKY,
    Picture,
    new_figure,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def before_after(before: np.ndarray, after: np.ndarray, origin: Shape, size: int = 4) -> Picture:
    """The numbers in a corner of a tile before and after, and their difference everywhere.

    `before`, `after`: arrays (height, width). `origin`: x and y of the corner.
    """
    x, y = origin
    corner = np.s_[y : y + size, x : x + size]
    difference = after - before
    with style():
        figure = new_figure(11.6, 4.3)
        axes = figure.subplots(1, 3, width_ratios=[1, 1, 0.7])
        _numbers(axes[0], before[corner], origin, "Before: the input", SKY)
        _numbers(axes[1], after[corner], origin, "After: the output", ORANGE)
        _difference(axes[2], difference)
    same = np.unique(difference)
    wide = f"{same[0]:g} everywhere" if len(same) == 1 else f"{same[0]:g} to {same[-1]:g}"
    alt = (
        f"Before and after, from row {y}, column {x}. Before: {_row_text(before[corner][0])}."
        f" After: {_row_text(after[corner][0])}. Output minus input is {wide}."
    )
    return Picture(figure, alt)


def _row_text(values: Sequence[float] | np.ndarray) -> str:
    return ", ".join(f"{v:g}" for v in values)


def _numbers(axes: Axes, values: np.ndarray, origin: Shape, title: str, colour: str) -> None:
    """A grid of numbers, a coloured cell each."""
    rows, columns = values.shape
    axes.imshow(np.zeros_like(values), cmap=ListedColormap([colour]), alpha=0.35)
    for (row, column), value in np.ndenumerate(values):
        axes.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=FONT_POINTS)
    axes.set_xticks(range(columns), labels=range(origin[0], origin[0] + columns))
    axes.set_yticks(range(rows), labels=range(origin[1], origin[1] + rows))
    axes.hlines(np.arange(1, rows) - 0.5, -0.5, columns - 0.5, colors=PAPER, linewidth=2)
    axes.vlines(np.arange(1, columns) - 0.5, -0.5, rows - 0.5, colors=PAPER, linewidth=2)
    axes.set_title(title)
    axes.set_xlabel("column")
    axes.set_ylabel("row")


def _difference(axes: Axes, difference: np.ndarray) -> None:
    """Bars: how many elements differ by how much."""
    values, counts = np.unique(difference, return_counts=True)
    names = [f"{v:g}" for v in values]
    if len(values) > 4:
        values, counts = (
            np.array([1.0, 0.0]),
            np.array([(difference == 1).sum(), (difference != 1).sum()]),
        )
        names = ["1", "not 1"]
    colours = [BLUE if v == 1 else RED for v in values]
    bars = axes.bar(names, counts, color=colours, width=0.5)
    axes.bar_label(bars, labels=[str(int(c)) for c in counts], padding=3)
    axes.set_xlim(-0.8, max(0.8, len(names) - 0.2))
    axes.set_ylim(0, counts.max() * 1.15)
    axes.set_yticks([])
    axes.set_xlabel("output minus input")
    axes.set_title("All elements")
    axes.spines[["top", "right", "left"]].set_visible(False)


def tile_sources(
    after: np.ndarray, before: np.ndarray, tile: Shape
) -> list[list[tuple[int, int] | None]]:
    """For each tile of the output, [tile y][tile x]: (x, y) of the input tile that it holds.

    "Holds" means input plus 1, bit for bit; None where that is true of no tile of the input.
    """
    height, width = after.shape
    every = tiles(height, width, tile)
    known = {(before[rows, cols] + 1).tobytes(): (tx, ty) for tx, ty, rows, cols in every}
    found: list[list[tuple[int, int] | None]] = []
    for tile_x, _, rows, columns in every:
        if tile_x == 0:
            found.append([])
        found[-1].append(known.get(np.ascontiguousarray(after[rows, columns]).tobytes()))
    return found


def right_tiles(after: np.ndarray, before: np.ndarray, tile: Shape, title: str) -> Picture:
    """Which tiles of the output are right, and whose data the wrong ones hold.

    `after`, `before`: arrays (height, width); right is before + 1, bit for bit.
    """
    height, width = after.shape
    wrong = (after != before + 1).astype(int)
    sources = tile_sources(after, before, tile)
    right = 0
    with style():
        figure = new_figure(9.4, 5.8)
        axes = figure.add_subplot()
        colours = ListedColormap([BLUE, PEACH])
        axes.imshow(wrong, cmap=colours, vmin=0, vmax=1, interpolation="nearest")
        axes.set_anchor("W")
        tile_axes(axes, height, width, tile)
        for tile_x, tile_y, rows, columns in tiles(height, width, tile):
            fine = not wrong[rows, columns].any()
            right += fine
            source = sources[tile_y][tile_x]
            whose = f"holds\n{source}" if source is not None else "wrong"
            middle = (columns.start + tile[0] / 2 - 0.5, rows.start + tile[1] / 2 - 0.5)
            label, ink = ("right", PAPER) if fine else (whose, INK)
            axes.text(*middle, label, ha="center", va="center", color=ink, fontweight="bold")
        axes.set_title(title)
        counts = {"right": (BLUE, right), "wrong": (PEACH, sum(map(len, sources)) - right)}
        legend(axes, [(colour, f"{name}: {n} tiles") for name, (colour, n) in counts.items()])
    held = "; ".join(" ".join(str(s) if s else "no tile" for s in row) for row in sources)
    alt = (
        f"{title} {right} tiles are right. Rows of tiles from the top, each with the tile whose"
        f" data it holds: {held}."
    )
    return Picture(figure, alt)


def store_at_the_edge(before: np.ndarray, after: np.ndarray, width: int) -> Picture:
    """What a store changed in rows that are longer than the matrix is wide.

    `before`, `after`: arrays (height, columns of memory); the matrix is the first `width` columns.
    """
    changed = after != before
    inside = np.arange(after.shape[1]) < width
    kinds = np.where(changed, np.where(inside, 1, 2), 0)
    counts = [int((changed & inside).sum()), int((changed & ~inside).sum())]
    title = "A store at the right edge"
    with style():
        figure = new_figure(11.4, 4.4)
        axes = figure.add_subplot()
        axes.imshow(kinds, cmap=ListedColormap([PALE, SKY, RED]), vmin=0, vmax=2)
        for (row, column), value in np.ndenumerate(after):
            axes.text(column, row, f"{value:g}", ha="center", va="center", fontsize=FONT_POINTS - 1)
        axes.axvline(width - 0.5, color=INK, linewidth=3)
        axes.set_xticks(range(after.shape[1]))
        axes.set_yticks(range(after.shape[0]))
        axes.set_xlabel(f"column; the matrix ends after column {width - 1}")
        axes.set_ylabel("row")
        axes.set_title(title)
        axes.set_anchor("W")
        named = [(SKY, f"stored, inside:\n{counts[0]} elements")]
        named.append((RED, f"stored, in the padding:\n{counts[1]} elements"))
        legend(axes, named)
    columns = sorted(set(np.nonzero(changed & ~inside)[1].tolist()))
    alt = (
        f"{title}. {counts[0]} elements were stored inside the matrix, {counts[1]} in the padding"
        f" behind it, in columns {', '.join(map(str, columns)) or 'none'}."
    )
    return Picture(figure, alt)
