"""What happens when no lane can run: copies land, time passes, or the run hangs.

PTX ISA gives no bound on waiting, so a hang has to be proved: the machine is deterministic, and so
a state that comes back with nothing changed in memory, barriers or copies will come back for ever.
Registers that depend on a clock are left out of the comparison, and time passes twice as fast each
time, so that a loop that gives up after some time does end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.late import raise_late
from lesson.errors import Hang

if TYPE_CHECKING:
    from lesson.emulator.lanes import Mask
    from lesson.emulator.ptx import Instr
    from lesson.emulator.simt import Simt

PROOF_ROUNDS = 3
CLOCK_ROUNDS = 64
IDLE_ROUNDS = 50_000
MAX_PATIENCE = 4096
FIRST_JUMP_NS = 1000
LAST_JUMP_NS = 1 << 50


@dataclass(frozen=True, slots=True)
class Wait:
    """Lanes of one block that wait at one place: a record for the words of a hang.

    `kind`: mbarrier, bar, cluster, warp, group (bulk or cp.async groups), spin. `where` is the
    place of the first lane. `detail`: what is waited for, such as `index` (flat shared byte of an
    mbarrier), `parity` or `token`, `barrier` (its number), `membermask`.
    """

    kind: str
    instr: Instr | None
    where: object
    block: int
    lanes: tuple[int, ...]
    detail: dict[str, object]


class Progress:
    """Judges the stalls of one batch."""

    def __init__(self, simt: Simt) -> None:
        self.simt = simt
        self.exits_seen = 0
        self.quiet = 0
        self.idle = 0
        self.rounds = 0
        self.patience = 1
        self.jump_ns = FIRST_JUMP_NS
        self.state: tuple | None = None
        self.frames: dict[tuple[int, int], list] = {}

    def stall(self) -> None:
        """No group is ready: make one ready, or raise Hang."""
        simt, m = self.simt, self.simt.m
        simt.retest()
        if self.exits_seen != m.exits:
            self.exits_seen = m.exits
            simt.retry_warps()
        if simt.heap:
            return
        if m.copies.land_at_stall():
            simt.retest()
            self.quiet = 0
            simt.wake()
            return
        if not simt.resting and not any(each.kind == "mbarrier" for each in simt.parked):
            raise self.hang("no thread can move any more")
        self._judge()
        if self.quiet or not simt.resting:
            simt.time_out()
        simt.wake()
        simt.check_limits()

    def _judge(self) -> None:
        """Compare with an earlier stall; raise Hang when that state has come back often enough."""
        m = self.simt.m
        self.idle = self.idle + 1 if self.state is not None and self.state[0] == m.version else 0
        if m.copies.queue:
            self.quiet = self.idle = 0
        elif self._came_back():
            self.quiet += 1
            m.clock_offset_ns += self.jump_ns
            self.jump_ns = min(2 * self.jump_ns, LAST_JUMP_NS)
        if self.quiet >= (CLOCK_ROUNDS if m.program.reads_clock else PROOF_ROUNDS):
            raise self.hang("every round of waiting ends in a state that was there before")
        if self.idle > IDLE_ROUNDS and not self.simt.resting:
            raise self.hang(f"nothing has changed in {IDLE_ROUNDS} rounds of waiting")

    def _came_back(self) -> bool:
        """Whether lanes, memory and registers are those of the remembered stall.

        Brent's way to find a cycle: the remembered stall is replaced after 1, 2, 4, ... rounds.
        """
        simt, m = self.simt, self.simt.m
        groups = [(key, group.mask.bits.tobytes()) for key, group in simt.resting.items()]
        waits = [(each.block, each.depth, each.mask.bits.tobytes()) for each in simt.parked]
        state = (m.version, sorted(groups), sorted(waits))
        if state == self.state and self._frames_equal():
            self.rounds = 0
            return True
        self.rounds += 1
        if self.rounds >= self.patience or self.state is None or state[0] != self.state[0]:
            self.patience = (
                min(2 * self.patience, MAX_PATIENCE) if self.rounds >= self.patience else 1
            )
            self.rounds, self.quiet, self.jump_ns = 0, 0, FIRST_JUMP_NS
            self.state = state
            self.frames = {key: list(frame) for key, frame in m.frames.items()}
        return False

    def _frames_equal(self) -> bool:
        """Whether all registers hold what they held, but for those that depend on a clock."""
        m = self.simt.m
        if self.frames.keys() != m.frames.keys():
            return False
        for (function, depth), frame in m.frames.items():
            before = self.frames[function, depth]
            clocked = m.program.functions[function].clocked
            for slot, (old, new) in enumerate(zip(before, frame, strict=True)):
                if old is not new and slot not in clocked and not np.array_equal(old, new):
                    return False
        return True

    # ------------------------------------------------------------------------------------ words
    def waits(self) -> tuple[Wait, ...]:
        """Who waits where, block by block."""
        simt = self.simt
        found: list[Wait] = []
        for each in simt.parked:
            found += self._by_block(each.kind, each.instr, each.mask, each.detail)
        for group in (*simt.resting.values(), *simt.ready.values()):
            instr = simt.m.program.blocks[group.block].first
            found += self._by_block("spin", instr, simt.m.active(group.mask), {})
        return tuple(sorted(found, key=lambda wait: wait.lanes))

    def _by_block(
        self, kind: str, instr: Instr | None, mask: Mask, detail: dict[str, object]
    ) -> list[Wait]:
        m = self.simt.m
        found = []
        lanes = mask.idx
        for block in np.unique(m.block_of[lanes]).tolist():
            here = m.block_of[lanes] == block
            mine = {key: self._part(value, here) for key, value in detail.items()}
            some = lanes[here]
            where = m.where(instr, int(some[0])) if instr is not None else None
            found.append(Wait(kind, instr, where, int(block), tuple(some.tolist()), mine))
        return found

    @staticmethod
    def _part(value: object, here: np.ndarray) -> object:
        if isinstance(value, np.ndarray) and value.size == here.size:
            return value[here]
        return value

    def places(self) -> str:
        """One sentence on where the first lanes are."""
        waits = self.waits()
        if not waits:
            return ""
        first = waits[0]
        return f"{len(first.lanes)} threads of a block are at {first.where}."

    def hang(self, why: str) -> Hang:
        """The error, with who waits where; a fault that is still to come is seen now."""
        raise_late(self.simt.m)
        waits = self.waits()
        threads = sum(len(wait.lanes) for wait in waits)
        kinds = ", ".join(sorted({wait.kind for wait in waits}))
        return Hang(
            f"every thread must be able to finish, got {threads} that wait for ever ({kinds}): "
            f"{why}. "
            f"{self.places()} Check what each wait needs: arrivals, bytes, phase.",
            waits,
        )
