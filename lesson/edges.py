"""The engine's rules at the edges of a matrix, tried with the two kernels of kernels/edges.cu.

Does: one load or store of an 8 x 8 box on a small padded matrix, on either target, and says in one
line what came of it; the words are the same on both targets.
Does not: predict. The emulator answers as an H200 did. A GPU answers for itself, in a child
process, if the emulator found that the kernel comes to an end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from lesson import harness, snippets, targets
from lesson.errors import DeviceFault, Hang
from lesson.tensor_map import TensorMap

PATH = Path(__file__).parent / "kernels" / "edges.cu"
WIDTH, HEIGHT = 13, 8
PADDED_WIDTH = 16  # a row is 64 bytes: a map wants strides in multiples of 16 bytes
STORED = -1.0
_FAULTS = {
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "illegal instruction",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "illegal address",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "misaligned address",
    "CUDA_ERROR_LAUNCH_FAILED": "unspecified launch failure",
}


@dataclass(frozen=True)
class Outcome:
    """What came of one copy: `says` in a line, and what memory holds after it (None if it failed).

    `values`: the box that arrived (8 x 8), or the matrix with its padding (8 x 16) after a store.
    """

    says: str
    values: np.ndarray | None = None


@cache
def source() -> snippets.Source:
    """The file of the two kernels."""
    return snippets.read(PATH)


def box_shape() -> tuple[int, int]:
    """Width and height of the box, in elements."""
    return source().constant("kBoxWidth"), source().constant("kBoxHeight")


def box_nbytes() -> int:
    """Bytes of a whole box."""
    width, height = box_shape()
    return width * height * 4


def new_matrix() -> np.ndarray:
    """Rows of 13 elements and 3 of padding; element i holds i + 1, so that zeros are fill."""
    return np.arange(1, HEIGHT * PADDED_WIDTH + 1, dtype=np.float32).reshape(HEIGHT, PADDED_WIDTH)


def _map_of(matrix: np.ndarray) -> TensorMap:
    return TensorMap.from_array(matrix[:, :WIDTH], box_shape())


def load(x: int, y: int, expected_bytes: int | None, target: targets.Name) -> Outcome:
    """Loads the box that starts at (x, y) and waits for that many bytes (default: all of them)."""
    nbytes = box_nbytes() if expected_bytes is None else expected_bytes
    width, height = box_shape()
    box = np.zeros((height, width), np.float32)
    args = [_map_of(new_matrix()), np.int32(x), np.int32(y), np.int32(nbytes), box]
    says = _attempt("loadBox", args, target)
    what = f"load at x {x}, y {y}, waiting for {nbytes} bytes:\n    {says}"
    return Outcome(what, box if says == "done" else None)


def store(x: int, y: int, target: targets.Name) -> Outcome:
    """Stores a box of -1 that starts at (x, y)."""
    matrix = new_matrix()
    args = [_map_of(matrix), np.int32(x), np.int32(y), np.float32(STORED)]
    says = _attempt("storeBox", args, target)
    return Outcome(f"store at x {x}, y {y}:\n    {says}", matrix if says == "done" else None)


def _attempt(kernel: str, args: list[object], target: targets.Name) -> str:
    width, height = box_shape()
    kernel_source = harness.KernelSource(source().text, source().name, kernel)
    shape = ((1,), (width * height,))
    if target == targets.Name.EMULATOR:
        return _came_to(lambda: targets.emulate(kernel_source, *shape, args))
    emulated = _came_to(lambda: targets.emulate(kernel_source, *shape, targets.copies(args)))
    if emulated == "hang":
        return emulated
    return _came_to(lambda: targets.isolate(kernel_source, *shape, args))


def _came_to(run: Callable[[], float]) -> str:
    try:
        run()
    except Hang:
        return "hang"
    except DeviceFault as fault:
        return _FAULTS.get(fault.cuda_error, fault.cuda_error)
    return "done"
