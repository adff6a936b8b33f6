"""The timeline of one block: who does what when, in lanes, over the counts of its barrier.

Does: a `Timeline` in, `Picture` out; every box, bar and number is an event or a count of it. The
axis is the order of events: the emulator knows no durations.
Does not: run anything, or hide what went wrong: a run that hangs ends in a box that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.patches import FancyBboxPatch, Rectangle

from lesson.figure_style import (
    BLUE,
    FONT_POINTS,
    GREEN,
    INK,
    ORANGE,
    PALE,
    PAPER,
    PEACH,
    RED,
    SKY,
    WASH,
    Picture,
    bare,
    new_figure,
    style,
    text_on,
)
from lesson.timeline import Moment, Timeline, spans
from lesson.timeline_events import BarrierState, Kind
from lesson.timeline_words import Actor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_COLUMNS = 14
LANES = tuple(Actor)
COLOURS = {
    Actor.THREAD_0: ORANGE,
    Actor.OTHERS: SKY,
    Actor.ENGINE: BLUE,
    Actor.BARRIER: GREEN,
}
_BOX_HEIGHT = 0.74
_COUNT_TOP, _COUNT_STEP = 3.8, 0.56
_COUNTS = ("phase", "missing arrivals", "missing bytes")


@dataclass(frozen=True)
class Column:
    """One column of the picture: a moment, or several alike that follow one another."""

    first: Moment
    last: Moment
    times: int = 1

    @property
    def label(self) -> str:
        """What stands in its box."""
        return f"{self.first.label}\n{self.times} x" if self.times > 1 else self.first.label


def columns(timeline: Timeline) -> list[Column]:
    """The moments, alike ones in one column."""
    found: list[Column] = []
    for moment in timeline.moments:
        before = found[-1] if found else None
        if before and _alike(before.first, moment):
            found[-1] = Column(before.first, moment, before.times + 1)
        else:
            found.append(Column(moment, moment))
    return found


def _alike(one: Moment, other: Moment) -> bool:
    return (one.kind, one.by, one.file, one.line) == (other.kind, other.by, other.file, other.line)


def swim_lanes(timeline: Timeline) -> Picture:
    """Lanes for thread 0, the other threads and the engine, and the barrier's counts below."""
    every = columns(timeline)
    shown = every[:MAX_COLUMNS]
    x, y = timeline.block
    title = f"One tile, from the request to the last store: block ({x}, {y}) in the emulator"
    with style():
        figure = new_figure(13.2, 6.0)
        axes = figure.add_subplot()
        bare(axes)
        width = max(len(shown) + bool(timeline.ended), 8)
        axes.set_xlim(-2.2, width)
        axes.set_ylim(_COUNT_TOP + 3 * _COUNT_STEP + 0.42, -0.56)
        _lane_names(axes, timeline, width)
        _waits(axes, shown)
        _flights(axes, shown)
        for at, column in enumerate(shown):
            _boxes(axes, at, column)
        _counts(axes, shown)
        if timeline.ended:
            _end(axes, len(shown), timeline.ended)
        axes.set_title(title)
    return Picture(figure, alt_text(timeline))


def alt_text(timeline: Timeline) -> str:
    """The story in words: every column, with the counts where they change."""
    told, before = [], None
    for column in columns(timeline):
        says = column.first.says if column.times == 1 else f"{column.times} times: {_often(column)}"
        now = column.last.barrier
        if now is not None and now != before:
            says += f" (phase {now.phase}, missing: {now.pending} arrivals, {now.tx_nbytes} bytes)"
        told.append(says)
        before = now
    if timeline.ended:
        told.append(f"the run ends here: {timeline.ended}")
    x, y = timeline.block
    return f"Timeline of block ({x}, {y}), as the emulator recorded it. {'; '.join(told)}."


def _often(column: Column) -> str:
    return f"{column.first.says}, up to: {column.last.says}"


def _lane_y(actor: Actor) -> float:
    return float(LANES.index(actor))


def _lane_names(axes: Axes, timeline: Timeline, width: float) -> None:
    names = ["thread 0", f"the other {timeline.threads - 1}", "TMA engine", "mbarrier"]
    for actor, name in zip(LANES, names, strict=True):
        y = _lane_y(actor)
        axes.add_patch(
            Rectangle((-0.08, y - 0.44), width + 0.08, 0.88, facecolor=WASH, edgecolor="none")
        )
        axes.text(-0.2, y, name, ha="right", va="center", fontweight="bold")
    for row, name in enumerate(_COUNTS):
        y = _COUNT_TOP + row * _COUNT_STEP
        axes.text(-0.2, y, name, ha="right", va="center")
    axes.text(-0.2, _count_foot(), "line of code", ha="right", va="center")


def _count_foot() -> float:
    return _COUNT_TOP + len(_COUNTS) * _COUNT_STEP + 0.14


def _boxes(axes: Axes, at: int, column: Column) -> None:
    """The boxes of one column, one a lane; what two lanes do together is one box over both."""
    moment = column.first
    lanes = [actor for actor in LANES if actor in moment.by]
    if lanes:
        top = _lane_y(lanes[0]) - _BOX_HEIGHT / 2
        height = _lane_y(lanes[-1]) - _lane_y(lanes[0]) + _BOX_HEIGHT
        colour = COLOURS[lanes[0]] if len(lanes) == 1 else PEACH
        _box(axes, (at + 0.05, top), (0.9, height), column.label, colour)
    where = str(moment.line) if moment.line else "–"
    axes.text(at + 0.5, _count_foot(), where, ha="center", va="center", fontsize=FONT_POINTS - 1)


def _box(
    axes: Axes, corner: tuple[float, float], size: tuple[float, float], text: str, colour: str
) -> None:
    shape = "round,pad=0,rounding_size=0.07"
    axes.add_patch(
        FancyBboxPatch(corner, *size, boxstyle=shape, facecolor=colour, edgecolor=INK, zorder=3)
    )
    axes.text(
        corner[0] + size[0] / 2,
        corner[1] + size[1] / 2,
        text,
        ha="center",
        va="center",
        color=text_on(colour),
        fontsize=FONT_POINTS - 1,
        linespacing=1.05,
        zorder=4,
    )


def _kinds(shown: list[Column]) -> list[Kind]:
    return [column.first.kind for column in shown]


def _waits(axes: Axes, shown: list[Column]) -> None:
    """Hatched bars while threads sleep at the barrier."""
    for start, stop in spans(_kinds(shown), Kind.WAIT, Kind.WAKE):
        for actor in shown[start].first.by:
            corner = (start + 0.95, _lane_y(actor) - 0.16)
            axes.add_patch(
                Rectangle(
                    corner, stop - start - 0.9, 0.32, facecolor=PAPER, edgecolor=INK, hatch="///"
                )
            )


def _flights(axes: Axes, shown: list[Column]) -> None:
    """A bar in the engine's lane while a copy is under way, and the request that starts it."""
    for start, stop in spans(_kinds(shown), Kind.ISSUE, Kind.LAND):
        y = _lane_y(Actor.ENGINE)
        axes.add_patch(
            Rectangle((start + 0.5, y - 0.2), stop - start - 0.45, 0.4, facecolor=BLUE, alpha=0.35)
        )
        axes.annotate(
            "",
            (start + 0.5, y + 0.2),
            (start + 0.5, _lane_y(shown[start].first.by[-1]) + _BOX_HEIGHT / 2),
            arrowprops={"arrowstyle": "-|>", "lw": 2.5, "color": BLUE, "mutation_scale": 20},
            zorder=2,
        )
        if stop - start > 1:
            middle = (start + stop + 0.8) / 2
            axes.text(middle, y, "under way", ha="center", va="center")


def _counts(axes: Axes, shown: list[Column]) -> None:
    """The barrier's phase and counts after each column; what changed stands out."""
    before: tuple[int, ...] | None = None
    for at, column in enumerate(shown):
        state = column.last.barrier
        if state is None:
            continue
        now = _numbers(state)
        for row, value in enumerate(now):
            has_changed = before is None or before[row] != value
            y = _COUNT_TOP + row * _COUNT_STEP
            colour = (ORANGE if row == 0 else SKY) if has_changed else PALE
            corner, size = (at + 0.03, y - _COUNT_STEP / 2 + 0.03), (0.94, _COUNT_STEP - 0.06)
            axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor="none"))
            axes.text(
                at + 0.5,
                y,
                str(value),
                ha="center",
                va="center",
                fontsize=FONT_POINTS - 1,
                fontweight="bold" if has_changed else None,
            )
        before = now


def _numbers(state: BarrierState) -> tuple[int, int, int]:
    return state.phase, state.pending, state.tx_nbytes


def _end(axes: Axes, at: int, ended: str) -> None:
    """Where a run came to no end."""
    top = _lane_y(LANES[0]) - _BOX_HEIGHT / 2
    height = _lane_y(LANES[-1]) + _BOX_HEIGHT / 2 - top
    _box(axes, (at + 0.05, top), (0.9, height), ended.replace(" ", "\n"), RED)
