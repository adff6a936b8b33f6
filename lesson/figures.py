"""Heatmaps of who wrote what: which block, which thread, how often.

Does: arrays in, `Picture` out. Labels come from the arrays, so a broken run shows as broken.
Does not: run, compile or measure anything. What came out is drawn in `figures_values`, and drawings
that explain an idea stand in `figures_story`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap

from lesson.figure_parts import NOBODY, Shape, legend, tile_axes, tiles
from lesson.figure_style import (
    FONT_POINTS,
    INK,
    PALE,
    PAPER,
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


def _block_name(block: int, grid: Shape) -> str:
    """Linear block number as the (x, y) of blockIdx."""
    return f"({block % grid[0]}, {block // grid[0]})"


def tile_labels(writer_block: np.ndarray, grid: Shape, tile: Shape) -> list[list[str]]:
    """For each tile, [tile y][tile x]: the block that wrote all of it, "nobody" or "several"."""
    height, width = writer_block.shape
    labels: list[list[str]] = []
    for tile_x, _, rows, columns in tiles(height, width, tile):
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
        tile_axes(axes, height, width, tile)
        for tile_x, tile_y, rows, columns in tiles(height, width, tile):
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


def _times(counts: np.ndarray) -> str:
    """How often the elements of one tile were written, from the rarest to the most frequent."""
    least, most = int(counts.min()), int(counts.max())
    if most == 0:
        return "never"
    return f"{least} x" if least == most else f"{least} to {most} x"


def write_counts(counts: np.ndarray, tile: Shape) -> Picture:
    """How often each element was written: never, once, or more, with the number of each.

    `counts`: int array (height, width).
    """
    height, width = counts.shape
    kinds = [
        ("never", counts == 0, PALE),
        ("once", counts == 1, SKY),
        ("more than once", counts > 1, RED),
    ]
    labels = [f"{name}: {int(mask.sum())} elements" for name, mask, _ in kinds]
    title = "How often each element was written"
    with style():
        figure = new_figure(10.6, 5.6)
        axes = figure.add_subplot()
        palette = ListedColormap([colour for _, _, colour in kinds])
        axes.imshow(np.clip(counts, 0, 2), cmap=palette, vmin=0, vmax=2, interpolation="nearest")
        axes.set_anchor("W")
        tile_axes(axes, height, width, tile)
        for _, _, rows, columns in tiles(height, width, tile):
            axes.text(
                columns.start + tile[0] / 2 - 0.5,
                rows.start + tile[1] / 2 - 0.5,
                _times(counts[rows, columns]),
                ha="center",
                va="center",
                fontweight="bold",
            )
        legend(axes, [(kind[2], label) for kind, label in zip(kinds, labels, strict=True)])
        axes.set_title(title)
    return Picture(figure, f"{title}. {'; '.join(labels)}.")
