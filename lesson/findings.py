"""A finding: one mistake of a kernel, named, with its place, its proof and its cure.

Records only. What kinds there are stands in `finding_kinds`, how they are found in `check` and in
the emulator's `ordering`, how they are shown in `diagnosis`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

Xyz = tuple[int, int, int]


@dataclass(frozen=True)
class Place:
    """A line that has to do with a finding, and how. `line` 0: the place has no source line."""

    line: int
    role: str
    source: str = ""


@dataclass(frozen=True)
class Finding:
    """One mistake.

    `kind`: a stable short name of `finding_kinds`. `says`: one sentence for a learner. `line`,
    `file`, `source`: where, in the .cu file or cell (line 0: nowhere in the text). `block`,
    `thread`: (x, y, z) of the first thread that did it. `state`: the proof, as pairs of a name and
    a value. `cure`: what to do. `places`: other lines that belong to it. `schedules`: under which
    schedules of the copies it showed. `times`: how often. `is_proved`: the sums of the barriers
    prove this cause, whatever else was seen before.
    """

    kind: str
    says: str
    cure: str
    line: int = 0
    file: str = ""
    source: str = ""
    block: Xyz | None = None
    thread: Xyz | None = None
    state: tuple[tuple[str, str], ...] = ()
    places: tuple[Place, ...] = ()
    schedules: tuple[str, ...] = ()
    times: int = 1
    is_proved: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two findings the same mistake."""
        return self.kind, self.file, self.line

    def as_json(self) -> dict[str, Any]:
        """Plain data, for `--json`."""
        return {**asdict(self), "state": dict(self.state)}


@dataclass(frozen=True)
class Outcome:
    """What became of one run: ok, wrong, hang, error or limit, and a sentence. `where`: schedule,
    or the GPU."""

    where: str
    outcome: str
    says: str = ""
    wrong_elements: int = 0


@dataclass(frozen=True)
class Report:
    """All that a check found. `also`: what else was seen, most likely as a consequence."""

    name: str
    findings: tuple[Finding, ...] = ()
    also: tuple[Finding, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """Plain data, for `--json`."""
        return {
            "name": self.name,
            "ok": self.ok,
            "findings": [each.as_json() for each in self.findings],
            "also": [each.as_json() for each in self.also],
            "outcomes": [asdict(each) for each in self.outcomes],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        from lesson.diagnosis import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from lesson.diagnosis import as_html

        return as_html(self)
