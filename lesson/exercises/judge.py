"""Judges a reader's answer to an exercise: what was asked, the bits, and the findings.

Does: compiles and checks it under every schedule (`check`), counts in one more run what the
exercise asks about, and puts it into a card that says why an answer is not right yet. On a GPU, an
answer that holds here runs there too, in a child process.
Does not: compare with a solution. Any kernel that does what was asked is right.
The words are the same on both targets, unless a GPU disagrees with the emulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from lesson import banks, check_gpu, emulator, mistakes, targets
from lesson import compile as compiler
from lesson.cards import Card, Row
from lesson.check import check_case
from lesson.check_case import Case
from lesson.errors import CompileError, LessonError, TensorMapError
from lesson.exercises.catalogue import Piece, Seen
from lesson.exercises.gap import Filled
from lesson.exercises.tally import Tally
from lesson.finding_kinds import KINDS, OUTPUT, REFUSED
from lesson.findings import Finding, Report
from lesson.tensor_map import TensorMap

MOST_POINTS = 3  # one for what was asked, and then one each for bits and findings
THREADS = 256
MAP_FIELDS = tuple(field.name for field in fields(TensorMap) if field.name != "base")


@dataclass(frozen=True)
class Answer:
    """What the check said. In plain text it is its points alone: what nbgrader reads as a grade."""

    card: Card
    points: int

    @property
    def ok(self) -> bool:
        """Whether the exercise is solved."""
        return self.points == MOST_POINTS

    def __repr__(self) -> str:
        return str(self.points)

    def _repr_html_(self) -> str:
        return f"<small>{self.points} of {MOST_POINTS} points</small>"


def judge(piece: Piece, filled: Filled, map_fields: Mapping[str, Any]) -> Answer:
    """The answer on a reader's lines and fields of the map."""
    try:
        case = case_of(piece, filled, map_fields)
        report = check_case(case)
        asked = _not_as_asked(piece, case, report)
    except CompileError as error:
        return _answer(piece, [Row("compiles", f"not yet. {_complaint(error, filled)}")], 0)
    except LessonError as error:
        return _answer(piece, [Row("runs", f"not yet. {error}")], 0)
    is_right = all(each.outcome == "ok" for each in report.outcomes)
    bits = mistakes.bits(report.outcomes, case.expected["out"].size)
    rows = [
        Row("asked", f"done: {piece.asks}" if asked is None else f"not yet. {asked}"),
        Row("bits", f"{bits}, whenever the copies land" if is_right else bits),
        *_findings(report, filled),
    ]
    points = 0 if asked is not None else 1 + is_right + report.ok
    if points == MOST_POINTS:
        disagreement = _on_this_gpu(case, report)
        if disagreement is not None:
            rows.append(disagreement)
            points -= 1
    return _answer(piece, rows, points)


def case_of(piece: Piece, filled: Filled, map_fields: Mapping[str, Any]) -> Case:
    """What there is to run."""
    width, height = piece.size
    matrix = np.arange(width * height, dtype=np.float32).reshape(height, width)
    right = (matrix.T if piece.is_transposed else matrix) + np.float32(1)
    out = np.zeros_like(right)
    maps = {"map": _tensor_map(piece, matrix, map_fields)}
    if piece.has_out_map:
        maps["outMap"] = TensorMap.from_array(out, piece.box)
    return Case(
        name=filled.name,
        source=filled.text,
        kernel=piece.kernel,
        grid=piece.grid,
        block=(THREADS,),
        args=(*maps, "out"),
        arrays={"in": matrix, "out": out},
        maps=maps,
        expected={"out": right},
        width=right.shape[1],
    )


def _tensor_map(piece: Piece, matrix: np.ndarray, given: Mapping[str, Any]) -> TensorMap:
    unknown = sorted(set(given) - set(MAP_FIELDS))
    if unknown:
        raise TensorMapError(
            f"a field of the map must be one of {', '.join(MAP_FIELDS)}, got {unknown[0]!r}."
            " Check its spelling."
        )
    width, height = piece.size
    own = {"dtype": "FLOAT32", "dims": (width, height), "strides_bytes": (width * 4,)}
    return TensorMap(**{**own, "box": piece.box, **given}, base=matrix)  # type: ignore[arg-type]


def _not_as_asked(piece: Piece, case: Case, report: Report) -> str | None:
    """Why it is not what was asked for: by the map, and by a run whose copies land late."""
    for map_want in piece.map_wants:
        if why := map_want(case.maps["map"], piece):
            return why
    if any(each.outcome not in ("ok", "wrong") for each in report.outcomes):
        return "Nothing can be counted in a kernel that does not come to its end."
    tally, counter = Tally(), banks.BankCounter()
    args, _ = case.fresh()
    ptx = compiler.to_ptx(case.source, name=case.name)
    emulator.launch(
        ptx.text, case.kernel, case.grid, case.block, args, schedule="late",
        observers=(tally, counter),
    )  # fmt: skip
    seen = Seen(tally, counter)
    return next(filter(None, (want(seen, piece) for want in piece.wants)), None)


def _complaint(error: CompileError, filled: Filled) -> str:
    """The compiler's first complaint, at the reader's own line."""
    if not error.errors:
        return str(error)
    first: Any = error.errors[0]
    more = len(error.errors) - 1
    place = filled.where(first.line) if first.file == filled.name else first.file
    rest = f" And {more} more." if more else ""
    return f"{place[0].upper()}{place[1:]}: {first.message}. `{first.source_line.strip()}`{rest}"


def _findings(report: Report, filled: Filled) -> list[Row]:
    if report.ok:
        return [Row("findings", "none")]
    return [_finding(each, filled) for each in report.findings]


def _finding(found: Finding, filled: Filled) -> Row:
    """A map that the reader gave stands in no line of the kernel."""
    if KINDS[found.kind].rank in (REFUSED, OUTPUT) and found.kind.startswith("map-"):
        plain = replace(found, source="", state=())
        return Row("findings", f"{found.kind}, your map", plain)
    return Row("findings", f"{found.kind}, {filled.where(found.line)}", found)


def _on_this_gpu(case: Case, report: Report) -> Row | None:
    """What a GPU makes of it, where that is not the same."""
    if targets.choose().name != targets.Name.GPU:
        return None
    ptx = compiler.to_ptx(case.source, name=case.name)
    outcome = check_gpu.on_the_gpu(case, ptx, list(report.outcomes))
    if outcome is None or outcome.outcome == "ok":
        return None
    return Row("this GPU", f"{mistakes.bits([outcome], case.expected['out'].size)}")


def _answer(piece: Piece, rows: list[Row], points: int) -> Answer:
    is_solved = points == MOST_POINTS
    state = "solved" if is_solved else "not solved yet"
    heading = f"{piece.name}: {state}, {points} of {MOST_POINTS} points:"
    ask = f'A hint, if you want one: helpers.exercise("{piece.name}").hint(1)'
    return Answer(Card(heading, tuple(rows), is_solved, "" if is_solved else ask), points)
