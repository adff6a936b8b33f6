// SPDX-License-Identifier: MIT
// One tile a block, as in the lesson's own kernel: ask, wait, add 1, store. Nothing in a block overlaps; the blocks of
// a multiprocessor overlap one another.

#include "bench.cuh"

#ifndef ROWS
#define ROWS 64
#endif
#ifndef WIDTH
#define WIDTH 64
#endif
#ifndef THREADS
#define THREADS 256
#endif

constexpr u32 kUnitsInRow = WIDTH / 4;  // units of 16 bytes
static_assert(WIDTH * ROWS % (THREADS * 4) == 0, "every thread takes as many 16-byte units of a tile");

// Block (x, y) takes tile (x, y) of a matrix with `width` floats in a row. The matrix ends at (width, height): what of
// an edge tile lies outside is not stored.
extern "C" __global__ void __launch_bounds__(THREADS)
    k(const __grid_constant__ CUtensorMap in_map, float* __restrict__ out, int width, int height)
{
    __shared__ alignas(128) float4 tile[ROWS * kUnitsInRow];
    __shared__ alignas(8) u64 full;
    const int x = blockIdx.x * WIDTH;
    const int y = blockIdx.y * ROWS;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barrier_init();
        arrive_expect(&full, sizeof(tile));
        load_2d(tile, &in_map, x, y, &full);
    }
    __syncthreads();
    wait(&full, 0);
#pragma unroll 4
    for (u32 j = threadIdx.x; j < ROWS * kUnitsInRow; j += THREADS) {
        const int row = y + j / kUnitsInRow;
        const int column = x + j % kUnitsInRow * 4;
        if (row < height && column < width) {
            *reinterpret_cast<float4*>(out + static_cast<u64>(row) * width + column) = plus_one(tile[j]);
        }
    }
}
