"""Which lanes run next: groups in lockstep, divergence, reconvergence, waiting, progress.

A group is a set of lanes at one block of code and one call depth. The deepest group with the
smallest block runs, straight on until it meets another group (they merge), splits, or waits. A
group that spins or asks a barrier in vain rests until the others have had their turn. When nothing
can run, `Simt` lands copies, lets time pass, and at last finds that the state repeats: that is a
hang (see `progress`). This is one of the schedules that the PTX ISA allows ("Independent Thread
Scheduling").
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from lesson.emulator.lanes import EMPTY, Mask
from lesson.emulator.progress import Progress
from lesson.errors import LimitExceeded

if TYPE_CHECKING:
    from lesson.emulator.limits import Limits
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr

MAX_DEPTH = 1 << 16
SPIN_ROUNDS = 64
CHECK_STEPS = 4096


class Group:
    """Lanes that run together. `mask` None: all threads that have not exited."""

    __slots__ = ("R", "block", "depth", "mask", "spins")

    def __init__(self, block: int, depth: int, mask: Mask | None, R: list) -> None:
        self.block, self.depth, self.mask, self.R = block, depth, mask, R
        self.spins = 0

    @property
    def key(self) -> int:
        """Order of running: deepest call first, then smallest block."""
        return (MAX_DEPTH - self.depth) << 32 | self.block


class Parked:
    """Lanes that wait at a block for something.

    `poll(mask)` gives the lanes that may go (EMPTY, the mask itself or a part). They go on at
    `next_block` after `release(mask, is_timeout)`; the instruction that parked them supplies both.
    `kind`: mbarrier, bar, cluster, warp, group. `detail` says for the words of a hang what is
    waited for.
    """

    __slots__ = (
        "block",
        "depth",
        "detail",
        "instr",
        "kind",
        "mask",
        "next_block",
        "poll",
        "release",
    )

    def __init__(
        self,
        kind: str,
        group: Group,
        mask: Mask,
        instr: Instr,
        poll: Callable[[Mask], Mask],
        release: Callable[[Mask, bool], None] | None = None,
        detail: dict[str, object] | None = None,
    ) -> None:
        self.kind, self.mask, self.instr = kind, mask, instr
        self.block, self.depth, self.next_block = group.block, group.depth, group.block + 1
        self.poll, self.release = poll, release
        self.detail = detail or {}


class Simt:
    """The scheduler of one batch."""

    def __init__(self, m: Machine, limits: Limits, deadline: float) -> None:
        self.m = m
        self.limits, self.deadline = limits, deadline
        self.ready: dict[int, Group] = {}
        self.heap: list[int] = []
        self.resting: dict[int, Group] = {}
        self.parked: list[Parked] = []
        self.is_dirty = False
        self.budget = 0
        self.progress = Progress(self)

    # -------------------------------------------------------------------------------- groups
    def put(self, group: Group) -> None:
        """Make a group ready; it joins the lanes that are there already."""
        key = group.key
        other = self.ready.get(key)
        if other is None:
            self.ready[key] = group
            heapq.heappush(self.heap, key)
        else:
            other.mask = other.mask | group.mask

    def start(self, block: int, depth: int, mask: Mask) -> None:
        """Make lanes ready at a block."""
        code = self.m.program.blocks[block]
        self.put(Group(block, depth, mask, self.m.frame(code.function, depth)))

    def rest(self, group: Group) -> bool:
        """Let the others run first; returns True, as a control does whose group is gone."""
        group.mask = self.m.active(group.mask)
        group.spins = 0
        other = self.resting.get(group.key)
        if other is None:
            self.resting[group.key] = group
        else:
            other.mask = other.mask | group.mask
        return True

    def wake(self) -> None:
        """Everyone has had a turn: those that rest are ready again."""
        resting, self.resting = self.resting, {}
        for group in resting.values():
            self.put(group)

    def park(self, parked: Parked) -> None:
        """Keep lanes until their `poll` lets them go."""
        self.parked.append(parked)

    def jump(self, group: Group, block: int) -> bool:
        """Go to a block; True if the group is gone because it has spun for long."""
        is_backward = block <= group.block
        group.block = block
        if is_backward:
            group.spins += 1
            if group.spins > SPIN_ROUNDS:
                return self.rest(group)
        return False

    def split(self, group: Group, taken: Mask, target: int, other: int) -> bool:
        """Some lanes go to one block, the rest to another; the group goes on with the smaller."""
        rest = self.m.active(group.mask) - taken
        if target < other:
            self.put(Group(other, group.depth, rest, group.R))
            group.mask = taken
            return self.jump(group, target)
        self.put(Group(target, group.depth, taken, group.R))
        group.mask = rest
        group.block = other
        return False

    def spread(self, group: Group, ways: list[tuple[int, Mask]]) -> bool:
        """The lanes of a group go to several blocks; returns True, since the group is gone."""
        for block, mask in ways:
            part = Group(block, group.depth, mask, group.R)
            part.spins = group.spins + (block <= group.block)
            if part.spins > SPIN_ROUNDS:
                self.rest(part)
            else:
                self.put(part)
        return True

    # --------------------------------------------------------------------------------- running
    def run(self) -> None:
        """Run until every thread has exited."""
        m = self.m
        while True:
            group = self._pick()
            if group is not None:
                self._go(group)
                if m.steps > self.budget:
                    self.check_limits()
            elif m.everyone.n == 0:
                return
            else:
                self.progress.stall()

    def _pick(self) -> Group | None:
        if not self.heap:
            return None
        group = self.ready.pop(heapq.heappop(self.heap))
        if group.mask is not None and group.mask.n == self.m.everyone.n:
            group.mask = None
        return group

    def _go(self, group: Group) -> None:
        """Run a group until it is gone or another one comes first."""
        m, blocks, heap, copies = self.m, self.m.program.blocks, self.heap, self.m.copies
        while True:
            block = blocks[group.block]
            R, mask = group.R, group.mask
            for step in block.steps:
                step(m, R, mask)
            m.steps += block.count
            control = block.control
            if control is None:
                group.block += 1
            elif control(m, group):
                return
            if m.steps > self.budget:
                self.check_limits()
            if copies.is_random:
                copies.maybe_land()
            if self.is_dirty:
                self.retest()
            if heap and not self._stays_first(group):
                return

    def _stays_first(self, group: Group) -> bool:
        """Whether the group may go on, after it has taken in the lanes that wait for it."""
        key, top = group.key, self.heap[0]
        if top > key:
            return True
        if top < key:
            self.put(group)
            return False
        heapq.heappop(self.heap)
        group.mask = self.m.active(group.mask) | self.ready.pop(top).mask
        if group.mask.n == self.m.everyone.n:
            group.mask = None
        return True

    def check_limits(self) -> None:
        """Stop a run that has gone on for too long."""
        m = self.m
        self.budget = m.steps + CHECK_STEPS
        if m.steps > self.limits.steps:
            what = f"steps must stay within {self.limits.steps} instructions, got {m.steps}"
        elif time.perf_counter() > self.deadline:
            what = (
                f"the run must end within {self.limits.seconds} seconds, got none after "
                f"{m.steps} instructions"
            )
        else:
            return
        raise LimitExceeded(
            f"{what}. {self.progress.places()} Look for a loop that cannot end, or raise Limits."
        )

    # --------------------------------------------------------------------------------- waiting
    def retest(self) -> None:
        """Let those parked lanes go whose wait is over."""
        self.is_dirty = False
        if not self.parked:
            return
        if time.perf_counter() > self.deadline:
            self.check_limits()
        waiting, self.parked = self.parked, []
        for each in waiting:
            self._let_go(each, each.poll(each.mask), False)

    def time_out(self) -> None:
        """Lanes in try_wait get `false`, as the ISA allows after a while."""
        waiting, self.parked = self.parked, []
        for each in waiting:
            self._let_go(each, each.mask if each.kind == "mbarrier" else EMPTY, True)

    def retry_warps(self) -> None:
        """Lanes that wait for their warp look again, since others have exited."""
        waiting, self.parked = self.parked, []
        for each in waiting:
            if each.kind == "warp":
                self.start(each.block, each.depth, each.mask)
            else:
                self.parked.append(each)

    def _let_go(self, each: Parked, going: Mask, is_timeout: bool) -> None:
        if going is EMPTY:
            self.parked.append(each)
            return
        if each.release is not None:
            each.release(going, is_timeout)
        self.start(each.next_block, each.depth, going)
        if going.n < each.mask.n:
            each.mask = each.mask - going
            self.parked.append(each)
