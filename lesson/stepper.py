"""The timeline as a thing to step through: a slider, the tile, the barrier and the source line.

Does: a `Timeline` in; out comes one HTML fragment with its data, style and script inside, which
needs no kernel, no network and no other file, so it works in JupyterLab, in Colab and in a page
that was exported. Where scripts do not run, the fragment shows the still timeline, which the bundle
also carries as PNG for exports to paper.
Does not: run the kernel (`timeline` does) or draw the still picture (`figures_timeline` does).
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lesson import figure_style as look
from lesson import figures_timeline
from lesson.timeline import Moment, Timeline, spans
from lesson.timeline_events import Kind
from lesson.timeline_words import Actor

_FOLDER = Path(__file__).parent
MAX_STEPS = 300
_NOTHING: dict[str, Any] = {"by": (), "line": -1, "land": (), "read": (), "store": ()}
_NOTES = {
    Actor.ENGINE: "The engine does this, not a thread: no line of the program is at work.",
    Actor.BARRIER: "The barrier does this by itself: no line of the program is at work.",
}
_NAMES = ("ink", "paper", "grey", "pale", "wash", "blue", "sky", "green", "orange", "red", "peach")


@dataclass(frozen=True)
class Stepper:
    """What the last expression of a notebook cell shows. `picture` is its still form."""

    timeline: Timeline
    picture: look.Picture

    @property
    def alt(self) -> str:
        """The whole story in words."""
        return self.picture.alt

    def html(self) -> str:
        """The fragment."""
        colours = " ".join(f"--{name}: {getattr(look, name.upper())};" for name in _NAMES)
        data = json.dumps(facts(self.timeline), separators=(",", ":"), ensure_ascii=False)
        data = data.replace("<", "\\u003c")  # which could end the script that holds them
        script, css = _asset("stepper.js"), _asset("stepper.css")
        return (
            f'<div class="tma-stepper" style="{html.escape(colours)}">\n'
            f"{self.picture.html()}\n"
            f'<script type="application/json">{data}</script>\n'
            f"</div>\n<style>\n{css}</style>\n<script>\n{script}</script>"
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The fragment, the still picture for paper, and the words for a terminal."""
        return {
            "text/html": self.html(),
            "image/png": self.picture.base64,
            "text/plain": self.alt,
        }


def of(timeline: Timeline) -> Stepper:
    """The stepper of a timeline, with the swim lanes as its still picture."""
    return Stepper(timeline, figures_timeline.swim_lanes(timeline))


def facts(timeline: Timeline) -> dict[str, Any]:
    """What the script knows: plain numbers and words, the same for the same run."""
    x, y = timeline.block
    places = {(file, line): at for at, (file, line, _) in enumerate(timeline.listing)}
    shown = timeline.moments[:MAX_STEPS]
    steps = [_step(moment, places) for moment in shown]
    if ended := _ending(timeline):
        steps.append(
            {**steps[-1], **_NOTHING, "kind": "end", "says": ended, "note": "No thread acts."}
        )
    return {
        "title": f"Step by step: block ({x}, {y}), as the emulator recorded it",
        "lanes": ["thread 0", f"the other {timeline.threads - 1}", "TMA engine", "mbarrier"],
        "tile": timeline.tile,
        "arrivals": timeline.most_pending,
        "nbytes": timeline.most_nbytes,
        "lines": [[line, text.rstrip()] for _, line, text in timeline.listing],
        "spans": _spans(shown),
        "steps": steps,
    }


def _ending(timeline: Timeline) -> str:
    """What the last step says where the story does not end by itself, else nothing."""
    if not timeline.moments:
        return ""
    if len(timeline.moments) > MAX_STEPS:
        return f"{len(timeline.moments) - MAX_STEPS} more steps follow, not shown"
    return f"the run ends here: {timeline.ended}" if timeline.ended else ""


def _step(moment: Moment, places: dict[tuple[str, int], int]) -> dict[str, Any]:
    state = moment.barrier
    return {
        "kind": moment.kind.value,
        "by": [_lane(actor) for actor in moment.by],
        "says": moment.says,
        "line": places.get((moment.file, moment.line), -1),
        "note": _NOTES.get(moment.by[0], "The end of the kernel."),
        "barrier": (state.phase, state.pending, state.tx_nbytes) if state else None,
        "land": moment.landed,
        "read": moment.read,
        "store": moment.stored,
    }


def _spans(moments: tuple[Moment, ...]) -> list[tuple[int, int, int]]:
    """(lane, from step, to step): threads that wait, and copies that are under way."""
    kinds = [moment.kind for moment in moments]
    waits = [
        (_lane(actor), start, stop)
        for start, stop in spans(kinds, Kind.WAIT, Kind.WAKE)
        for actor in moments[start].by
    ]
    flights = spans(kinds, Kind.ISSUE, Kind.LAND)
    return waits + [(_lane(Actor.ENGINE), start, stop) for start, stop in flights]


def _lane(actor: Actor) -> int:
    return list(Actor).index(actor)


@cache
def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
