"""Which shared array a copy was meant for, and which bytes behind it it also hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lesson.emulator.observe import Copy
from lesson.emulator.ordering_notes import Notes

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine


class Places:
    """The shared variables of the kernel."""

    def __init__(self, m: Machine, notes: Notes) -> None:
        self.m, self.notes = m, notes

    def variable(self, offset: int) -> tuple[str, int, int] | None:
        """Name, offset and bytes of the variable that holds a byte of a block's shared memory."""
        for name, start, nbytes in self.m.shared_variables:
            if start <= offset < start + nbytes:
                return name, start, nbytes
        return None

    def copy(self, copy: Copy) -> None:
        """A copy must stay inside of one array."""
        first = copy.block * self.m.shared_stride
        start, stop = copy.smem_start - first, copy.smem_stop - first
        found = self.variable(start)
        if found is None or stop <= found[1] + found[2]:
            return
        behind = [name for name, at, _ in self.m.shared_variables if found[1] < at < stop]
        self.notes.add(
            self.m, "copy-overruns-array", copy.instr, copy.lane, copy=copy, name=found[0],
            nbytes=stop - start, room=found[1] + found[2] - start, behind=behind,
            leaves=stop > self.m.shared_nbytes,
        )  # fmt: skip
