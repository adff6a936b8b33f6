"""Run a kernel of a PTX text over a grid, batch of blocks after batch of blocks.

Follows `cuLaunchKernel` of the CUDA Driver API. Blocks of one batch run together; batches follow
one another, so the cost is linear in the grid and memory stays bounded. A batch that hangs while
other blocks have not started may be waiting for them: the launch then starts over with larger
batches.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lesson.emulator import globals as module_globals
from lesson.emulator.arguments import Arguments, pack
from lesson.emulator.copies import CopyEngine
from lesson.emulator.late import raise_unless_last
from lesson.emulator.layout import end_of, param_layout
from lesson.emulator.limits import Limits
from lesson.emulator.machine import Machine, Shape
from lesson.emulator.memory import GlobalMemory
from lesson.emulator.observe import Observer
from lesson.emulator.options import check_options
from lesson.emulator.program import Program, link
from lesson.emulator.shape import check_shared, checked
from lesson.emulator.simt import Simt
from lesson.emulator.trace import Trace
from lesson.errors import Hang, LaunchError, LimitExceeded

BATCH_LANES = 16384
BATCH_SHARED_NBYTES = 64 << 20
PARAM_NBYTES = 32764


@dataclass(slots=True)
class Result:
    """What a launch took. `steps`: instructions issued, each for a group of lanes; `lanes`: threads
    launched.
    """

    steps: int
    lanes: int
    seconds: float
    parse_seconds: float
    copies: int
    batches: int
    trace: Trace | None = None


def launch(
    ptx: str,
    kernel: str | None,
    grid: Any,
    block: Any,
    args: Sequence[Any],
    *,
    shared_bytes: int = 0,
    cluster: Any = None,
    symbols: Mapping[str, Any] | None = None,
    schedule: str = "eager",
    seed: int = 0,
    limits: Limits | None = None,
    observers: Sequence[Observer] = (),
    batch_blocks: int | None = None,
) -> Result:
    """Run a kernel to its end.

    `args`: numpy arrays (written back), TensorMaps over numpy arrays, numpy scalars, numbers,
    bytes. `symbols`: what variables of the module hold instead of their initial values, by name:
    tensor maps, numpy arrays or bytes. `schedule`: when asynchronous copies land (eager, late,
    random by `seed`). Raises a LessonError: PtxSyntaxError, UnsupportedPtx, LaunchError, a
    DeviceFault, Hang or LimitExceeded; the arrays then are as they were.
    """
    seed, batch_blocks = check_options(args, symbols, schedule, seed, batch_blocks)
    limits = limits or Limits()
    start = time.perf_counter()
    program = link(ptx, kernel)
    parsed = time.perf_counter()
    shape = checked(program.kernel, grid, block, cluster, shared_bytes)
    check_shared(
        program.static_shared_nbytes(shape.dynamic_nbytes), program.static_shared_nbytes(0)
    )
    deadline = parsed + limits.seconds
    run = _Run(program, shape, tuple(args), symbols or {}, limits, deadline, tuple(observers))
    run.schedule, run.seed = schedule, seed
    with np.errstate(all="ignore"):
        run.all(batch_blocks)
    if not observers:
        run.m.release()
    trace = next((each for each in observers if isinstance(each, Trace)), None)
    seconds, lanes = time.perf_counter() - parsed, shape.nblocks * shape.threads
    return Result(run.m.steps, lanes, seconds, parsed - start, run.copies, run.batches, trace)


@dataclass(slots=True)
class _Run:
    """One launch under way."""

    program: Program
    shape: Shape
    args: tuple[Any, ...]
    symbols: Mapping[str, Any]
    limits: Limits
    deadline: float
    observers: tuple[Observer, ...]
    schedule: str = "eager"
    seed: int = 0
    m: Machine = None  # type: ignore[assignment]
    arguments: Arguments = None  # type: ignore[assignment]
    copies: int = 0
    batches: int = 0

    def all(self, batch_blocks: int | None) -> None:
        """Every block of the grid, with larger batches if blocks wait for later ones."""
        step = self._batch_blocks(batch_blocks)
        while True:
            try:
                self._attempt(step)
            except Hang:
                if step >= self.shape.nblocks or self.batches:
                    raise
                step = min(self.shape.nblocks, 4 * step)
                continue
            self.arguments.copy_out(self.m.memory)
            return

    def _batch_blocks(self, given: int | None) -> int:
        """Blocks that run together: whole clusters, and not too many lanes or bytes."""
        shape, cluster = self.shape, self.shape.cluster_nblocks
        stride = max(self.program.static_shared_nbytes(shape.dynamic_nbytes), 1024)
        blocks = given or min(BATCH_LANES // shape.padded_threads, BATCH_SHARED_NBYTES // stride)
        blocks = max(blocks // cluster, 1) * cluster
        return min(blocks, shape.nblocks)

    def _attempt(self, step: int) -> None:
        """The whole grid in batches of `step` blocks."""
        self._prepare()
        m = self.m
        rng = np.random.default_rng(self.seed)
        self.copies = self.batches = 0
        for observer in self.observers:
            observer.begin_launch(m)
        for first in range(0, self.shape.nblocks, step):
            if first:
                m.simt.check_limits()
            m.begin(first, min(step, self.shape.nblocks - first))
            m.copies = CopyEngine(m, self.schedule, rng)
            m.simt = Simt(m, self.limits, self.deadline)
            m.simt.budget = m.steps
            for observer in self.observers:
                observer.begin_batch(m)
            m.simt.start(self.program.functions[0].entry, 0, m.everyone)
            m.simt.run()
            raise_unless_last(m)
            m.copies.land_all()
            for observer in self.observers:
                observer.end_batch(m)
            self.copies += m.copies.count
            self.batches += 1

    def _prepare(self) -> None:
        """Memory with the arguments, the parameters and the variables of the module."""
        program, memory = self.program, GlobalMemory()
        formals = program.kernel.params
        self.arguments = Arguments()
        segment = memory.allocate(PARAM_NBYTES, "the kernel parameters", "param", False)
        packed = pack(self.arguments, memory, formals, self.args)
        given = module_globals.filled(self.arguments, memory, program, self.symbols)
        segments = module_globals.allocate(program, memory)
        if memory.nbytes > self.limits.memory_bytes:
            raise LimitExceeded(
                f"memory of a launch must stay within {self.limits.memory_bytes} bytes, got "
                f"{memory.nbytes}. "
                "Pass smaller arrays, or raise Limits.memory_bytes."
            )
        places = param_layout(formals)
        if end_of(places) > PARAM_NBYTES:
            raise LaunchError(
                f"kernel parameters must be at most {PARAM_NBYTES} bytes, got {end_of(places)}."
            )
        memory.build()
        memory.bytes_of(segment)[:] = 0
        for place, data in zip(places.values(), packed, strict=True):
            memory.bytes_of(segment)[place.offset : place.offset + place.nbytes] = np.frombuffer(
                data, np.uint8
            )
        segment.nbytes = max(end_of(places), 1)
        self.arguments.copy_in(memory)
        module_globals.initialise(program, memory, segments, given)
        m = self.m = Machine(program, self.shape, memory, self.observers, self.limits.memory_bytes)
        m.param_segment = segment
        m.arguments = self.arguments
        m.global_addresses = {name: each.address for name, each in segments.items()}
