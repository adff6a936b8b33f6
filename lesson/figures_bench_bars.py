"""The benchmark's bars: all copies, transposes, edges and instructions. `figures_bench` lists them.

Does: what `figures_bench` does not draw as lines, and what both share. Every number comes from a
record of `lesson.bench`; what goes through TMA is blue and plain, what does not orange and hatched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.patches import Patch

from lesson.bench import summary
from lesson.bench.peers import CEILING, COPY_ONLY
from lesson.figure_style import BLUE, GREY, INK, ORANGE, PALE, Picture, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = dict[str, Any]
MIB, GIB = 1 << 20, 1 << 30

_BUSY = "smsp__issue_active.avg.pct_of_peak_sustained_active"
# (shift of the bar, key of the record, colour, hatch)
_SIDES = ((0.2, "plain", ORANGE, "//"), (-0.2, "tma", BLUE, ""))


def where(record: Record) -> str:
    """The line under each picture: which GPU, and when."""
    return f"{record['gpu']['name']}, driver {record['driver']}, {record['recorded']}"


def signed(figure: Figure, record: Record) -> None:
    """Writes that line."""
    figure.supxlabel(where(record), x=0.995, ha="right", fontsize=10, color=GREY)


def grid(axes: Axes) -> None:
    """A pale grid behind, and no frame above and to the right."""
    axes.grid(visible=True, color=PALE)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def size_of(nbytes: int) -> str:
    """4 MiB, 1 GiB."""
    return f"{nbytes // GIB} GiB" if nbytes >= GIB else f"{nbytes // MIB} MiB"


def copies(record: Record) -> Picture:
    """All contenders at 4 GiB, as ratios to the runtime's copy."""
    rows = summary.ranking(record["copies"])
    slow = [(name, s) for name, s in rows if s.median < 0.85]
    shown = [(name, s) for name, s in rows if s.median >= 0.85]
    with style():
        figure = new_figure(12, 0.42 * len(shown) + 2)
        axes = figure.subplots()
        for place, (name, s) in enumerate(reversed(shown)):
            colour, marker = _kind(name)
            axes.plot([s.low, s.high], [place, place], color=colour, linewidth=6, alpha=0.4)
            axes.plot(s.median, place, marker=marker, color=colour, markersize=9)
            axes.text(1.01, place, f"{s.median:.4f}", va="center",
                      transform=axes.get_yaxis_transform())  # fmt: skip
        axes.set_yticks(range(len(shown)), labels=[_told(name) for name, _ in reversed(shown)])
        axes.axvline(1, color=INK, linewidth=1)
        axes.set_xlabel("bandwidth at 4 GiB, as a ratio to cudaMemcpy; bar: quartiles")
        axes.set_title("out = in + 1 beside a copy that adds nothing")
        axes.margins(x=0.05)
        for label, name in (("through TMA", "TMA"), ("without", ""), ("only copies", CEILING)):
            axes.plot([], [], linestyle="", color=_kind(name)[0], marker=_kind(name)[1],
                      label=label, markersize=9)  # fmt: skip
        axes.legend(loc="center left", fontsize=13)
        grid(axes)
        signed(figure, record)
    best = next((name, s) for name, s in rows if summary.is_tma(name))
    text = "".join(f" Not shown: {name} at {s.median:.2f}." for name, s in slow)
    return Picture(
        figure,
        f"Contenders at 4 GiB as ratios to cudaMemcpy. The fastest TMA kernel is {best[0]} at "
        f"{best[1].median:.4f}.{text}",
    )


def _kind(name: str) -> tuple[str, str]:
    """Colour and marker: through TMA, only copying, or neither."""
    if name in COPY_ONLY:
        return INK, "x"
    through = summary.is_tma(name) or name == "Triton, descriptors"
    return (BLUE, "o") if through else (ORANGE, "D")


def _told(name: str) -> str:
    """A contender's name that says where TMA is in it."""
    return f"TMA: {name}" if name.startswith(("lesson", "bulk")) else name


def transposes(record: Record, nbytes: int = GIB) -> Picture:
    """The transposes, with the bank conflicts that the profiler counted."""
    rows = [row for row in summary.transposes(record, nbytes) if row[0] != CEILING]
    kernels = record.get("counters", {}).get("kernels", {})
    with style():
        figure = new_figure(13, 0.55 * len(rows) + 2)
        left, right = figure.subplots(1, 2, sharey=True)
        for place, (name, s) in enumerate(reversed(rows)):
            colour, hatch = (BLUE, "") if name.startswith("TMA") else (ORANGE, "//")
            left.barh(place, s.median, color=colour, hatch=hatch, height=0.6)
            left.text(1.03, place, f"{s.median:.3f}", va="center")
            times = summary.conflicts(kernels.get(name))
            right.barh(place, times, color=colour, hatch=hatch, height=0.6)
            right.text(times, place, f" {times:.1f} x" if times else " not counted", va="center")
        left.set_yticks(range(len(rows)), labels=[name for name, _ in reversed(rows)])
        left.axvline(1, color=INK, linewidth=1)
        left.set_xlim(0, 1.2)
        right.margins(x=0.2)
        left.set_xlabel(f"ratio to cudaMemcpy at {size_of(nbytes)}")
        right.set_xlabel("passes through shared memory, fewest = 1")
        left.set_title("Bandwidth of transposes")
        right.set_title("Bank conflicts")
        for axes in (left, right):
            grid(axes)
        signed(figure, record)
    words = ", ".join(f"{name} {s.median:.3f}" for name, s in rows)
    return Picture(figure, f"Transposes as ratios to cudaMemcpy: {words}.")


def edges(record: Record) -> Picture:
    """Ragged rows, narrow boxes and small boxes, with plain loads and with TMA."""
    section = record["edges"]
    top = summary.spread(section["ceiling_nbytes"], section["ceiling_ns"]).median
    titles = {"rows": "Rows that no tile fits", "width": "Narrow boxes", "bytes": "Small boxes"}
    with style():
        figure = new_figure(15, 6.4)
        for axes, (group, title) in zip(figure.subplots(1, 3), titles.items(), strict=True):
            rows = [row for row in section["rows"] if row["group"] == group]
            for shift, side, colour, hatch in _SIDES:
                for place, row in enumerate(reversed(rows)):
                    if side not in row:
                        axes.text(0.02, place + shift, "no map: refused", va="center", fontsize=12)
                        continue
                    ratio = summary.spread(row["nbytes"], row[side]["samples_ns"]).median / top
                    axes.barh(place + shift, ratio, height=0.38, color=colour, hatch=hatch)
            names = [row["name"].replace(": ", "\n") for row in reversed(rows)]
            axes.set_yticks(range(len(rows)), labels=names, fontsize=12)
            axes.set_xticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "", "0.5", "", "1"])
            axes.set_ylim(-0.6, len(rows) - 0.4)
            axes.set_xlim(0, 1.05)
            axes.set_title(title)
            axes.set_xlabel("ratio to cudaMemcpy", fontsize=12)
            grid(axes)
        figure.legend(
            handles=[Patch(color=c, hatch=h, label=w) for (_, _, c, h), w in zip(
                _SIDES, ("16-byte loads, where rows allow them", "TMA"), strict=True)],
            loc="outside lower left", ncols=2, fontsize=12,
        )  # fmt: skip
        signed(figure, record)
    return Picture(
        figure,
        "Bandwidth of ragged matrices, narrow boxes and small boxes, with plain loads and with "
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
            colour, hatch = (BLUE, "") if summary.is_tma(name) else (ORANGE, "//")
            axes.barh(place, count, color=colour, hatch=hatch, height=0.6)
            busy = section["kernels"][name].get(_BUSY)
            words = f" {count:.0f}" + (f"; {busy:.0f} % of issue slots" if busy else "")
            axes.text(count, place, words, va="center")
        axes.set_yticks(range(len(rows)), labels=[_told(name) for _, name in reversed(rows)])
        axes.set_xlabel("warp instructions executed for each KiB")
        axes.set_title("Setting a barrier up for every small tile costs instructions")
        axes.margins(x=0.4)
        grid(axes)
        signed(figure, record)
    words = ", ".join(f"{name} {count:.1f}" for count, name in rows)
    return Picture(figure, f"Warp instructions for each KiB: {words}.")
