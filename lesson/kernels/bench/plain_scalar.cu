// case: plain-scalar
// says: each thread loads 4 bytes at a time, adds 1 and stores them
// launch: {"grid": [8], "block": 256}
// args: ["in", "out", 16]
// expect: add1

// SPDX-License-Identifier: MIT
// Plain loads of 4 bytes: every thread computes its addresses, and holds UNROLL loads in registers at a time.

#include "bench.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef TILE
#define TILE 4096  // floats that a block takes in a row
#endif
#ifndef UNROLL
#define UNROLL 4
#endif

static_assert(TILE % (THREADS * UNROLL) == 0, "a block takes a tile in whole turns");

extern "C" __global__ void __launch_bounds__(THREADS)
    k(const float* __restrict__ in, float* __restrict__ out, int tiles)
{
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const u64 start = static_cast<u64>(tile) * TILE + threadIdx.x;
#pragma unroll 1
        for (u32 j = 0; j < TILE; j += THREADS * UNROLL) {
            float v[UNROLL];
#pragma unroll
            for (u32 u = 0; u < UNROLL; ++u) {
                v[u] = in[start + j + u * THREADS];
            }
#pragma unroll
            for (u32 u = 0; u < UNROLL; ++u) {
                out[start + j + u * THREADS] = v[u] + 1.0f;
            }
        }
    }
}
