// case: tma-ring-store
// says: a ring of tiles on their way in and out; threads only add
// map: {"box": [256, 16]}
// omap: {"target": "out", "box": [256, 16]}
// launch: {"grid": [3], "block": 128, "dynamic_smem": 65664}
// args: ["map", "omap", 16, 0]
// expect: add1

// SPDX-License-Identifier: MIT
// A ring of stages in shared memory, and the engine at both ends: it brings a tile, the threads add 1 where the tile
// lies, and it takes the tile away. No element of global memory has its address computed by a thread.

#include "bench.cuh"

#ifndef ROWS
#define ROWS 16  // rows of a box; a row is WIDTH floats
#endif
#ifndef WIDTH
#define WIDTH 256
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef LAG
#define LAG 1  // stores that may still be reading their stage when the next one is asked for
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef UNROLL
#define UNROLL 4
#endif

constexpr u32 kTileFloats = WIDTH * ROWS;
constexpr u32 kTileBytes = kTileFloats * 4;
constexpr int kUnroll = UNROLL;
static_assert(kTileFloats % (THREADS * 4) == 0, "every thread takes as many 16-byte units of a tile");
static_assert(LAG < STAGES || STAGES == 1, "a stage is filled again only after its store has read it");

extern __shared__ float room[];

// Tile t of a block's `count` is first + t * step; the map has one column of tiles.
extern "C" __global__ void __launch_bounds__(THREADS)
    k(const __grid_constant__ CUtensorMap in_map, const __grid_constant__ CUtensorMap out_map, int tiles, int chunk)
{
    __shared__ alignas(8) u64 full[STAGES];
    float* stages = room + (128 - shared_address(room) % 128) % 128 / 4;

    // chunk == 0: the blocks take tiles in turn. Else each block takes `chunk` neighbouring tiles.
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
        float4* tile = reinterpret_cast<float4*>(stages + stage * kTileFloats);
        wait(&full[stage], parity);
#pragma unroll kUnroll
        for (u32 j = 0; j < kTileFloats / 4 / THREADS; ++j) {
            tile[j * THREADS + threadIdx.x] = plus_one(tile[j * THREADS + threadIdx.x]);
        }
        fence_async_shared();
        sync_block();
        if (threadIdx.x == 0) {
            store_2d(&out_map, 0, (first + i * step) * ROWS, tile);
            commit_stores();
            // The store of LAG turns ago has left its stage: the tile STAGES turns after that one may come in.
            const int next = i - LAG + STAGES;
            if (i >= LAG && next < count) {
                wait_stores_read<LAG>();
                const int free = stage >= LAG ? stage - LAG : stage - LAG + STAGES;
                arrive_expect(&full[free], kTileBytes);
                load_2d(stages + free * kTileFloats, &in_map, 0, (first + next * step) * ROWS, &full[free]);
            }
        }
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    if (threadIdx.x == 0) {
        wait_stores_read<0>();  // shared memory must outlive what reads it
    }
}
