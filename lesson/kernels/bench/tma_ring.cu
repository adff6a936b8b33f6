// case: tma-ring
// says: a ring of tiles on their way in; threads store
// map: {"box": [256, 16]}
// launch: {"grid": [3], "block": 128, "dynamic_smem": 65664}
// args: ["map", "out", 16, 0]
// expect: add1

// SPDX-License-Identifier: MIT
// A ring of stages in shared memory that the engine keeps full; the threads add 1 on the way from a stage to their own
// stores. The tile that a stage held has left it when the last thread has read it: then it is filled again.

#include "bench.cuh"

#ifndef ROWS
#define ROWS 16
#endif
#ifndef WIDTH
#define WIDTH 256
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef UNROLL
#define UNROLL 8
#endif

constexpr u32 kTileFloats = WIDTH * ROWS;
constexpr u32 kTileBytes = kTileFloats * 4;
constexpr int kUnroll = UNROLL;
static_assert(kTileFloats % (THREADS * 4) == 0, "every thread takes as many 16-byte units of a tile");

extern __shared__ float room[];

extern "C" __global__ void __launch_bounds__(THREADS)
    k(const __grid_constant__ CUtensorMap in_map, float4* __restrict__ out, int tiles, int chunk)
{
    __shared__ alignas(8) u64 full[STAGES];
    float* stages = room + (128 - shared_address(room) % 128) % 128 / 4;

    const int first = chunk == 0 ? blockIdx.x : blockIdx.x * chunk;
    const int step = chunk == 0 ? gridDim.x : 1;
    const int count = chunk == 0 ? (tiles - first + step - 1) / step : min(chunk, tiles - first);

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(&full[s], 1);
        }
        fence_barrier_init();
        for (int s = 0; s < STAGES && s < count; ++s) {
            arrive_expect(&full[s], kTileBytes);
            load_2d(stages + s * kTileFloats, &in_map, 0, (first + s * step) * ROWS, &full[s]);
        }
    }
    sync_block();

    int stage = 0;
    u32 parity = 0;
    for (int i = 0; i < count; ++i) {
        const float4* tile = reinterpret_cast<const float4*>(stages + stage * kTileFloats);
        float4* to = out + static_cast<u64>(first + i * step) * (kTileFloats / 4);
        wait(&full[stage], parity);
#pragma unroll kUnroll
        for (u32 j = 0; j < kTileFloats / 4 / THREADS; ++j) {
            const float4 v = plus_one(tile[j * THREADS + threadIdx.x]);
            store_16(to + j * THREADS + threadIdx.x, v);
        }
        sync_block();
        if (threadIdx.x == 0 && i + STAGES < count) {
            arrive_expect(&full[stage], kTileBytes);
            load_2d(stages + stage * kTileFloats, &in_map, 0, (first + (i + STAGES) * step) * ROWS, &full[stage]);
        }
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
}
