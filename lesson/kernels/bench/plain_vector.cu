// case: plain-vector
// says: each thread loads 16 bytes at a time, adds 1 and stores them
// launch: {"grid": [8], "block": 256}
// args: ["in", "out", 16]
// expect: add1

// SPDX-License-Identifier: MIT
// Plain loads of 16 bytes: as plain_scalar.cu, with a quarter of the instructions.

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

static_assert(TILE % (THREADS * UNROLL * 4) == 0, "a block takes a tile in whole turns");

extern "C" __global__ void __launch_bounds__(THREADS)
    k(const float4* __restrict__ in, float4* __restrict__ out, int tiles)
{
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const u64 start = static_cast<u64>(tile) * (TILE / 4) + threadIdx.x;
#pragma unroll 1
        for (u32 j = 0; j < TILE / 4; j += THREADS * UNROLL) {
            float4 v[UNROLL];
#pragma unroll
            for (u32 u = 0; u < UNROLL; ++u) {
#if LOAD_HINT
                v[u] = __ldcs(in + start + j + u * THREADS);
#else
                v[u] = in[start + j + u * THREADS];
#endif
            }
#pragma unroll
            for (u32 u = 0; u < UNROLL; ++u) {
                store_16(out + start + j + u * THREADS, plus_one(v[u]));
            }
        }
    }
}
