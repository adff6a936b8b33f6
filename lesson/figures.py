"""Heatmaps of what a run did: who wrote which element, how often, and what came out.

Does: arrays in, `Picture` out. Labels come from the arrays, so a broken run shows as broken.
Does not: run, compile or measure anything. Drawings that explain an idea stand in `figures_story`.
Matrices are indexed [row, column]: one of height x width is drawn with x to the right and y down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from lesson.figure_style import (
    BLUE,
    FONT_POINTS,
    INK,
    ORANGE,
    PALE,
    PAPER,
    PEACH,
    RAMP,
    RED,
    SKY,
    Picture,
    new_figure,
    style,
    text_on,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Shape = tuple[int, int]
NOBODY = -1


def _tiles(height: int, width: int, tile: Shape) -> list[tuple[int, int, slice, slice]]:
    """(tile x, tile y, rows, columns) of each tile, row of tiles after row of tiles."""
    tile_width, tile_height = tile
    return [
        (x // tile_width, y // tile_height, slice(y, y + tile_height), slice(x, x + tile_width))
        for y in range(0, height, tile_height)
        for x in range(0, width, tile_width)
    ]


def _tile_axes(axes: Axes, height: int, width: int, tile: Shape, name: str = "") -> None:
    """Ticks and white lines at the tile borders; x to the right, y down."""
    xs, ys = np.arange(0, width + 1, tile[0]), np.arange(0, height + 1, tile[1])
    axes.set_xticks(xs - 0.5, labels=[str(x) for x in xs])
    axes.set_yticks(ys - 0.5, labels=[str(y) for y in ys])
    axes.set_xlabel(f"x (column{name})")
    axes.set_ylabel(f"y (row{name})")
    axes.vlines(xs[1:-1] - 0.5, -0.5, height - 0.5, colors=PAPER, linewidth=2.5)
    axes.hlines(ys[1:-1] - 0.5, -0.5, width - 0.5, colors=PAPER, linewidth=2.5)


def _legend(axes: Axes, entries: list[tuple[str, str]]) -> None:
    """(colour, label) pairs to the right of the drawing."""
    patches = [Patch(facecolor=colour, edgecolor=INK, label=label) for colour, label in entries]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.03, 1), frameon=False)


def _block_name(block: int, grid: Shape) -> str:
    """Linear block number as the (x, y) of blockIdx."""
    return f"({block % grid[0]}, {block // grid[0]})"


def tile_labels(writer_block: np.ndarray, grid: Shape, tile: Shape) -> list[list[str]]:
    """For each tile, [tile y][tile x]: the block that wrote all of it, "nobody" or "several"."""
    height, width = writer_block.shape
    labels: list[list[str]] = []
    for tile_x, _, rows, columns in _tiles(height, width, tile):
        writers = np.unique(writer_block[rows, columns])
        if tile_x == 0:
            labels.append([])
        if len(writers) > 1:
            labels[-1].append("several")
        else:
            only = int(writers[0])
            labels[-1].append("nobody" if only == NOBODY else _block_name(only, grid))
    return labels


def tile_writers(
    writer_block: np.ndarray, grid: Shape, tile: Shape, title: str = "Which block wrote which tile"
) -> Picture:
    """Heatmap of the writing block of each element, each tile labelled by the block that wrote it.

    `writer_block`: int array (height, width), blockIdx.y * gridDim.x + blockIdx.x, -1 for nobody.
    """
    height, width = writer_block.shape
    blocks = grid[0] * grid[1]
    labels = tile_labels(writer_block, grid, tile)
    with style():
        figure = new_figure(6.6, 5.6)
        axes = figure.add_subplot()
        # The ends are dropped: near-black and bright yellow hide the labels and the white lines.
        colours = matplotlib.colormaps[RAMP](np.linspace(0.05, 0.95, blocks))
        palette = ListedColormap(np.vstack([matplotlib.colors.to_rgba(PALE), colours]))
        axes.imshow(
            writer_block,
            cmap=palette,
            vmin=NOBODY - 0.5,
            vmax=blocks - 0.5,
            interpolation="nearest",
        )
        _tile_axes(axes, height, width, tile)
        for tile_x, tile_y, rows, columns in _tiles(height, width, tile):
            label = labels[tile_y][tile_x]
            block = int(writer_block[rows, columns][0, 0])
            ink = INK if label in ("nobody", "several") else text_on(palette(block + 1))
            axes.text(
                columns.start + tile[0] / 2 - 0.5,
                rows.start + tile[1] / 2 - 0.5,
                label,
                ha="center",
                va="center",
                color=ink,
                fontsize=FONT_POINTS + 1,
                fontweight="bold",
                bbox={"facecolor": PAPER, "edgecolor": "none"} if label == "several" else None,
            )
        axes.set_title(title)
    rows_of_text = "; ".join(" ".join(row) for row in labels)
    return Picture(
        figure, f"{title}. Rows of tiles from the top, labelled by block: {rows_of_text}."
    )


def thread_writers(writer_thread: np.ndarray, block_name: str, threads: int) -> Picture:
    """Left: the writing thread of each element of one tile. Right: its first rows, warp by warp.

    `writer_thread`: int array (tile height, tile width) of threadIdx.x, -1 where nobody wrote.
    """
    title = f"Which thread wrote which element of tile {block_name}"
    rows = max(1, threads // writer_thread.shape[1])
    with style():
        figure = new_figure(11.6, 5.4)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        ramp = matplotlib.colormaps[RAMP].with_extremes(under=PALE)
        image = left.imshow(
            writer_thread, cmap=ramp, vmin=0, vmax=threads - 1, interpolation="nearest"
        )
        height, width = writer_thread.shape
        left.set_xticks(np.arange(0, width + 1, 16) - 0.5, labels=range(0, width + 1, 16))
        left.set_yticks(np.arange(0, height + 1, 16) - 0.5, labels=range(0, height + 1, 16))
        left.set_xlabel("column of the tile")
        left.set_ylabel("row of the tile")
        left.set_title("The whole tile")
        ticks = [*range(0, threads, 64), threads - 1]
        figure.colorbar(image, ax=left, label="threadIdx.x", ticks=ticks, pad=0.02)
        _warp_rows(right, writer_thread[: rows + 1], threads)
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=FONT_POINTS + 4)
    first = writer_thread[0]
    alt = (
        f"{title}. Row 0 holds threads {first[0]} to {first[-1]} from left to right, a warp of 32"
        f" threads covers 32 neighbouring columns, and the pattern of {threads} threads repeats"
        f" every {rows} rows."
    )
    return Picture(figure, alt)


def warp_runs(threads_of_row: np.ndarray) -> list[tuple[int, int, int]]:
    """(warp, first column, columns) of each run of neighbouring elements that one warp wrote."""
    warps = np.where(threads_of_row < 0, NOBODY, threads_of_row // 32)
    starts = np.flatnonzero(np.diff(warps, prepend=warps[0] - 1))
    lengths = np.diff(starts, append=len(warps))
    return [(int(warps[s]), int(s), int(n)) for s, n in zip(starts, lengths, strict=True)]


def _warp_rows(axes: Axes, writer_thread: np.ndarray, threads: int) -> None:
    """The first rows of a tile as bars, a bar a warp."""
    ramp = matplotlib.colormaps[RAMP]
    for row, threads_of_row in enumerate(writer_thread):
        for warp, start, length in warp_runs(threads_of_row):
            colour = PALE if warp < 0 else ramp(warp * 32 / (threads - 1))
            axes.barh(
                row, length, left=start, height=0.82, color=colour, edgecolor=PAPER, linewidth=2
            )
            if length >= 16:
                name = "nobody" if warp < 0 else f"warp {warp}"
                ink = text_on(colour)
                axes.text(start + length / 2, row, name, ha="center", va="center", color=ink)
    axes.set_ylim(len(writer_thread) - 0.5, -0.5)
    axes.set_xlim(0, writer_thread.shape[1])
    axes.set_yticks(range(len(writer_thread)))
    axes.set_xticks(range(0, writer_thread.shape[1] + 1, 16))
    axes.set_xlabel("column of the tile")
    axes.set_title("First rows: a bar is 128 bytes")
    axes.spines[["top", "right"]].set_visible(False)


def write_counts(counts: np.ndarray, tile: Shape) -> Picture:
    """How often each element was written: never, once, or more, with the number of each.

    `counts`: int array (height, width).
    """
    height, width = counts.shape
    kinds = [
        ("never", counts == 0, RED),
        ("once", counts == 1, SKY),
        ("more than once", counts > 1, ORANGE),
    ]
    legend = [f"{name}: {int(mask.sum())} elements" for name, mask, _ in kinds]
    title = "How often each element was written"
    with style():
        figure = new_figure(9.4, 5.6)
        axes = figure.add_subplot()
        palette = ListedColormap([colour for _, _, colour in kinds])
        axes.imshow(np.clip(counts, 0, 2), cmap=palette, vmin=0, vmax=2, interpolation="nearest")
        axes.set_anchor("W")
        _tile_axes(axes, height, width, tile)
        _legend(axes, [(kind[2], label) for kind, label in zip(kinds, legend, strict=True)])
        axes.set_title(title)
    return Picture(figure, f"{title}. {'; '.join(legend)}.")


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
    tiles = _tiles(height, width, tile)
    known = {(before[rows, cols] + 1).tobytes(): (tx, ty) for tx, ty, rows, cols in tiles}
    found: list[list[tuple[int, int] | None]] = []
    for tile_x, _, rows, columns in tiles:
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
        _tile_axes(axes, height, width, tile)
        for tile_x, tile_y, rows, columns in _tiles(height, width, tile):
            fine = not wrong[rows, columns].any()
            right += fine
            source = sources[tile_y][tile_x]
            whose = f"holds\n{source}" if source is not None else "wrong"
            middle = (columns.start + tile[0] / 2 - 0.5, rows.start + tile[1] / 2 - 0.5)
            label, ink = ("right", PAPER) if fine else (whose, INK)
            axes.text(*middle, label, ha="center", va="center", color=ink, fontweight="bold")
        axes.set_title(title)
        counts = {"right": (BLUE, right), "wrong": (PEACH, sum(map(len, sources)) - right)}
        _legend(axes, [(colour, f"{name}: {n} tiles") for name, (colour, n) in counts.items()])
    held = "; ".join(" ".join(str(s) if s else "no tile" for s in row) for row in sources)
    alt = (
        f"{title} {right} tiles are right. Rows of tiles from the top, each with the tile whose"
        f" data it holds: {held}."
    )
    return Picture(figure, alt)
