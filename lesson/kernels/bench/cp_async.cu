// case: cp-async
// says: each thread brings 16 bytes at a time to shared memory, past its registers, a tile ahead
// launch: {"grid": [5], "block": 256, "dynamic_smem": 32768}
// args: ["in", "out", 16]
// expect: add1

// SPDX-License-Identifier: MIT
// The asynchronous copies of the generation before, cp.async: every thread computes an address for every 16 bytes, but
// they go to shared memory past the registers, STAGES tiles ahead.

#include "bench.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef TILE
#define TILE 4096  // floats of a stage
#endif
#ifndef STAGES
#define STAGES 2
#endif

constexpr u32 kUnits = TILE / 4;  // units of 16 bytes
static_assert(kUnits % THREADS == 0, "every thread takes as many units of a tile");

extern __shared__ float4 room[];

__device__ inline void fetch(float4* stage, const float4* __restrict__ in, int tile, int tiles)
{
    if (tile < tiles) {
        const float4* from = in + static_cast<u64>(tile) * kUnits + threadIdx.x;
#pragma unroll
        for (u32 j = 0; j < kUnits; j += THREADS) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(stage + j + threadIdx.x)),
                         "l"(from + j)
                         : "memory");
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");  // an empty group too: groups count turns
}

extern "C" __global__ void __launch_bounds__(THREADS)
    k(const float4* __restrict__ in, float4* __restrict__ out, int tiles)
{
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        fetch(room + s * kUnits, in, blockIdx.x + s * gridDim.x, tiles);
    }
    int stage = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int ahead = stage == 0 ? STAGES - 1 : stage - 1;
        fetch(room + ahead * kUnits, in, tile + (STAGES - 1) * gridDim.x, tiles);
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
        // A thread reads back only what it fetched itself: no barrier is needed.
        float4* to = out + static_cast<u64>(tile) * kUnits + threadIdx.x;
#pragma unroll
        for (u32 j = 0; j < kUnits; j += THREADS) {
            to[j] = plus_one(room[stage * kUnits + j + threadIdx.x]);
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
}
