"""What happened to one block's barrier in a run of the lesson's kernel, step by step.

Does: watches the emulator and notes the barrier's counts after each thing that happened to it.
Does not: draw (`figures_story` does) or judge. A GPU does not show its barriers, so the story is
the emulator's on either target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lesson import targets
from lesson.emulator import mbarrier
from lesson.emulator.observe import Copy, Observer
from lesson.kernel_source import TileKernel

BLOCK = 0  # the block whose barrier is watched


@dataclass(frozen=True)
class BarrierStep:
    """The counts of an mbarrier after something happened to it. `phase` counts finished phases."""

    event: str
    pending: int
    nbytes: int
    phase: int


class Story(Observer):
    """Notes the barrier's state behind every event of one block."""

    def __init__(self) -> None:
        self.steps: list[BarrierStep] = []
        self.phase = 0
        self.address = -1

    def mbar(
        self, m: Any, instr: Any, op: str, lanes: np.ndarray, index: np.ndarray, **details: Any
    ) -> None:
        blocks = np.asarray(index) // m.shared_stride
        mine = np.flatnonzero(blocks == BLOCK)
        if not len(mine) or op in ("test", "try", "flip"):
            return
        self.address = int(np.broadcast_to(index, blocks.shape)[mine[0]])
        threads = np.asarray(lanes)[np.asarray(lanes) // m.padded_threads == BLOCK]
        self._note(m, _sentence(op, threads), op == "arrive")

    def copy_issued(self, m: Any, copy: Copy) -> None:
        if copy.block == BLOCK:
            self._note(m, f"thread {copy.lane} issues the copy")

    def _note(self, m: Any, event: str, may_announce: bool = False) -> None:
        word = int(m.shared.u8[self.address : self.address + 8].view(np.uint64)[0])
        state = mbarrier.unpack(word)
        if self.steps and state.phase != self.steps[-1].phase % 2:
            self.phase += 1
        before = self.steps[-1].nbytes if self.steps else 0
        if may_announce and state.tx_nbytes > before:
            event = f"{event}, announces {state.tx_nbytes - before} bytes"
        self.steps.append(BarrierStep(event, state.pending, state.tx_nbytes, self.phase))


def _sentence(op: str, threads: np.ndarray) -> str:
    """Who did what, in few words."""
    who = f"thread {threads[0]}" if len(threads) == 1 else f"{len(threads)} threads"
    verb = "s" if len(threads) == 1 else ""
    return {
        "init": f"{who} set{verb} up the barrier",
        "arrive": f"{who} arrive{verb}",
        "expect_tx": f"{who} announces bytes",
        "complete_tx": "the tile has landed",
    }.get(op, op)


def record() -> list[BarrierStep]:
    """Runs the lesson's kernel in the emulator, copies late, and tells one barrier's story."""
    story = Story()
    targets.emulate(
        TileKernel().source(),
        targets.full_grid(),
        (targets.threads_per_block(),),
        [targets.lesson_map(), np.zeros_like(targets.new_matrix())],
        schedule="late",
        observers=(story,),
    )
    return story.steps
