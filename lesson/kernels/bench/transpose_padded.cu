// case: transpose-padded
// says: a transpose through shared memory with padded rows
// launch: {"grid": [8, 8], "block": 256}
// args: ["in", "out", 256, 256]
// expect: transposed

// SPDX-License-Identifier: MIT
// The transpose of the textbooks: a tile goes through shared memory whose rows are one float longer than the tile's,
// so that a column lies in 32 different banks.

#include "bench.cuh"

#ifndef TILE
#define TILE 32
#endif
#ifndef THREADS
#define THREADS 256
#endif

constexpr u32 kRows = THREADS / TILE;  // rows that the block takes at once

// out[x][y] = in[y][x]; the matrix has width x height floats, multiples of TILE.
extern "C" __global__ void __launch_bounds__(THREADS)
    k(const float* __restrict__ in, float* __restrict__ out, int width, int height)
{
    __shared__ float tile[TILE][TILE + 1];
    const u32 column = threadIdx.x % TILE;
    const u32 row = threadIdx.x / TILE;
    const u64 x = blockIdx.x * TILE;
    const u64 y = blockIdx.y * TILE;
#pragma unroll
    for (u32 r = row; r < TILE; r += kRows) {
        tile[r][column] = in[(y + r) * width + x + column];
    }
    __syncthreads();
#pragma unroll
    for (u32 r = row; r < TILE; r += kRows) {
        out[(x + r) * height + y + column] = tile[column][r];
    }
}
