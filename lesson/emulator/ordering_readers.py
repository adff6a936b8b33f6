"""Who read shared memory last: per unit the last reader, per 16 bytes and thread the last read.

Reads are many and questions about them few, so reads go into a log first and are entered when
somebody asks: a thread that writes, or a copy that will overwrite. Negative stamps in the matrix
are of reads before the last refill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.ordering_clocks import Clocks, Lanes
from lesson.emulator.ordering_units import units

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine

GRANULE_SHIFT = 4
NOBODY = -1
MATRIX_NBYTES = 256 << 20
MAX_LOG = 256


class Readers:
    """The readers of one batch's shared memory, in units of 1 << `shift` bytes."""

    def __init__(self, m: Machine, clocks: Clocks, shift: int) -> None:
        self.m, self.clocks, self.shift = m, clocks, shift
        self.log: list[tuple[int, Lanes, np.ndarray, int, int, np.ndarray]] = []
        self.is_made = False
        self.granules = m.shared_stride >> GRANULE_SHIFT
        self.column: np.ndarray
        self.stamp: np.ndarray
        self.instr: np.ndarray
        self.matrix: np.ndarray | None = None

    def add(self, number: int, lanes: Lanes, base: np.ndarray, moved: int, nbytes: int) -> None:
        """Lanes read `nbytes` each from byte `base + moved` on."""
        self.log.append((number, lanes, base, moved, nbytes, self.clocks.snapshot()))
        if len(self.log) > MAX_LOG:
            self.flush()

    def _make(self) -> None:
        nunits = self.m.shared.u8.size >> self.shift
        self.column = np.full(nunits, NOBODY, np.int32)
        self.stamp = np.zeros(nunits, np.int32)
        self.instr = np.zeros(nunits, np.int32)
        lanes = self.clocks.domain_lanes
        if self.m.nblocks * self.granules * lanes * 4 <= MATRIX_NBYTES:
            self.matrix = np.zeros((self.m.nblocks, self.granules, lanes), np.int32)
        self.is_made = True

    def flush(self) -> bool:
        """Enter the log; whether there is any read at all."""
        if not self.log:
            return self.is_made
        if not self.is_made:
            self._make()
        log, self.log = self.log, []
        cells = None if self.matrix is None else self.matrix.reshape(-1)
        for number, lanes, base, moved, nbytes, clock in log:
            index = base + moved
            at, count = units(index, nbytes, self.shift)
            columns, stamps = self.clocks.column[lanes], clock[lanes]
            if cells is not None:
                cells[(index >> GRANULE_SHIFT) * self.clocks.domain_lanes + columns] = stamps
            self.column[at] = columns if count == 1 else np.repeat(columns, count)
            self.stamp[at] = stamps if count == 1 else np.repeat(stamps, count)
            self.instr[at] = number
        return True

    def has_read_before(self, lane: int, unit: int) -> bool:
        """Whether a lane has read what lay at a unit before the last refill."""
        if not self.flush():
            return False
        if self.matrix is None:
            return True
        granule = unit << self.shift >> GRANULE_SHIFT
        at = granule * self.clocks.domain_lanes + int(self.clocks.column[lane])
        return int(self.matrix.reshape(-1)[at]) < 0

    def late_for(self, lane: int, start: int, stop: int, know: np.ndarray) -> int:
        """A lane whose read of some bytes `lane` does not know of, or -1; the bytes are then
        refilled."""
        clocks = self.clocks
        own, first = int(clocks.column[lane]), lane - int(clocks.column[lane])
        if self.matrix is None:
            part = slice(start >> self.shift, -(-stop >> self.shift))
            column = self.column[part]
            late = (column >= 0) & (column != own) & (know[column] < self.stamp[part])
            return first + int(column[np.flatnonzero(late)[0]]) if late.any() else -1
        block, offset = divmod(start, self.m.shared_stride)
        last = offset + stop - start
        cells = self.matrix[block, offset >> GRANULE_SHIFT : -(-last >> GRANULE_SHIFT)]
        late = cells.max(axis=0) > know[: clocks.domain_lanes]
        late[own] = False
        np.negative(np.maximum(cells, 0), out=cells)
        return first + int(np.flatnonzero(late)[0]) if late.any() else -1
