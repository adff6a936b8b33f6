"""Which shared array a copy was meant for, and which bytes behind it it also hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lesson.emulator.observe import Copy
from lesson.emulator.ordering_notes import Notes

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine

TENSOR_ALIGN, BULK_ALIGN = 128, 16  # PTX ISA, "cp.async.bulk": of addresses in shared memory


class Places:
    """The shared variables of the kernel."""

    def __init__(self, m: Machine, notes: Notes) -> None:
        self.m, self.notes = m, notes
        static = [v for _, v in m.program.shared_used.values() if v.nbytes]
        self.aligns = {variable.name: variable.align for variable in static}

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
        if found is None:
            return
        self._by_chance(copy, found, start, stop - start)
        if stop <= found[1] + found[2]:
            return
        behind = [name for name, at, _ in self.m.shared_variables if found[1] < at < stop]
        self.notes.add(
            self.m, "copy-overruns-array", copy.instr, copy.lane, copy=copy, name=found[0],
            nbytes=stop - start, room=found[1] + found[2] - start, behind=behind,
            leaves=stop > self.m.shared_nbytes,
        )  # fmt: skip

    def _by_chance(self, copy: Copy, found: tuple[str, int, int], start: int, nbytes: int) -> None:
        """The array lies where a copy may go, and its declaration does not say so.

        Only of arrays that are a whole number of tiles: in one with room to spare the kernel may
        have moved the tile to an aligned address itself.
        """
        name, first, size = found
        unit = TENSOR_ALIGN if copy.tmap is not None else BULK_ALIGN
        align = self.aligns.get(name, unit)
        if align < unit and start == first and nbytes and size % nbytes == 0:
            self.notes.add(
                self.m, "misaligned-by-chance", copy.instr, copy.lane, name=name, align=align,
                unit=unit,
            )  # fmt: skip
