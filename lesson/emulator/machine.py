"""The state of the blocks that run together: lanes, registers, shared and local memory, clock.

Models the programming model of the PTX ISA ("Thread Hierarchy", "Special Registers") for one batch
of blocks. What moves it is in `simt` (control) and in the compiled instructions (`isa`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lesson.emulator.barriers import ClusterBarriers, NamedBarriers
from lesson.emulator.lanes import EMPTY, Mask
from lesson.emulator.memory import Buffer, GlobalMemory, Segment
from lesson.emulator.observe import Observer
from lesson.emulator.windows import SHARED_FIRST, SHARED_RANK_SHIFT
from lesson.errors import DeviceFault, LimitExceeded

if TYPE_CHECKING:
    from lesson.emulator.arguments import Arguments
    from lesson.emulator.copies import CopyEngine
    from lesson.emulator.late import Late
    from lesson.emulator.program import Program
    from lesson.emulator.ptx import Instr
    from lesson.emulator.reach import Reach
    from lesson.emulator.simt import Simt

POISON = 0xA5
WARP = 32
SHARED_ROW_ALIGN = 1024


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a fault: source line, PTX line, block (x, y, z), thread (x, y, z)."""

    file: str
    line: int
    ptx_line: int
    instruction: str
    block: tuple[int, int, int] | None
    thread: tuple[int, int, int] | None

    def __str__(self) -> str:
        source = f"{self.file.rsplit('/', 1)[-1]} line {self.line}, " if self.line else ""
        text = f"{source}PTX line {self.ptx_line} ({self.instruction})"
        return text if self.block is None else f"{text}, block {self.block}, thread {self.thread}"


@dataclass(frozen=True, slots=True)
class Shape:
    """A launch: grid, block and cluster in x, y, z; bytes of dynamic shared memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    dynamic_nbytes: int
    has_explicit_cluster: bool

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def padded_threads(self) -> int:
        return -(-self.threads // WARP) * WARP

    @property
    def nblocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def cluster_nblocks(self) -> int:
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    def block_xyz(self, number: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Coordinates of blocks, numbered cluster after cluster."""
        axes, rest, inner = [], number // self.cluster_nblocks, number % self.cluster_nblocks
        for size, width in zip(self.grid, self.cluster, strict=True):
            across = size // width
            axes.append(rest % across * width + inner % width)
            rest, inner = rest // across, inner // width
        return axes


class Machine:
    """One batch of blocks. The attributes are read by instructions, checks and traces alike."""

    def __init__(
        self,
        program: Program,
        shape: Shape,
        memory: GlobalMemory,
        observers: tuple[Observer, ...],
        memory_nbytes: int,
    ) -> None:
        self.program, self.shape, self.memory = program, shape, memory
        self.observers = observers
        self.grid, self.block = shape.grid, shape.block
        self.threads, self.padded_threads = shape.threads, shape.padded_threads
        self.cluster_nblocks = shape.cluster_nblocks
        self.shared_variables = program.shared_variables(shape.dynamic_nbytes)
        self.shared_nbytes = program.static_shared_nbytes(shape.dynamic_nbytes)
        self.shared_stride = -(-max(self.shared_nbytes, 1) // SHARED_ROW_ALIGN) * SHARED_ROW_ALIGN
        self.param_segment: Segment
        self.arguments: Arguments
        self.global_addresses: dict[str, int] = {}
        self.shared_offsets = program.shared_offsets
        self.steps = 0
        self.version = 0
        self.clock_offset_ns = 0
        self.memory_nbytes = memory_nbytes
        self.used_nbytes = memory.nbytes
        self.copies: CopyEngine
        self.simt: Simt

    def begin(self, first_block: int, nblocks: int) -> None:
        """Set up the blocks `first_block` and up, numbered cluster after cluster."""
        self.first_block, self.nblocks = first_block, nblocks
        padded = self.padded_threads
        self.nlanes = nblocks * padded
        self.used_nbytes = self.memory.nbytes + nblocks * self.shared_stride
        self.block_of = np.repeat(np.arange(nblocks), padded)
        alive = np.tile(np.arange(padded) < self.threads, nblocks)
        self.everyone = Mask(alive, nblocks * self.threads)
        self.is_full = self.everyone.n == self.nlanes
        self.exits = 0
        self._specials: dict[str, NDArray[np.generic]] = {}
        self.frames: dict[tuple[int, int], list] = {}
        self.return_block: list[NDArray[np.int32]] = []
        self.reaches: dict[tuple[str, int], Reach] = {}
        self.groups_closed = {
            "bulk": np.zeros(self.nlanes, np.int64),
            "cp_async": np.zeros(self.nlanes, np.int64),
        }
        self.released = np.zeros(self.nlanes, np.bool_)
        self.late: Late | None = None
        self.named_barriers = NamedBarriers(nblocks, padded)
        self.cluster_barriers = ClusterBarriers(
            nblocks // self.cluster_nblocks, padded * self.cluster_nblocks
        )
        self._begin_shared()
        self.local_stride = 0
        self.local = Buffer(np.zeros(32, np.uint8))
        self.local_row = np.zeros(1, np.int64)

    def release(self) -> None:
        """Give the large arrays back. Machine, scheduler and instructions refer to one another, so
        they would wait for the garbage collector, and launches would pile up until then.
        """
        self.memory.buffer = self.shared = self.local = Buffer(np.zeros(32, np.uint8))
        self.frames.clear()
        self.reaches.clear()
        self._specials.clear()

    def _begin_shared(self) -> None:
        """Poisoned shared memory, and what turns its addresses into indices."""
        self.shared = Buffer(np.full(self.nblocks * self.shared_stride, POISON, np.uint8))
        rank = self.block_of % self.cluster_nblocks
        first = (rank << SHARED_RANK_SHIFT) + SHARED_FIRST
        self.shared_first = (first if self.cluster_nblocks > 1 else first[:1]).astype(np.uint64)
        self.shared_base = (
            self.block_of * self.shared_stride if self.nblocks > 1 else np.zeros(1, np.int64)
        )

    # ---------------------------------------------------------------------------------- lanes
    def active(self, mask: Mask | None) -> Mask:
        """The lanes that a mask means; None is every thread that has not exited."""
        return self.everyone if mask is None else mask

    def of(self, values: NDArray[np.generic], act: Mask) -> NDArray[np.generic]:
        """The values of some lanes; a uniform value stays one element."""
        return values if values.size == 1 or act.n == self.nlanes else values[act.idx]

    def each(self, values: NDArray[np.generic], act: Mask) -> NDArray[np.generic]:
        """Like `of`, but one element a lane also for a uniform value."""
        picked = self.of(values, act)
        return picked if picked.size == act.n else np.full(act.n, picked[0])

    def narrow(
        self, mask: Mask | None, predicate: NDArray[np.bool_], is_negated: bool
    ) -> Mask | None:
        """The lanes of the mask whose predicate holds: EMPTY, the mask itself, or a new one."""
        if predicate.size == 1:
            return mask if bool(predicate[0]) != is_negated else EMPTY
        act = self.everyone if mask is None else mask
        bits = np.greater(act.bits, predicate) if is_negated else act.bits & predicate
        n = int(np.count_nonzero(bits))
        if n == 0:
            return EMPTY
        return mask if n == act.n else Mask(bits, n)

    def retire(self, mask: Mask) -> None:
        """Threads end."""
        self.everyone = self.everyone - mask
        self.is_full = False
        self.exits += 1
        self.version += 1
        for observer in self.observers:
            observer.exit(self, mask.idx)

    # --------------------------------------------------------------------------------- frames
    def frame(self, function: int, depth: int) -> list:
        """The registers of a function at a call depth; slot 0 holds the local base of the depth."""
        found = self.frames.get((function, depth))
        if found is None:
            code = self.program.functions[function]
            self.reserve(len(code.template) * self.nlanes * 4)
            if (depth + 1) * self.program.frame_nbytes > self.local_stride:
                self._grow_local(depth)
            found = list(code.template)
            found[0] = depth * self.program.frame_nbytes
            self.frames[function, depth] = found
            for slot, fill in code.fills:
                found[slot] = fill(self, depth)
        return found

    def _grow_local(self, depth: int) -> None:
        """Room for one more level of calls, and as many again, in every lane's local memory."""
        levels = max(2 * depth, 1) if depth != 1 else 2
        stride = max(-(-levels * self.program.frame_nbytes // 16) * 16, 32)
        self.reserve((stride - self.local_stride) * self.nlanes)
        grown = np.full((self.nlanes, stride), POISON, np.uint8)
        if self.local_stride:
            grown[:, : self.local_stride] = self.local.u8.reshape(self.nlanes, -1)
        self.local = Buffer(grown.reshape(-1))
        self.reaches.clear()
        self.local_stride = stride
        self.local_row = np.arange(self.nlanes) * stride

    def reserve(self, nbytes: int) -> None:
        """Count memory of the emulator against the limit."""
        self.used_nbytes += nbytes
        if self.used_nbytes > self.memory_nbytes:
            raise LimitExceeded(
                f"memory of the emulator must stay within {self.memory_nbytes} bytes, got "
                f"{self.used_nbytes}. "
                "Make the arrays or the recursion smaller, or raise Limits.memory_bytes."
            )

    def special(self, name: str) -> NDArray[np.generic]:
        """The value of a special register that does not change while the batch runs."""
        found = self._specials.get(name)
        if found is None:
            from lesson.emulator.special import SPECIALS

            family, _, axis = name[1:].partition(".")
            make: Callable[[Machine, str], NDArray[np.generic]] = SPECIALS[family]
            found = self._specials[name] = make(self, axis)
        return found

    @property
    def clock_ns(self) -> int:
        """Nanoseconds since the start: one an instruction, and what waiting took."""
        return self.steps + self.clock_offset_ns

    # --------------------------------------------------------------------------------- faults
    def lane_of(self, act: Mask, at: int) -> int:
        """Lane number of the active lane at a position."""
        return int(act.idx[at])

    def where(self, instr: Instr, lane: int | None) -> Where:
        """Place of an instruction, and of the thread that executes it."""
        block = thread = None
        if lane is not None:
            number = np.array([self.first_block + lane // self.padded_threads])
            block = tuple(int(axis[0]) for axis in self.shape.block_xyz(number))
            x, y, _ = self.block
            at = lane % self.padded_threads
            thread = (at % x, at // x % y, at // (x * y))
        loc = instr.loc
        return Where(
            loc.file if loc else "", loc.line if loc else 0, instr.line, instr.name, block, thread
        )

    def fault(
        self, kind: type[DeviceFault], text: str, instr: Instr, lane: int | None, cure: str
    ) -> DeviceFault:
        """The error to raise for a thread; `where` rides along for the diagnosis."""
        where = self.where(instr, lane)
        error = kind(f"{text}. {where}. {cure}")
        error.where, error.instr, error.lane = where, instr, lane  # type: ignore[attr-defined]
        return error
