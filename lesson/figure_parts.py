"""What several heatmaps share: tiles, their borders and ticks, a legend beside the drawing.

Matrices are indexed [row, column]: one of height x width is drawn with x to the right and y down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Patch

from lesson.figure_style import INK, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Shape = tuple[int, int]
NOBODY = -1


def tiles(height: int, width: int, tile: Shape) -> list[tuple[int, int, slice, slice]]:
    """(tile x, tile y, rows, columns) of each tile, row of tiles after row of tiles."""
    tile_width, tile_height = tile
    return [
        (x // tile_width, y // tile_height, slice(y, y + tile_height), slice(x, x + tile_width))
        for y in range(0, height, tile_height)
        for x in range(0, width, tile_width)
    ]


def tile_axes(axes: Axes, height: int, width: int, tile: Shape, name: str = "") -> None:
    """Ticks and white lines at the tile borders; x to the right, y down."""
    xs, ys = np.arange(0, width + 1, tile[0]), np.arange(0, height + 1, tile[1])
    axes.set_xticks(xs - 0.5, labels=[str(x) for x in xs])
    axes.set_yticks(ys - 0.5, labels=[str(y) for y in ys])
    axes.set_xlabel(f"x (column{name})")
    axes.set_ylabel(f"y (row{name})")
    axes.vlines(xs[1:-1] - 0.5, -0.5, height - 0.5, colors=PAPER, linewidth=2.5)
    axes.hlines(ys[1:-1] - 0.5, -0.5, width - 0.5, colors=PAPER, linewidth=2.5)


def legend(axes: Axes, entries: list[tuple[str, str]]) -> None:
    """(colour, label) pairs to the right of the drawing."""
    patches = [Patch(facecolor=colour, edgecolor=INK, label=label) for colour, label in entries]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.03, 1), frameon=False)
