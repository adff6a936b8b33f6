"""What is known of one mbarrier: its phases, who arrived in each, who waited for them.

The records of `ordering_barriers`. Threads are noted as they come, a set of lanes at a time, and
looked up one by one only where a mistake is put into words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.observe import Copy
from lesson.emulator.ordering_clocks import Lanes, Shared

if TYPE_CHECKING:
    from lesson.emulator.ptx import Instr

NEVER = -1


@dataclass(slots=True, eq=False)
class Phase:
    """What happened in one phase of a barrier. `who`: the lanes that arrived, and how often;
    `dropped`: arrivals that the phases behind it do not wait for."""

    arrivals: int = 0
    dropped: int = 0
    expected_nbytes: int = 0
    issued_nbytes: int = 0
    landed_nbytes: int = 0
    expect: Instr | None = None
    expect_lane: int = -1
    arrive: Instr | None = None
    copies: list[Copy] = field(default_factory=list)
    who: list[tuple[Lanes, np.ndarray | int]] = field(default_factory=list)

    def arrived(self, domain_lanes: int) -> np.ndarray:
        """How often each thread of the domain arrived."""
        found = np.zeros(domain_lanes, np.int32)
        for lanes, counts in self.who:
            found[lanes % domain_lanes] += counts
        return found


class Waits:
    """Of each thread of a domain the last wait that let it go: its instruction, the number of
    phases completed then, the step, and the thread's clock.
    """

    __slots__ = ("domain_lanes", "instr", "instrs", "number", "stamp", "step")

    def __init__(self, domain_lanes: int) -> None:
        self.domain_lanes = domain_lanes
        self.instrs: list[Instr] = []
        self.number = self.instr = self.step = self.stamp = np.zeros(0, np.int64)

    def add(self, lanes: Lanes, instr: Instr, number: int, step: int, stamps: np.ndarray) -> None:
        """A wait lets lanes go."""
        if not self.number.size:
            made = np.full((4, self.domain_lanes), NEVER, np.int64)
            self.number, self.instr, self.step, self.stamp = made
        if not any(each is instr for each in self.instrs):
            self.instrs.append(instr)
        at = next(k for k, each in enumerate(self.instrs) if each is instr)
        columns = columns_of(lanes, self.domain_lanes)
        self.number[columns], self.step[columns], self.instr[columns] = number, step, at
        self.stamp[columns] = stamps

    def get(self, lane: int) -> tuple[Instr, int, int] | None:
        """The last wait of a lane: instruction, phases completed, step."""
        column = lane % self.domain_lanes
        if not self.number.size or self.number[column] == NEVER:
            return None
        instr = self.instrs[int(self.instr[column])]
        return instr, int(self.number[column]), int(self.step[column])

    def unknown_to(self, known: np.ndarray, counted: np.ndarray | None) -> tuple[int, Instr] | None:
        """A thread whose last wait is none of those that a row of clocks knows of: its column, and
        the wait. A thread of a warp signs off for its warp where users are `counted`."""
        if not self.number.size:
            return None
        late = self.stamp > known[: self.domain_lanes]
        if counted is not None:
            is_out = (self.stamp <= counted[: self.domain_lanes]) & (self.stamp != NEVER)
            warps = np.arange(self.domain_lanes) // 32
            late &= ~np.isin(warps, warps[is_out])
        if not late.any():
            return None
        first = int(late.argmax())
        return first, self.instrs[int(self.instr[first])]

    def have_seen(self, number: int, first: int, stop: int) -> bool:
        """Whether a thread of some columns has waited for that many phases."""
        return bool(self.number.size) and int(self.number[first:stop].max()) >= max(number, 0)


def columns_of(lanes: Lanes, domain_lanes: int) -> slice | np.ndarray:
    """The columns of lanes of one domain, given in order: a slice where none is left out."""
    first, last = int(lanes[0]), int(lanes[-1])
    if last - first + 1 == lanes.size:
        start = first % domain_lanes
        return slice(start, start + lanes.size)
    return lanes % domain_lanes


@dataclass(slots=True, eq=False)
class Barrier:
    """One mbarrier, from its init on. `number` counts completed phases, `column` is its
    pseudo-agent.

    `pending`: what those who have arrived knew, `passed`: the same as of the last phase that is
    over. `touched_at`: the step of the first arrival or expect_tx. `issued_at`: the step at which
    the first copy of a phase (by the number that it completes) was issued.
    """

    index: int
    block: int
    domain: int
    column: int
    count: int
    init: Instr | None
    init_lane: int
    init_stamp: int
    waits: Waits
    now: Phase = field(default_factory=Phase)
    pending: Shared | None = None
    passed: Shared | None = None
    is_live: bool = True
    is_published: bool = False
    is_known_to_all: bool = False
    number: int = 0
    last: Phase | None = None
    dropped: int = 0
    issued_at: dict[int, int] = field(default_factory=dict)
    copies_ever: int = 0
    touched_at: int = -1
