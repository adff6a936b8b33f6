"""Pictures of what was measured: bandwidth against threads, size, tile and kind of transpose.

Every number comes from a record of `lesson.bench`, and every picture says which GPU it was, and
when. The record is taken as it is: nothing is smoothed, quartiles are drawn where they show.
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
    PALE,
    RED,
    SKY,
    Picture,
    new_figure,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = dict[str, Any]
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
    "Triton": (GREY, "*", "--"),
}
_TMA_SWEEP = ("TMA ring, TMA store", "TMA ring")


def where(record: Record) -> str:
    """The line under each picture: which GPU, and when."""
    return f"{record['gpu']['name']}, driver {record['driver']}, {record['recorded']}"


def _signed(figure: Figure, record: Record) -> None:
    figure.supxlabel(where(record), x=0.995, ha="right", fontsize=10, color=GREY)


def _line(axes: Axes, name: str, xs: list[float], ys: list[float], **more: Any) -> None:
    colour, marker, dashes = _LINES[name]
    options = {"color": colour, "marker": marker, "linestyle": dashes, "linewidth": 2.2}
    axes.plot(xs, ys, label=name, markersize=7, **(options | more))


def _grid(axes: Axes) -> None:
    axes.grid(visible=True, color=PALE)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def threads(record: Record) -> Picture:
    """How many threads keep the memory busy: the picture to remember."""
    families = list(record["sweep"]["families"])
    with style():
        figure = new_figure(13, 5.6)
        left, right = figure.subplots(1, 2, sharey=True)
        for name in families:
            found = summary.points(record, name)
            one = sorted((t, s.median) for (t, b), s in found.items() if b == 1)
            small = sorted((b, s.median) for (t, b), s in found.items() if t == 32)
            _line(left, name, [x for x, _ in one], [100 * y for _, y in one])
            _line(right, name, [x for x, _ in small], [100 * y for _, y in small])
        _log2(left, [32, 64, 128, 256, 512, 1024])
        _log2(right, [1, 2, 4, 8, 16, 32])
        left.set_xlabel("threads of the only block on a multiprocessor")
        right.set_xlabel("blocks of 32 threads on a multiprocessor")
        left.set_ylabel("bandwidth, % of cudaMemcpy")
        left.set_ylim(0, 108)
        left.set_title("One warp is enough to ask")
        right.set_title("Plain loads need many warps")
        for axes in (left, right):
            axes.axhline(100, color=INK, linewidth=1)
            _grid(axes)
        right.legend(loc="lower right", fontsize=12)
        _signed(figure, record)
    alone = {name: 100 * summary.points(record, name)[32, 1].median for name in families}
    words = ", ".join(f"{name} {value:.0f} %" for name, value in alone.items())
    return Picture(
        figure,
        "Bandwidth against threads. With one block of 32 threads on each multiprocessor, in % of "
        f"cudaMemcpy: {words}.",
    )


def _log2(axes: Axes, ticks: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, labels=[str(tick) for tick in ticks])
    axes.minorticks_off()


def sizes(record: Record) -> Picture:
    """Bandwidth against size: launch, L2, then memory."""
    with style():
        figure = new_figure(13, 5.6)
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, kind in ((left, "cold"), (right, "warm")):
            for name, series in record["sizes"][kind].items():
                xs = sorted(map(int, series))
                ys = [summary.spread(x, series[str(x)]) for x in xs]
                _line(axes, name, xs, [y.median / 1000 for y in ys])
                low, high = [y.low / 1000 for y in ys], [y.high / 1000 for y in ys]
                axes.fill_between(xs, low, high, color=_LINES[name][0], alpha=0.15, linewidth=0)
            _log2(axes, [4 * MIB << n for n in range(0, 11, 2)])
            axes.set_xticklabels(["4 MiB", "16 MiB", "64 MiB", "256 MiB", "1 GiB", "4 GiB"])
            axes.set_xlabel("bytes read (as many are written)")
            axes.set_ylim(bottom=0)
            _grid(axes)
        left.set_ylabel("TB/s, read and written")
        left.set_title("Other data every time: HBM")
        right.set_title("The same data again: L2, while it fits")
        right.legend(fontsize=11, loc="upper right")
        _signed(figure, record)
    tb = summary.spread(4 * GIB, record["sizes"]["cold"][CEILING][str(4 * GIB)]).median / 1000
    return Picture(
        figure,
        "Bandwidth against size, from 4 MiB to 4 GiB, in a graph of launches: over new data and "
        f"over the same. At 4 GiB cudaMemcpy moves {tb:.2f} TB/s.",
    )


def copies(record: Record) -> Picture:
    """All contenders at 4 GiB, as ratios to the runtime's copy."""
    rows = summary.ranking(record["copies"])
    slow = [(name, s) for name, s in rows if s.median < 0.85]
    shown = [(name, s) for name, s in rows if s.median >= 0.85]
    with style():
        figure = new_figure(12, 0.42 * len(shown) + 2)
        axes = figure.subplots()
        for place, (name, s) in enumerate(reversed(shown)):
            colour = BLUE if summary.is_tma(name) else INK if name == CEILING else ORANGE
            axes.plot([s.low, s.high], [place, place], color=colour, linewidth=5, alpha=0.4)
            axes.plot(s.median, place, marker="o", color=colour, markersize=9)
            axes.text(s.high, place, f"  {s.median:.4f}", va="center")
        labels = [
            ("TMA: " if name.startswith(("lesson", "bulk")) else "") + name
            for name, _ in reversed(shown)
        ]
        axes.set_yticks(range(len(shown)), labels=labels)
        axes.axvline(1, color=INK, linewidth=1)
        axes.set_xlabel("bandwidth at 4 GiB, as a ratio to cudaMemcpy; bar: quartiles")
        axes.set_title("out = in + 1 beside a copy that adds nothing")
        axes.margins(x=0.12)
        _grid(axes)
        _signed(figure, record)
    best = next((name, s) for name, s in rows if summary.is_tma(name))
    text = "".join(f" Not shown: {name} at {s.median:.2f}." for name, s in slow)
    return Picture(
        figure,
        f"Contenders at 4 GiB as ratios to cudaMemcpy. The fastest TMA kernel is {best[0]} at "
        f"{best[1].median:.4f}.{text}",
    )


def transposes(record: Record, nbytes: int = GIB) -> Picture:
    """The transposes, with the bank conflicts that the profiler counted."""
    rows = [row for row in summary.transposes(record, nbytes) if row[0] != CEILING]
    kernels = record.get("counters", {}).get("kernels", {})
    with style():
        figure = new_figure(12, 0.55 * len(rows) + 2)
        axes = figure.subplots()
        for place, (name, s) in enumerate(reversed(rows)):
            colour = BLUE if name.startswith("TMA") else ORANGE
            axes.barh(place, s.median, color=colour, height=0.6)
            passes = summary.passes(kernels.get(name))
            words = f", {passes:.1f} passes an access" if passes else ""
            axes.text(s.median, place, f" {s.median:.3f}{words}", va="center")
        axes.set_yticks(range(len(rows)), labels=[name for name, _ in reversed(rows)])
        axes.axvline(1, color=INK, linewidth=1)
        axes.set_xlim(0, 1.5)
        axes.set_xlabel(f"bandwidth at {nbytes // GIB} GiB, as a ratio to cudaMemcpy")
        axes.set_title("Transposes: conflicts are what a swizzle takes away")
        _grid(axes)
        _signed(figure, record)
    words = ", ".join(f"{name} {s.median:.3f}" for name, s in rows)
    return Picture(figure, f"Transposes as ratios to cudaMemcpy: {words}.")


def edges(record: Record) -> Picture:
    """Ragged rows, narrow boxes and small boxes, with plain loads and with TMA."""
    section = record["edges"]
    top = summary.spread(section["ceiling_nbytes"], section["ceiling_ns"]).median
    titles = {"rows": "Rows that no tile fits", "width": "Narrow boxes", "bytes": "Small boxes"}
    with style():
        figure = new_figure(14, 6)
        for axes, (group, title) in zip(figure.subplots(1, 3), titles.items(), strict=True):
            rows = [row for row in section["rows"] if row["group"] == group]
            for shift, side, colour in ((0.2, "plain", ORANGE), (-0.2, "tma", BLUE)):
                for place, row in enumerate(reversed(rows)):
                    if side not in row:
                        axes.text(0.01, place + shift, "refused: no map", va="center", fontsize=10)
                        continue
                    ratio = summary.spread(row["nbytes"], row[side]["samples_ns"]).median / top
                    axes.barh(place + shift, ratio, height=0.38, color=colour)
            names = [row["name"].replace(": ", "\n") for row in reversed(rows)]
            axes.set_yticks(range(len(rows)), labels=names, fontsize=10)
            axes.set_xlim(0, 1.05)
            axes.set_title(title)
            axes.set_xlabel("ratio to cudaMemcpy", fontsize=12)
            _grid(axes)
        _signed(figure, record)
    return Picture(
        figure,
        "Bandwidth of ragged matrices, narrow boxes and small boxes; orange: plain loads, blue: "
        "TMA. Rows off by 4 bytes have no tensor map.",
    )


def instructions(record: Record) -> Picture:
    """What a tile costs in instructions: warp instructions for each KiB, from the profiler."""
    section = record["counters"]
    kib = section["nbytes"] / 1024
    rows = sorted(
        (counted["smsp__inst_executed.sum"] / kib, name)
        for name, counted in section["kernels"].items()
        if name in record["contenders"]
    )
    with style():
        figure = new_figure(12, 0.45 * len(rows) + 2)
        axes = figure.subplots()
        for place, (count, name) in enumerate(reversed(rows)):
            axes.barh(place, count, color=BLUE if summary.is_tma(name) else ORANGE, height=0.6)
            axes.text(count, place, f" {count:.1f}", va="center")
        axes.set_yticks(range(len(rows)), labels=[name for _, name in reversed(rows)])
        axes.set_xlabel("warp instructions executed for each KiB")
        axes.set_title("Issue slots that are left for arithmetic")
        axes.margins(x=0.1)
        _grid(axes)
        _signed(figure, record)
    words = ", ".join(f"{name} {count:.1f}" for count, name in rows)
    return Picture(figure, f"Warp instructions for each KiB: {words}.")


PICTURES = {
    "threads": threads, "sizes": sizes, "copies": copies, "transposes": transposes,
    "edges": edges, "instructions": instructions,
}  # fmt: skip
NEEDS = {
    "threads": "sweep", "sizes": "sizes", "copies": "copies", "transposes": "transposes",
    "edges": "edges", "instructions": "counters",
}  # fmt: skip
