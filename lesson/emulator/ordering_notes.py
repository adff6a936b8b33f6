"""What the checks note while a kernel runs: raw records, one a mistake and place.

A note has the instruction, the thread and the numbers; words for a reader are made of it in
`lesson.check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr


@dataclass(slots=True)
class Note:
    """One thing that is wrong. `instr` is where it shows, `other` the second access or the cause.

    `block` and `thread` are coordinates (x, y, z). `facts`: numbers and names by the key that the
    words of the kind use. `count`: how often it was seen at this place.
    """

    kind: str
    instr: Instr | None
    other: Instr | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    count: int = 1
    lane: int = -1


class Notes:
    """The notes of a run, in the order of their first sight."""

    def __init__(self) -> None:
        self.seen: dict[tuple[object, ...], Note] = {}

    def __iter__(self) -> Iterator[Note]:
        return iter(self.seen.values())

    def __len__(self) -> int:
        return len(self.seen)

    def known(self, kind: str, instr: Instr | None, other: Instr | None = None) -> bool:
        """Whether that is noted already; counts it again."""
        found = self.seen.get(self._key(kind, instr, other))
        if found is not None:
            found.count += 1
        return found is not None

    def add(
        self,
        m: Machine,
        kind: str,
        instr: Instr | None,
        lane: int,
        other: Instr | None = None,
        **facts: Any,
    ) -> None:
        """Note it, unless it is known."""
        if self.known(kind, instr, other):
            return
        block = thread = None
        if lane >= 0 and instr is not None:
            where = m.where(instr, lane)
            block, thread = where.block, where.thread
        self.seen[self._key(kind, instr, other)] = Note(
            kind, instr, other, block, thread, facts, 1, lane
        )

    @staticmethod
    def _key(kind: str, instr: Instr | None, other: Instr | None) -> tuple[object, ...]:
        return kind, place(instr), place(other)


def place(instr: Instr | None) -> tuple[str, int]:
    """Source line of an instruction, or its PTX line where it has none."""
    if instr is None:
        return "", 0
    return (instr.loc.file, instr.loc.line) if instr.loc else ("", -instr.line)
