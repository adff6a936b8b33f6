"""One exercise as a reader meets it: its kernel, a check of an answer, hints, a solution.

Does: what the notebook calls on `helpers.exercise("ring")`.
Does not: judge (`judge` does) or hold data (`catalogue` and the .cu files do).
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lesson import snippets
from lesson.errors import LessonError
from lesson.exercises import gap, judge
from lesson.exercises.catalogue import PIECES, Piece
from lesson.exercises.hints import HINTS
from lesson.listing import Listing

FOLDER = Path(__file__).parent
NAMES = tuple(piece.name for piece in PIECES)
_MAP = "// map: "


@dataclass(frozen=True)
class Exercise:
    """An exercise. As the last line of a cell it shows its kernel, with the marks of the gap."""

    piece: Piece

    @property
    def name(self) -> str:
        """Its short name, as in `helpers.exercise(name)`."""
        return self.piece.name

    @cached_property
    def source(self) -> snippets.Source:
        """The kernel's file with the lines that the gap starts with."""
        return snippets.read(FOLDER / f"{self.name}.cu")

    def starter(self) -> str:
        """The lines that the gap starts with."""
        return gap.starter(self.source)

    def check(self, code: str, tensor_map: Mapping[str, Any] | None = None) -> judge.Answer:
        """Compiles the kernel with `code` in its gap, runs it under every schedule, and judges it.

        `tensor_map`: fields of the map that differ from those of the matrix, such as
        `dict(swizzle="128B")`. Shows why it is not right yet, and returns the answer, whose
        `points` a class can count. On a GPU, what is right here runs there as well.
        """
        answer = judge.judge(self.piece, gap.fill(self.source, code), tensor_map or {})
        answer.card.show()
        return answer

    def hint(self, number: int = 0) -> None:
        """Prints a hint; each gives more away than the one before. Without a number: how many."""
        hints = HINTS[self.name]
        if number == 0:
            print(f"There are {len(hints)} hints. The first gives least away: hint(1).")
        elif number in range(1, len(hints) + 1):
            print(textwrap.fill(f"Hint {number} of {len(hints)}: {hints[number - 1]}", 92))
        else:
            raise LessonError(f"a hint must be 1 to {len(hints)}, got {number}. Ask for hint(1).")

    def solution(self) -> Listing:
        """One way to fill the gap, with the fields of the map in its first line."""
        if not self.solution_path.is_file():
            raise LessonError(
                f"the solution of {self.name} must be in the package, got none. Whoever runs this"
                " class took it out: ask for a hint instead."
            )
        lines = self.solution_path.read_text(encoding="utf-8").splitlines()
        return Listing(self.solution_path.name, 1, tuple(lines))

    @property
    def solution_path(self) -> Path:
        """The file of the solution."""
        return FOLDER / "solutions" / f"{self.name}.cu"

    def solution_parts(self) -> tuple[str, dict[str, Any]]:
        """The solution's lines and its fields of the map, as `check` takes them."""
        first, _, code = self.solution_path.read_text(encoding="utf-8").partition("\n")
        return code, json.loads(first.removeprefix(_MAP))

    def __repr__(self) -> str:
        return str(gap.listing(self.source))

    def _repr_html_(self) -> str:
        return gap.listing(self.source)._repr_html_()


def find(name: str) -> Exercise:
    """The exercise of that name; LessonError lists the ones there are."""
    for piece in PIECES:
        if piece.name == name:
            return Exercise(piece)
    raise LessonError(f"an exercise must be one of {', '.join(NAMES)}, got {name!r}. Name one.")
