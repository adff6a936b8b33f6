"""What is run on a real GPU, by the tests of this folder and by `record_evidence`."""

from __future__ import annotations

import ctypes
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lesson import compile as nvrtc
from lesson import gpu, harness, snippets, tensor_map
from lesson.compile import Ptx
from lesson.errors import DeviceFault, Hang
from lesson.harness import KernelSource, WriteRecord
from lesson.tensor_map import TensorMap
from tests import encode_region

SOURCE = snippets.lesson_source()
WIDTH, HEIGHT = SOURCE.constant("kGmemWidth"), SOURCE.constant("kGmemHeight")
TILE_WIDTH, TILE_HEIGHT = SOURCE.constant("kTileWidth"), SOURCE.constant("kTileHeight")
GRID = (WIDTH // TILE_WIDTH, HEIGHT // TILE_HEIGHT)
BLOCK = SOURCE.constant("kThreadsPerBlock")

# One edit, one mistake: what the GPU makes of each stands in `record_evidence`'s file.
HANGS = {"barrier_arrive_tx(bar, 1, sizeof(tile))": "barrier_arrive_tx(bar, 1, 2 * sizeof(tile))"}
ILLEGAL = {"start[2] = {tileX, tileY}": "start[2] = {tileX + 1, tileY}"}


@dataclass(frozen=True, slots=True)
class MapBytes:
    """The 128 bytes of the same map, encoded by the C++ region and by this package."""

    address: int
    cpp_result: int
    cpp: bytes
    python: bytes


def matrix() -> np.ndarray:
    """Every element differs, and adding 1 to any is exact."""
    return np.arange(WIDTH * HEIGHT, dtype=np.float32).reshape(HEIGHT, WIDTH)


def compiled(kernel: KernelSource) -> Ptx:
    return nvrtc.to_ptx(kernel.text, name=kernel.name)


def tile_map(array: np.ndarray) -> TensorMap:
    return TensorMap.from_array(array, (TILE_WIDTH, TILE_HEIGHT))


def round_trip(*, isolated: bool = False, replace: dict[str, str] | None = None) -> np.ndarray:
    """The output of the lesson's kernel, or of an edited one."""
    array, out = matrix(), np.zeros((HEIGHT, WIDTH), np.float32)
    kernel = harness.kernel_source(replace=replace)
    run = gpu.run_isolated if isolated else gpu.launch
    options = {"time_limit_s": 3.0} if isolated else {}
    run(compiled(kernel), kernel.kernel, GRID, BLOCK, [tile_map(array), out], **options)
    return out


def is_exact(out: np.ndarray) -> bool:
    """Bit by bit."""
    return out.tobytes() == (matrix() + np.float32(1)).tobytes()


def record_writes() -> tuple[np.ndarray, WriteRecord]:
    """The output of the recording kernel and who wrote it."""
    array, out = matrix(), np.zeros((HEIGHT, WIDTH), np.float32)
    record = harness.new_write_record(out.size)
    kernel = harness.recording_source()
    args = [tile_map(array), out, record.writer_blocks, record.writer_threads, record.write_counts]
    gpu.launch(compiled(kernel), kernel.kernel, GRID, BLOCK, args)
    return out, record


def expected_writers() -> tuple[np.ndarray, np.ndarray]:
    """Block and thread of each element, from what plain-store says."""
    row, column = np.divmod(np.arange(WIDTH * HEIGHT), WIDTH)
    blocks = row // TILE_HEIGHT * GRID[0] + column // TILE_WIDTH
    rows_per_step = BLOCK // TILE_WIDTH
    threads = row % TILE_HEIGHT % rows_per_step * TILE_WIDTH + column % TILE_WIDTH
    return blocks, threads


def map_bytes() -> MapBytes:
    """Both ways to encode, over one array on the device."""
    import cupy

    array = cupy.asarray(matrix())
    with tempfile.TemporaryDirectory() as folder:
        library = encode_region.build(SOURCE, Path(folder))
        function = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
        result, cpp = encode_region.encode(library, function, array.data.ptr)
    python = tensor_map.encode(TensorMap.from_array(array, (TILE_WIDTH, TILE_HEIGHT)))
    return MapBytes(array.data.ptr, result, cpp, python.tobytes())


def isolation(replace: dict[str, str]) -> dict[str, object]:
    """What a broken kernel does in its own process, and whether this one still works after it."""
    start = time.monotonic()
    try:
        outcome = "exact" if is_exact(round_trip(isolated=True, replace=replace)) else "wrong"
    except Hang as error:
        outcome = f"Hang: {error}"
    except DeviceFault as error:
        outcome = f"{type(error).__name__} ({error.cuda_error}): {error}"
    seconds = time.monotonic() - start
    return {
        "edit": replace,
        "outcome": outcome,
        "seconds": round(seconds, 2),
        "next_launch_exact": is_exact(round_trip()),
    }
