"""The notebook's only door: short functions that show, run, draw and check.

Does: one thing each, named as a reader would say it. Everything else stands behind: `targets` runs,
`figures` draws, `kernel_source` edits, `edges` tries the edges, `tensor_map` knows the rules.
Does not: hold machinery. Text that these functions print is the same on a GPU and without one,
except where a function says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lesson import compile as compiler
from lesson import edges, kernel_source, map_report, outcome, ptx_view, snippets, targets
from lesson.helpers_pictures import (
    draw_barrier,
    draw_before_after,
    draw_doors,
    draw_edge_store,
    draw_map,
    draw_measured,
    draw_paths,
    draw_right_tiles,
    draw_swizzle,
    draw_thread_writers,
    draw_tile_writers,
    draw_timeline,
    draw_write_counts,
    measure_here,
    recorded_copies,
    threads_needed,
)
from lesson.kernel_source import TileKernel
from lesson.listing import Listing
from lesson.targets import Grid, Name, Run
from lesson.tensor_map import TensorMap

if TYPE_CHECKING:
    import numpy as np

    from lesson.cards import Card, Scores
    from lesson.exercises import Exercise
    from lesson.findings import Report

__all__ = [
    "check",
    "check_map",
    "constant",
    "count_instructions",
    "diagnose",
    "draw_barrier",
    "draw_before_after",
    "draw_doors",
    "draw_edge_store",
    "draw_map",
    "draw_measured",
    "draw_paths",
    "draw_right_tiles",
    "draw_swizzle",
    "draw_thread_writers",
    "draw_tile_writers",
    "draw_timeline",
    "draw_write_counts",
    "edge_load",
    "edge_store",
    "edit",
    "enable_cuda_cells",
    "exercise",
    "measure_here",
    "recorded_copies",
    "run_recorded",
    "run_tile_kernel",
    "show_instruction",
    "show_kernel",
    "snippet",
    "tensor_map",
    "threads_needed",
    "verdict",
    "what_happens",
    "where_am_i",
    "who_noticed",
]


def where_am_i() -> None:
    """Prints one line: which target runs the lesson here, and why."""
    target = targets.choose()
    if target.name == Name.GPU:
        print(f"Runs on: {target.why}, live through CuPy.")
    else:
        print(f"Runs on: the emulator, on the CPU. Why: {target.why}")


def snippet(name: str) -> Listing:
    """The marked region `name` of tma_tile.cu, with the file's line numbers.

    `name`: "encode-map", "issue-tma" or "plain-store".
    """
    return kernel_source.listing(name)


def show_kernel(first: str, last: str) -> Listing:
    """The kernel's lines from the first that holds `first` to the next that holds `last`."""
    return kernel_source.between(first, last)


def constant(name: str) -> int:
    """The integer constant `name` of tma_tile.cu, such as "kTileWidth"."""
    return snippets.lesson_source().constant(name)


def count_instructions(*kinds: str, source: str | None = None) -> dict[str, int]:
    """How many PTX instructions of each of `kinds` one thread's code holds.

    `kinds`: how they begin, such as "ld.global". `source`: CUDA C++ text; the lesson's kernel if
    none is given.
    """
    kernel = TileKernel().source() if source is None else None
    text, name = (kernel.text, kernel.name) if kernel else (source, "your kernel")
    return ptx_view.count(compiler.to_ptx(text, name=name).text, kinds)


def tensor_map(**changes: object) -> TensorMap:
    """The map of the lesson's matrix, with `changes` to any of the fields of TensorMap.

    Such as `tensor_map(box=(32, 64))`, `tensor_map(swizzle="128B")`; sizes are x first.
    """
    return targets.lesson_map(**changes)


def check_map(tmap: TensorMap) -> None:
    """Prints the arguments of the map `tmap` one by one, the driver's verdict, and what to mend.

    On a GPU the driver itself is asked, too, and must agree with the rules.
    """
    if targets.choose().name == Name.GPU:
        map_report.ask_driver(tmap)
    print(map_report.report(tmap))


def verdict(tmap: TensorMap) -> str:
    """Whether the driver takes the map `tmap`, and if not, which rule it breaks."""
    if targets.choose().name == Name.GPU:
        map_report.ask_driver(tmap)
    return map_report.verdict(tmap)


def show_instruction(name: str, kind: str = "cp.async.bulk.tensor") -> None:
    """Prints the PTX line that the snippet `name` became here, and the SASS line of an H200.

    `kind`: how the PTX instruction begins.
    """
    kernel = TileKernel().source()
    region = snippets.lesson_source().snippet(name)
    ptx = compiler.to_ptx(kernel.text, name=kernel.name)
    print("PTX: ", ptx_view.line_of(ptx.text, region, kind))
    print("SASS:", ptx_view.recorded_sass())


def edit(region: str, old: str, new: str, kernel: TileKernel | None = None) -> TileKernel:
    """The kernel with `old` replaced by `new`.

    `region`: a snippet's name, such as "issue-tma", or "kernel" for all of it; `old` must stand
    there exactly once. Pass `kernel` to edit one that is edited already.
    """
    return (kernel or TileKernel()).edit(region, old, new)


def check(source_or_path: object, **launch: object) -> Report:
    """What is wrong with a kernel, as far as a run shows it.

    `source_or_path`: a .cu file's path, or CUDA C++ text with `launch`: kernel=, grid=, block=,
    args=. A file may describe its launch in comments at its head. Runs in the emulator under every
    schedule of the copies, and then on a Hopper GPU if there is one and the kernel came to an end.
    """
    from lesson.check import check as check_kernel
    from lesson.check_gpu import on_the_gpu

    return check_kernel(source_or_path, gpu=on_the_gpu, **launch)  # type: ignore[arg-type]


def enable_cuda_cells() -> None:
    """Makes `%%cuda --grid 4,4 --block 256` check the CUDA C++ of a cell."""
    from lesson import diagnosis_magic

    diagnosis_magic.enable()


def run_tile_kernel(
    kernel: TileKernel | None = None,
    *,
    tensor_map: TensorMap | None = None,
    grid: Grid | None = None,
    force: bool = False,
) -> Run:
    """Runs the kernel of the day, or an edited one, and returns input, output and verdict.

    `kernel`: as `edit` returns it. `tensor_map`: another map than the lesson's. `grid`: blocks in
    (x, y), 4 x 4 if none is given. An edited kernel reaches a GPU only after it came to an end in
    the emulator, whenever the copies land, and then in a process of its own with a time limit;
    `force` sends it there untried.
    """
    return _run(kernel, tensor_map, grid, recording=False, force=force)


def run_recorded(
    kernel: TileKernel | None = None,
    *,
    tensor_map: TensorMap | None = None,
    grid: Grid | None = None,
) -> Run:
    """The same as `run_tile_kernel`, with an `out` that remembers who wrote each element.

    `kernel`, `tensor_map`, `grid`: as there. The run has writer_block, writer_thread,
    write_counts.
    """
    return _run(kernel, tensor_map, grid, recording=True)


def _run(
    kernel: TileKernel | None,
    tmap: TensorMap | None,
    grid: Grid | None,
    recording: bool,
    force: bool = False,
) -> Run:
    return targets.run_tile_kernel(
        kernel or TileKernel(),
        tmap or tensor_map(),
        grid or targets.full_grid(),
        targets.choose().name,
        recording=recording,
        force=force,
    )


def what_happens(kernel: TileKernel, schedule: str = "eager") -> None:
    """Runs a kernel that may be broken in the emulator, on either target, and prints the outcome.

    `schedule`: when copies land: "eager" at once, "late" not before every thread waits.
    """
    print(outcome.of(kernel, schedule))


def diagnose(
    kernel: TileKernel | None = None,
    *,
    tensor_map: TensorMap | None = None,
    grid: Grid | None = None,
    like: str | None = None,
) -> Card:
    """What is wrong with a kernel or its map: the bits under every schedule, and the finding.

    `kernel`: as `edit` returns it; the lesson's if none is given. `tensor_map`: another map;
    `grid`: blocks in (x, y). `like`: the name of a recorded kernel with the same mistake, to read
    what an H200 and compute-sanitizer said of it. Runs in the emulator, on either target.
    """
    from lesson import mistakes

    return mistakes.diagnose(kernel or TileKernel(), tensor_map, grid, like)


def who_noticed() -> Scores:
    """The recorded mistakes in a table: an H200, compute-sanitizer, and what you found so far."""
    from lesson import mistakes

    return mistakes.who_noticed()


def exercise(name: str) -> Exercise:
    """The exercise `name`: it has check, hint and solution.

    `name`: "edges", "ring", "store" or "swizzle".
    """
    from lesson import exercises

    return exercises.find(name)


def edge_load(x: int, y: int, expected_bytes: int | None = None) -> np.ndarray | None:
    """Loads the 8 x 8 box at (`x`, `y`) of the small matrix; prints what came of it.

    `x`, `y`: elements, may be negative. `expected_bytes`: how many the barrier is told to wait
    for; all 256 of the box if none are given. Returns the box, or None where the kernel did not
    come to its end.
    """
    outcome = edges.load(x, y, expected_bytes, targets.choose().name)
    print(outcome.says)
    return outcome.values


def edge_store(x: int, y: int) -> np.ndarray | None:
    """Stores an 8 x 8 box of -1 at (`x`, `y`), elements; prints what came of it.

    Returns the small matrix with its padding, or None where the kernel did not come to its end.
    """
    outcome = edges.store(x, y, targets.choose().name)
    print(outcome.says)
    return outcome.values
