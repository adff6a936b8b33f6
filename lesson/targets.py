"""Which target runs a kernel, the GPU or the emulator, and one result for both.

Does: chooses once (a Hopper GPU or later with CuPy, else the emulator; LESSON_TARGET=gpu, emulator
or auto overrides) and says why; launches the lesson's kernel and its recording twin on either.
Does not: know how a GPU is driven (`gpu`) or how PTX is executed (`emulator`).
An edited kernel goes to the emulator first, and to a GPU only if it came to an end there under
every schedule of the copies: what would hang or fault is not launched on a GPU, unless `force` is
given. A race does not keep it back: in its own process it harms nobody, and what the chip makes of
it is worth seeing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from lesson import compile as compiler
from lesson import harness, progress, reference, snippets
from lesson.emulator.limits import Limits
from lesson.errors import TargetError
from lesson.gpu_args import address_of, owner_of
from lesson.kernel_source import TileKernel
from lesson.tensor_map import TensorMap

VARIABLE = "LESSON_TARGET"
Grid = tuple[int, ...]


class Name(StrEnum):
    """The two targets."""

    GPU = "gpu"
    EMULATOR = "emulator"


@dataclass(frozen=True)
class Target:
    """Where kernels run. `why`: the GPU's name, or the sentence on why there is none."""

    name: Name
    why: str


def choose() -> Target:
    """The target of this process. Raises TargetError where LESSON_TARGET asks for what is not."""
    from lesson import gpu

    asked = os.environ.get(VARIABLE, "").strip().lower() or "auto"
    if asked not in ("auto", *Name):
        raise TargetError(
            f"{VARIABLE} must be gpu, emulator or auto, got {asked!r}. Set one of these, or unset"
            " it to take a GPU where there is one."
        )
    if asked == Name.EMULATOR:
        return Target(Name.EMULATOR, f"{VARIABLE}=emulator asks for it.")
    found = gpu.status()
    if found.ok:
        return Target(Name.GPU, found.says)
    if asked == Name.GPU:
        raise TargetError(
            f"{VARIABLE}=gpu must find a Hopper GPU or a later one, got none: {found.says} Mend"
            f" that, or set {VARIABLE}=emulator."
        )
    return Target(Name.EMULATOR, found.says)


@dataclass(frozen=True)
class Run:
    """What a run of the lesson's kernel left behind, on either target.

    `input`, `output`: float32 (height, width). `writer_block` (blockIdx.y * gridDim.x +
    blockIdx.x), `writer_thread` and `write_counts`: int64 (height, width), -1 where nobody wrote;
    None unless the run recorded its writers.
    """

    target: Name
    grid: Grid
    input: np.ndarray = field(repr=False)
    output: np.ndarray = field(repr=False)
    seconds: float
    writer_block: np.ndarray | None = field(default=None, repr=False)
    writer_thread: np.ndarray | None = field(default=None, repr=False)
    write_counts: np.ndarray | None = field(default=None, repr=False)

    @property
    def expected(self) -> np.ndarray:
        """What is right: the input plus 1."""
        return reference.round_trip(self.input)

    @property
    def wrong_elements(self) -> int:
        """How many elements differ from the expected ones in a bit or more."""
        return int(np.count_nonzero(_bits(self.output) != _bits(self.expected)))

    @property
    def verdict(self) -> str:
        """One line, as the standalone program prints it."""
        different = np.flatnonzero(_bits(self.output) != _bits(self.expected))
        if not len(different):
            width, height = tile_shape()
            tiles = self.output.size // (width * height)
            return (
                f"round trip: PASS. {self.output.size} elements, {tiles} tiles of"
                f" {width} x {height} floats, one cp.async.bulk.tensor per tile."
            )
        index = int(different[0])
        row, column = divmod(index, self.output.shape[1])
        got, want = self.output.flat[index], self.expected.flat[index]
        return (
            f"round trip: FAIL. First difference at index {index} (row {row}, column {column}):"
            f" got {got:.9g}, want {want:.9g}."
        )

    def tile_is_right(self, x: int, y: int) -> bool:
        """Whether all bits of tile (x, y) are as expected."""
        width, height = tile_shape()
        part = np.s_[y * height : (y + 1) * height, x * width : (x + 1) * width]
        return bool(np.array_equal(_bits(self.output[part]), _bits(self.expected[part])))


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint32)


def matrix_shape() -> tuple[int, int]:
    """Width and height of the lesson's matrix, in elements."""
    source = snippets.lesson_source()
    return source.constant("kGmemWidth"), source.constant("kGmemHeight")


def tile_shape() -> tuple[int, int]:
    """Width and height of a tile, in elements."""
    source = snippets.lesson_source()
    return source.constant("kTileWidth"), source.constant("kTileHeight")


def full_grid() -> Grid:
    """Blocks in x and y that cover the matrix."""
    source = snippets.lesson_source()
    return source.constant("kTilesX"), source.constant("kTilesY")


def threads_per_block() -> int:
    """Threads of a block of the lesson's kernel."""
    return snippets.lesson_source().constant("kThreadsPerBlock")


def new_matrix() -> np.ndarray:
    """The input: element i holds i, so that no tile can pass for another."""
    width, height = matrix_shape()
    return np.arange(width * height, dtype=np.float32).reshape(height, width)


def lesson_map(**changes: object) -> TensorMap:
    """The tensor map of a new matrix, with any of its fields changed."""
    width, height = matrix_shape()
    fields: dict[str, object] = {
        "dtype": "FLOAT32",
        "dims": (width, height),
        "strides_bytes": (width * 4,),
        "box": tile_shape(),
        "base": new_matrix(),
    }
    return TensorMap(**{**fields, **changes})  # type: ignore[arg-type]


def run_tile_kernel(
    kernel: TileKernel,
    tensor_map: TensorMap,
    grid: Grid,
    target: Name,
    *,
    recording: bool = False,
    schedule: str = "eager",
    observers: tuple[object, ...] = (),
    force: bool = False,
) -> Run:
    """Runs the lesson's kernel over `tensor_map.base`, a numpy float32 matrix.

    `recording` also notes the writers. `force` sends it to a GPU untried. `schedule` (when copies
    land) and `observers` are the emulator's. Raises CompileError, TensorMapError, Hang, or the
    DeviceFault that a chip raises.
    """
    source = kernel.recording_source() if recording else kernel.source()
    record = harness.new_write_record(tensor_map.base.size) if recording else None
    output = np.zeros_like(tensor_map.base)
    args: list[object] = [tensor_map, output]
    if record is not None:
        args += [record.writer_blocks, record.writer_threads, record.write_counts]
    # Another map can make the shipped kernel wait for bytes that never come.
    is_proven = not kernel.is_edited and tensor_map == lesson_map()
    block = (threads_per_block(),)
    if target == Name.EMULATOR:
        seconds = emulate(source, grid, block, args, schedule, observers)
    else:
        seconds = run_on_gpu(source, grid, block, args, is_proven, force)
    shape = output.shape
    return Run(
        target=target,
        grid=grid,
        input=tensor_map.base,
        output=output,
        seconds=seconds,
        writer_block=None if record is None else _writers(record.writer_blocks, shape),
        writer_thread=None if record is None else _writers(record.writer_threads, shape),
        write_counts=None if record is None else record.write_counts.astype(int).reshape(shape),
    )


def _writers(recorded: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """uint32 with NOBODY -> int64 with -1."""
    return np.where(recorded == harness.NOBODY, -1, recorded.astype(np.int64)).reshape(shape)


def run_on_gpu(
    source: harness.KernelSource,
    grid: Grid,
    block: Grid,
    args: list[object],
    is_proven: bool,
    force: bool = False,
) -> float:
    """Compiles and runs a kernel on the GPU; arrays in `args` change in place. Returns seconds.

    What `is_proven` runs at once. The rest must come to its end in the emulator under every
    schedule, unless `force` is given (Hang, DeviceFault or LimitExceeded is raised where it does
    not, UnsupportedPtx where the emulator cannot tell); then it runs in a child process that a
    fault cannot take this one down with. Races are `check`'s to find, and are let through.
    """
    from lesson import gpu
    from lesson.emulator.copies import SCHEDULES

    if not is_proven:
        for schedule in () if force else SCHEDULES:
            emulate(source, grid, block, copies(args), schedule)
        return isolate(source, grid, block, args)

    return gpu.launch(_compiled(source), source.kernel, grid, block, args).seconds


def isolate(source: harness.KernelSource, grid: Grid, block: Grid, args: list[object]) -> float:
    """Compiles and runs a kernel on the GPU in a child process. Returns seconds."""
    from lesson import gpu

    return gpu.run_isolated(_compiled(source), source.kernel, grid, block, args).seconds


def emulate(
    source: harness.KernelSource,
    grid: Grid,
    block: Grid,
    args: list[object],
    schedule: str = "eager",
    observers: tuple[object, ...] = (),
) -> float:
    """Compiles and runs a kernel in the emulator, whatever the target. Returns seconds."""
    from lesson import emulator

    ptx = _compiled(source).text
    with progress.shown("the emulator runs a kernel", Limits().seconds):
        result = emulator.launch(
            ptx, source.kernel, grid, block, args, schedule=schedule, observers=observers
        )
    return result.seconds


def copies(args: list[object]) -> list[object]:
    """Arguments for a trial run, so that the arrays of the real one stay as they are.

    Views of one array become views of one copy, as they were.
    """
    memory: dict[int, np.ndarray] = {}

    def twin(array: np.ndarray) -> np.ndarray:
        owner = owner_of(array)
        copy = memory.setdefault(id(owner), owner.copy())
        offset = address_of(array) - address_of(owner)
        return np.ndarray(array.shape, array.dtype, copy, offset, array.strides)

    def copied(arg: object) -> object:
        if isinstance(arg, TensorMap):
            return replace(arg, base=twin(arg.base))
        return twin(arg) if isinstance(arg, np.ndarray) else arg

    return [copied(arg) for arg in args]


def _compiled(source: harness.KernelSource) -> compiler.Ptx:
    return compiler.to_ptx(source.text, name=source.name)
