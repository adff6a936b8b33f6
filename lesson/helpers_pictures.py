"""The pictures and the measured numbers behind the notebook's door: short functions, one a picture.

Does: ask the part that knows, and hand what it says to the module that draws. `helpers` offers all
of them by the same names.
Does not: hold machinery. Matplotlib is imported where a picture is drawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lesson import edges, targets
from lesson.errors import LessonError
from lesson.kernel_source import TileKernel
from lesson.targets import Run
from lesson.tensor_map import TensorMap

if TYPE_CHECKING:
    import numpy as np

    from lesson.figure_style import Picture
    from lesson.stepper import Stepper


def recorded_copies() -> None:
    """Prints how fast copies ran on an H200, as ratios to the runtime's copy in the same run."""
    from lesson import measured

    print(measured.copies())


def threads_needed(share: float) -> dict[str, int | None]:
    """Threads on a multiprocessor that sufficed on an H200 for `share` of the runtime's copy."""
    from lesson import measured

    return measured.threads_needed(share)


def measure_here() -> Picture:
    """Measures a few points on this GPU, prints them, and draws them over what was recorded."""
    from lesson import measured

    says, points = measured.here()
    print(says)
    return measured.draw_here(points)


def draw_measured(name: str) -> Picture:
    """A recorded picture of measurements on an H200.

    `name`: "threads", "sizes", "copies", "transposes", "edges" or "instructions".
    """
    from lesson import measured

    return measured.draw(name)


def draw_paths(block: tuple[int, int]) -> Picture:
    """The matrix and its tiles, and the two ways to fetch the tile of a block (x, y)."""
    from lesson import figures_story

    shape, tile = targets.matrix_shape(), targets.tile_shape()
    return figures_story.matrix_and_paths(shape, tile, block, targets.threads_per_block())


def draw_map(tmap: TensorMap | None = None) -> Picture:
    """What the arguments of a two-dimensional map `tmap` mean; the lesson's if none is given."""
    from lesson import figures_story

    tmap = tmap or targets.lesson_map()
    return figures_story.map_arguments(tmap)


def draw_swizzle(column: int) -> Picture:
    """Where a column of a tile lies in shared memory, plain and swizzled, and its bank conflicts.

    Counted in the emulator (on either target), in a kernel that reads a tile of 32 x 32 floats.
    """
    from lesson import banks, figures_memory

    reads = [banks.read_tile(s, by) for s in ("NONE", "128B") for by in ("rows", "columns")]
    return figures_memory.swizzle(reads, column)


def draw_doors(kernel: TileKernel | None = None) -> Picture:
    """The two proxies of shared memory, and what passes through each.

    `kernel`: as `edit` returns it; the lesson's if none is given. From a run in the emulator.
    """
    from lesson import figures_memory, timeline

    return figures_memory.doors(timeline.record(kernel))


def draw_timeline(kernel: TileKernel | None = None, schedule: str = "late") -> Stepper:
    """One block's story to step through, as the emulator recorded it (on either target).

    `kernel`: as `edit` returns it; the lesson's if none is given. `schedule`: when copies land:
    "late", not before every thread waits, or "eager", at once.
    """
    from lesson import stepper, timeline

    return stepper.of(timeline.record(kernel, schedule))


def draw_barrier() -> Picture:
    """One block's barrier, step by step, as the emulator recorded it (on either target)."""
    from lesson import barrier_story, figures_story

    steps = barrier_story.record()
    nbytes = math.prod(targets.tile_shape()) * 4
    return figures_story.barrier_steps(steps, targets.threads_per_block(), nbytes)


def draw_tile_writers(run: Run) -> Picture:
    """Which block wrote which tile. Needs a run of `run_recorded`."""
    from lesson import figures

    return figures.tile_writers(_recorded(run).writer_block, run.grid, targets.tile_shape())


def draw_thread_writers(run: Run, tile: tuple[int, int]) -> Picture:
    """Which thread wrote which element of tile (x, y). Needs a run of `run_recorded`."""
    from lesson import figures

    width, height = targets.tile_shape()
    x, y = tile[0] * width, tile[1] * height
    threads = _recorded(run).writer_thread[y : y + height, x : x + width]
    return figures.thread_writers(threads, str(tile), targets.threads_per_block())


def draw_write_counts(run: Run) -> Picture:
    """How often each element was written. Needs a run of `run_recorded`."""
    from lesson import figures

    return figures.write_counts(_recorded(run).write_counts, targets.tile_shape())


def draw_before_after(run: Run, tile: tuple[int, int]) -> Picture:
    """Numbers of a corner of `tile` (x, y) before and after `run`; the difference everywhere."""
    from lesson import figures_values

    width, height = targets.tile_shape()
    return figures_values.before_after(run.input, run.output, (tile[0] * width, tile[1] * height))


def draw_right_tiles(run: Run, title: str) -> Picture:
    """Which tiles of `run` came out right, and whose data the wrong ones hold, under a `title`."""
    from lesson import figures_values

    return figures_values.right_tiles(run.output, run.input, targets.tile_shape(), title)


def draw_edge_store(after: np.ndarray) -> Picture:
    """What a store at the right edge changed, inside the matrix and in its padding.

    `after`: the matrix as `edge_store` returns it.
    """
    from lesson import figures_values

    return figures_values.store_at_the_edge(edges.new_matrix(), after, edges.WIDTH)


def _recorded(run: Run) -> Run:
    if run.writer_block is None:
        raise LessonError(
            "the run must have recorded its writers, got one that did not. Use run_recorded()."
        )
    return run
