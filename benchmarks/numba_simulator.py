"""The lesson's tile copy in numba's CUDA simulator, for `emulator.py` to compare with.

    python benchmarks/numba_simulator.py [RUNS]

Blocks of 256 threads copy tiles of 64 x 64 floats of a 256 x 256 matrix to shared memory, meet, add
1 and write them, as the lesson's kernel does; but by plain loads, since numba knows no TMA. Prints
one JSON object: seconds of each run after the first (and of the processor), numba's version, and
whether the result is right.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # numba reads it while it is imported

import numba
import numpy as np
from numba import cuda, float32

WIDTH, TILE, THREADS = 256, 64, 256
PER_THREAD = TILE * TILE // THREADS


@cuda.jit
def copy_tile(source, out):
    """A tile to shared memory, then plus 1 to its place."""
    tile = cuda.shared.array((TILE, TILE), float32)
    x, y, thread = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE, cuda.threadIdx.x
    for k in range(PER_THREAD):
        row, column = (k * THREADS + thread) // TILE, thread % TILE
        tile[row, column] = source[y + row, x + column]
    cuda.syncthreads()
    for k in range(PER_THREAD):
        row, column = (k * THREADS + thread) // TILE, thread % TILE
        out[y + row, x + column] = tile[row, column] + float32(1)


def main(runs: int) -> None:
    """Run the kernel and print what it took."""
    source = np.arange(WIDTH * WIDTH, dtype=np.float32).reshape(WIDTH, WIDTH)
    grid, seconds, cpu_seconds = (WIDTH // TILE, WIDTH // TILE), [], []
    for _ in range(runs + 1):
        out = np.zeros_like(source)
        start, cpu_start = time.perf_counter(), time.process_time()
        copy_tile[grid, THREADS](source, out)
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    right = bool(np.array_equal(out, source + np.float32(1)))
    answer = {"seconds": seconds[1:], "cpu_seconds": cpu_seconds[1:], "right": right}
    print(json.dumps({**answer, "version": numba.__version__}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
