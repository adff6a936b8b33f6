"""A broken kernel before its judges: the bits, an H200, compute-sanitizer, and this lesson.

Does: runs an edited kernel of the lesson under every schedule with `check`, and puts the finding
beside what an H200 and the four tools of compute-sanitizer said of a kernel with the same mistake.
Does not: run anything on a GPU, so the words are the same on both targets. What the H200 said is a
recording: `kernels/evidence/mistakes.json`, extracted from that of the whole battery.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from lesson import targets
from lesson.cards import Card, Row, Score, Scores
from lesson.check import check_case
from lesson.check_case import Case
from lesson.errors import LessonError
from lesson.findings import Outcome, Report
from lesson.kernel_source import TileKernel
from lesson.tensor_map import TensorMap

PATH = Path(__file__).parent / "kernels" / "evidence" / "mistakes.json"
HEADING = "What each judge says:"
NOT_TRIED = "not tried yet"
WHEN = {"eager": "at once", "late": "as late as they can", "random": "at random times"}
ERRORS = {
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "illegal instruction",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "illegal address",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "misaligned address",
    "CUDA_ERROR_LAUNCH_FAILED": "unspecified launch failure",
    "CUDA_ERROR_INVALID_VALUE": "invalid value",
}
ALL_RIGHT = "all bits right"


@dataclass(frozen=True)
class Recorded:
    """What an H200 made of one kernel of the battery. `tools`: what each said, or nothing."""

    case: str
    says: str
    outcome: str  # ok, wrong, hang or error
    error: str
    wrong_elements: int
    elements: int
    tools: dict[str, str]

    @property
    def on_the_chip(self) -> str:
        """The outcome in words."""
        words = _words(self.outcome, self.error, self.wrong_elements, self.elements)
        return f"{words}, by luck" if self.outcome == "ok" else words

    @property
    def by_the_tools(self) -> str:
        """What the four tools said, those with one answer together."""
        said = _by_answer((tool, text) for tool, text in self.tools.items())
        silent = said.pop("", [])
        words = [f'{", ".join(tools)}: "{text}"' for text, tools in said.items()]
        if not words:
            return f"all {len(silent)} tools: nothing"
        return "; ".join([*words, "the others: nothing"] if silent else words)


@cache
def recorded() -> dict[str, Recorded]:
    """The recordings by name of the case."""
    data = json.loads(PATH.read_text(encoding="utf-8"))
    return {case["case"]: Recorded(**case) for case in data["cases"]}


# What this session's kernels were found to be, by the recorded case that they are like.
_tried: dict[str, str] = {}


def diagnose(
    kernel: TileKernel, tensor_map: TensorMap | None, grid: targets.Grid | None, like: str | None
) -> Card:
    """The card of one kernel. `like`: the recorded case with the same mistake."""
    if like is not None and like not in recorded():
        raise LessonError(
            f"like must be one of {', '.join(recorded())}, got {like!r}. Leave it out where"
            " nothing was recorded."
        )
    report = check_kernel(kernel, tensor_map, grid)
    rows = [Row("the bits here", bits(report.outcomes, targets.new_matrix().size))]
    if like is not None:
        _tried[like] = report.findings[0].kind if report.findings else "nothing found"
        case = recorded()[like]
        rows += [Row("an H200", case.on_the_chip), Row("compute-sanitizer", case.by_the_tools)]
    rows += _findings(report)
    return Card(HEADING, tuple(rows), report.ok)


def who_noticed() -> Scores:
    """All recorded mistakes in a table, with what was found in this session."""
    return Scores(
        tuple(
            Score(case.says, case.on_the_chip, case.by_the_tools, _tried.get(name, NOT_TRIED))
            for name, case in recorded().items()
        )
    )


def check_kernel(
    kernel: TileKernel, tensor_map: TensorMap | None, grid: targets.Grid | None
) -> Report:
    """Findings for the lesson's kernel with a reader's edits, under every schedule."""
    source = kernel.source()
    tmap = tensor_map or targets.lesson_map()
    before = tmap.base
    case = Case(
        name=source.name,
        source=source.text,
        kernel=source.kernel,
        grid=grid or targets.full_grid(),
        block=(targets.threads_per_block(),),
        args=("map", "out"),
        arrays={"in": before, "out": np.zeros_like(before)},
        maps={"map": tmap},
        expected={"out": before + np.float32(1)},
        width=before.shape[1],
    )
    return check_case(case)


def bits(outcomes: Sequence[Outcome], elements: int) -> str:
    """What became of the runs, in words: one answer, or one a schedule."""
    counts = sorted({each.wrong_elements for each in outcomes if each.outcome == "wrong"})
    wrong = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]]))) if counts else ""
    said = _by_answer(
        (WHEN.get(each.where, each.where), _words(each.outcome, each.says, wrong, elements))
        for each in outcomes
    )
    if len(said) == 1:
        return next(iter(said))
    return "; ".join(f"{what} (copies land {' or '.join(when)})" for what, when in said.items())


def _words(outcome: str, error: str, wrong: int | str, elements: int) -> str:
    if outcome == "wrong":
        return f"{wrong} of {elements} elements wrong, no error"
    return {"ok": ALL_RIGHT, "error": ERRORS.get(error, error), "limit": "no end"}.get(
        outcome, outcome
    )


def _by_answer(said: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """(who, what) -> what: all who said it."""
    by_answer: dict[str, list[str]] = {}
    for who, what in said:
        by_answer.setdefault(what, []).append(who)
    return by_answer


def _findings(report: Report) -> list[Row]:
    if report.ok:
        return [Row("this lesson", "nothing found")]
    return [
        Row("this lesson", f"{each.kind}, {_where(each.line, report.name)}", each)
        for each in report.findings
    ]


def _where(line: int, name: str) -> str:
    return f"{name} line {line}" if line else "the launch"
