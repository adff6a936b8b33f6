"""Pictures of what was measured: bandwidth against threads, size, tile and kind of transpose.

Every number comes from a record of `lesson.bench`, and every picture says which GPU it was, and
when. The record is taken as it is: nothing is smoothed, quartiles are drawn where they show. What
was measured here and now is drawn over a record in black stars, and nothing else is a star.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lesson.bench import summary
from lesson.bench.peers import CEILING
from lesson.figure_style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PAPER,
    RED,
    SKY,
    Picture,
    new_figure,
    style,
)
from lesson.figures_bench_bars import copies, edges, grid, instructions, signed, size_of, transposes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Record = dict[str, Any]
Points = dict[tuple[str, int], float]
MIB, GIB = 1 << 20, 1 << 30

# (colour, marker, dashes): a line can be told by any of the three.
_LINES = {
    "TMA ring, TMA store": (BLUE, "o", "-"),
    "TMA ring": (SKY, "s", "-"),
    "TMA one tile": (SKY, "s", "-"),
    "TMA ring, TMA store, persistent": (BLUE, "o", "-"),
    "cp.async": (GREEN, "^", "-"),
    "plain 16-byte": (ORANGE, "D", "--"),
    "plain 4-byte": (RED, "v", ":"),
    "cudaMemcpy": (INK, "x", "-"),
    "torch.add": (RED, "v", ":"),
    "CuPy kernel, float4": (GREEN, "^", "--"),
    "cupy.add": (GREY, "P", ":"),
    "Triton": (GREY, "h", "--"),
}


def _line(axes: Axes, name: str, xs: list[float], ys: list[float], **more: Any) -> None:
    colour, marker, dashes = _LINES[name]
    options = {"color": colour, "marker": marker, "linestyle": dashes, "linewidth": 2.2}
    axes.plot(xs, ys, label=name, markersize=7, **(options | more))


def threads(record: Record, here: Points | None = None) -> Picture:
    """How many threads keep the memory busy: the picture to remember.

    `here`: (kernel, threads of the only block on a multiprocessor) -> share of cudaMemcpy, as
    measured on this machine.
    """
    families = list(record["sweep"]["families"])
    with style():
        figure = new_figure(13, 6)
        left, right = figure.subplots(1, 2, sharey=True)
        for name in families:
            found = summary.points(record, name)
            one = sorted((t, s.median) for (t, b), s in found.items() if b == 1)
            small = sorted((b, s.median) for (t, b), s in found.items() if t == 32)
            _line(left, name, [x for x, _ in one], [100 * y for _, y in one])
            _line(right, name, [x for x, _ in small], [100 * y for _, y in small])
        _share_axes(left, right)
        if here is not None:
            _measured_here(left, here)
        right.legend(loc="lower right", fontsize=12)
        signed(figure, record)
    alone = {name: 100 * summary.points(record, name)[32, 1].median for name in families}
    words = ", ".join(f"{name} {value:.0f} %" for name, value in alone.items())
    return Picture(
        figure,
        "Bandwidth against threads. With one block of 32 threads on each multiprocessor, in % of "
        f"cudaMemcpy: {words}.",
    )


def _share_axes(left: Axes, right: Axes) -> None:
    _log2(left, [32, 64, 128, 256, 512, 1024])
    _log2(right, [1, 2, 4, 8, 16, 32])
    left.set_xlabel("threads of the only block on a multiprocessor")
    right.set_xlabel("blocks of 32 threads on a multiprocessor")
    left.set_ylabel("bandwidth, % of cudaMemcpy")
    left.set_ylim(0, 112)
    left.set_title("Asynchronous: one warp is enough")
    right.set_title("Plain loads need many warps")
    for axes in (left, right):
        axes.axhline(100, color=INK, linewidth=1)
        grid(axes)
    left.text(32, 101.5, "cudaMemcpy", fontsize=12)
    right.text(1, 101.5, "cudaMemcpy", fontsize=12)


def _measured_here(axes: Axes, here: Points) -> None:
    """Black stars, and a box that says what they are."""
    xs, ys = [n for _, n in here], [100 * share for share in here.values()]
    axes.plot(xs, ys, linestyle="", marker="*", markersize=17, color=INK, zorder=5)
    words = (
        "stars: MEASURED HERE, now\nlines: recorded on an H200"
        if here
        else "all RECORDED on an H200:\nnothing is measured here"
    )
    box = {"boxstyle": "round", "facecolor": PAPER, "edgecolor": INK, "linewidth": 1.5}
    axes.text(0.97, 0.06, words, transform=axes.transAxes, ha="right", fontsize=13, bbox=box)


def _log2(axes: Axes, ticks: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, labels=[str(tick) for tick in ticks])
    axes.minorticks_off()


def sizes(record: Record) -> Picture:
    """Bandwidth against size: launch, L2, then memory."""
    with style():
        figure = new_figure(14, 6)
        left, right = figure.subplots(1, 2)
        for axes, kind in ((left, "cold"), (right, "warm")):
            for name, series in record["sizes"][kind].items():
                xs = sorted(map(int, series))
                ys = [summary.spread(x, series[str(x)]) for x in xs]
                _line(axes, name, xs, [y.median / 1000 for y in ys])
                low, high = [y.low / 1000 for y in ys], [y.high / 1000 for y in ys]
                axes.fill_between(xs, low, high, color=_LINES[name][0], alpha=0.15, linewidth=0)
            axes.set_xlabel("bytes read (as many are written)")
            axes.set_ylim(bottom=0)
            grid(axes)
        for axes, count in ((left, 11), (right, 7)):
            ticks = [4 * MIB << n for n in range(0, count, 2)]
            _log2(axes, ticks)
            axes.set_xticklabels([size_of(tick) for tick in ticks])
        left.set_ylabel("TB/s, read and written")
        left.set_title("Other data every time: memory")
        right.set_title("The same data again: L2, while it fits")
        figure.legend(*left.get_legend_handles_labels(), fontsize=12, loc="outside lower left",
                      ncols=4)  # fmt: skip
        signed(figure, record)
    graph = summary.spread(4 * GIB, record["sizes"]["cold"][CEILING][str(4 * GIB)]).median / 1000
    return Picture(
        figure,
        "Bandwidth against size, from 4 MiB to 4 GiB, in a graph of launches: over new data and "
        f"over the same. As a node of a graph, cudaMemcpy moves {graph:.2f} TB/s at 4 GiB.",
    )


PICTURES = {
    "threads": threads, "sizes": sizes, "copies": copies, "transposes": transposes,
    "edges": edges, "instructions": instructions,
}  # fmt: skip
NEEDS = {
    "threads": "sweep", "sizes": "sizes", "copies": "copies", "transposes": "transposes",
    "edges": "edges", "instructions": "counters",
}  # fmt: skip
