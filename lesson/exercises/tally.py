"""Counts of a run that an exercise asks about: copies, their overlap, plain stores.

An observer of the emulator. It judges nothing; bank conflicts are counted by `banks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lesson.emulator.observe import Copy, Observer


@dataclass(frozen=True)
class Issued:
    """A tensor copy. `block` counts in the grid, `place` is the byte in its shared memory;
    `beside`: how many other copies of the block were in flight.
    """

    kind: str
    block: int
    coords: tuple[int, ...]
    place: int
    beside: int


class Tally(Observer):
    """What was issued, in order, and how many elements threads stored themselves."""

    def __init__(self) -> None:
        self.issued: list[Issued] = []
        self.plain_stores = 0
        self._in_flight: dict[int, int] = {}

    @property
    def loads(self) -> list[Issued]:
        """The tensor copies from global to shared memory."""
        return [each for each in self.issued if each.kind == "load"]

    @property
    def stores(self) -> list[Issued]:
        """The tensor copies from shared to global memory."""
        return [each for each in self.issued if each.kind == "store"]

    def begin_launch(self, m: Any) -> None:
        self.issued.clear()
        self.plain_stores = 0

    def begin_batch(self, m: Any) -> None:
        self._in_flight.clear()

    def access(
        self,
        m: Any,
        instr: Any,
        kind: str,
        space: str,
        lanes: np.ndarray,
        index: np.ndarray,
        nbytes: int,
    ) -> None:
        if space == "global" and kind != "read":
            self.plain_stores += len(lanes) * nbytes // 4

    def copy_issued(self, m: Any, copy: Copy) -> None:
        beside = self._in_flight.get(copy.block, 0)
        self._in_flight[copy.block] = beside + 1
        place = copy.smem_start % m.shared_stride
        block = m.first_block + copy.block
        self.issued.append(Issued(copy.kind, block, copy.coords, place, beside))

    def copy_landed(self, m: Any, copy: Copy) -> None:
        self._in_flight[copy.block] -= 1
