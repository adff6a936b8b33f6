"""Bank conflicts in shared memory, counted from the accesses that the emulator records.

The rule (CUDA C++ Best Practices Guide, "Shared Memory and Memory Banks"): shared memory has 32
banks, successive 4-byte words lie in successive banks, and a bank serves one word at a time. An
access of a warp takes as many passes as the busiest bank has different words to serve; threads that
want the same word share it.
Does: counts for accesses of up to 4 bytes a thread, and runs the small kernel of kernels/columns.cu
that reads a tile by rows or columns, swizzled or not.
Does not: time anything, or count wider accesses, which the hardware splits in a way that the guide
does not say. What is counted is the emulator's run on either target.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lesson import harness, snippets, targets
from lesson.emulator.observe import Observer
from lesson.tensor_map import TensorMap

PATH = Path(__file__).parent / "kernels" / "columns.cu"
BANKS, WORD_NBYTES, WARP = 32, 4, 32


@dataclass(frozen=True, eq=False)
class WarpRead:
    """One read of shared memory by one warp. `words`: the 4-byte word of each thread, counted from
    the start of the block's shared memory.
    """

    line: int
    words: np.ndarray

    @property
    def banks(self) -> np.ndarray:
        """The bank of each thread's word."""
        return self.words % BANKS

    @property
    def passes(self) -> int:
        """How often the busiest bank has to serve: 1 without a conflict."""
        different = np.unique(self.words)
        return int(np.bincount(different % BANKS, minlength=BANKS).max())


class BankCounter(Observer):
    """Collects the reads of shared memory of a launch, warp by warp."""

    def __init__(self) -> None:
        self.reads: list[WarpRead] = []

    def begin_launch(self, m: Any) -> None:
        self.reads.clear()

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
        if kind != "read" or space != "shared" or nbytes > WORD_NBYTES:
            return
        lanes = np.asarray(lanes)
        words = np.broadcast_to(index, lanes.shape) % m.shared_stride // WORD_NBYTES
        line = instr.loc.line if instr.loc else 0
        for warp in np.unique(lanes // WARP).tolist():
            self.reads.append(WarpRead(line, words[lanes // WARP == warp]))


@dataclass(frozen=True, eq=False)
class TileReads:
    """How one warp read a tile of 32 x 32 floats: one read a row or column, in order."""

    swizzle: str
    by: str
    reads: tuple[WarpRead, ...]
    sums: np.ndarray

    @property
    def passes(self) -> int:
        """Passes of all reads together."""
        return sum(read.passes for read in self.reads)


@cache
def source() -> snippets.Source:
    """The file of the kernel."""
    return snippets.read(PATH)


def tile_width() -> int:
    """Rows and columns of the tile."""
    return source().constant("kTile")


def launch_of(swizzle: str, by: str) -> tuple[harness.KernelSource, list[object]]:
    """The kernel and its arguments, the last of which takes a sum a thread."""
    width = tile_width()
    tmap = TensorMap.from_array(targets.new_matrix(), (width, width), swizzle=swizzle)
    kernel = harness.KernelSource(source().text, source().name, "sumTile")
    is_swizzled, by_columns = np.int32(swizzle != "NONE"), np.int32(by == "columns")
    return kernel, [tmap, is_swizzled, by_columns, np.zeros(width, np.float32)]


def read_tile(swizzle: str, by: str) -> TileReads:
    """Runs the kernel in the emulator. `swizzle`: "NONE" or "128B"; `by`: "rows" or "columns"."""
    counter = BankCounter()
    kernel, args = launch_of(swizzle, by)
    targets.emulate(kernel, (1,), (tile_width(),), args, observers=(counter,))
    snippet = source().snippet("find-element")
    reads = [r for r in counter.reads if snippet.first_line <= r.line <= snippet.last_line]
    return TileReads(swizzle, by, tuple(reads), np.asarray(args[-1]))
