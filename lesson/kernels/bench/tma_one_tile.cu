// case: tma-one-tile
// says: one tile a block: one thread asks, all wait, add 1 and store
// map: {}
// launch: {"grid": [4, 4], "block": 256}
// args: ["map", "out", 256, 256]
// expect: add1

// SPDX-License-Identifier: MIT
// One tile a block, as in the lesson's own kernel: ask, wait, add 1, store. Nothing in a block overlaps; the blocks of
// a multiprocessor overlap one another, and the hardware hands them out as multiprocessors get free.

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
#ifndef TEAM
#define TEAM THREADS  // threads that share a tile: all of the block, or 32: then each warp has tiles of its own
#endif
#ifndef TILES
#define TILES 1  // neighbouring tiles that a team asks for at once, each with a barrier of its own
#endif
#ifndef FLAT
#define FLAT 0  // 1: the matrix is one column of tiles, WIDTH floats wide, and each tile lies in one piece
#endif
#ifndef STORE
#define STORE 0  // 0: each thread stores what it added. 1: they add in place, and the engine stores.
#endif
#ifndef ONE_WAITS
#define ONE_WAITS 0  // 1: one thread waits for the bytes, the others for that thread
#endif
#ifndef BLOCKS
#define BLOCKS 1  // of a multiprocessor, for which registers must suffice
#endif

constexpr u32 kUnitsInRow = WIDTH / 4;  // units of 16 bytes
constexpr u32 kUnits = ROWS * kUnitsInRow;
constexpr u32 kTeams = THREADS / TEAM;
static_assert(TEAM == THREADS || TEAM == 32, "a team is the block or a warp");
static_assert(kUnits % TEAM == 0, "every thread takes as many 16-byte units of a tile");

#if STORE
#define OUT const __grid_constant__ CUtensorMap out
#else
#define OUT float* __restrict__ out
#endif

__device__ inline void sync_team()
{
#if TEAM == 32
    __syncwarp();
#else
    __syncthreads();
#endif
}

// Block (x, y) takes tiles in row y of tiles, its teams one after another TILES each (FLAT: in column 0, rows by x). The
// matrix ends at (width, height): what of an edge tile lies outside is not stored.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    k(const __grid_constant__ CUtensorMap in_map, OUT, int width, int height)
{
    __shared__ alignas(128) float4 rooms[kTeams][TILES * kUnits];
    __shared__ alignas(8) u64 barriers[kTeams][TILES];
    const u32 team = threadIdx.x / TEAM, member = threadIdx.x % TEAM;
    float4* room = rooms[team];
    u64* full = barriers[team];
    const u32 first = (blockIdx.x * kTeams + team) * TILES;  // tile
    const int x = FLAT ? 0 : first * WIDTH;
    const int y = FLAT ? first * ROWS : blockIdx.y * ROWS;
    constexpr int kNextX = FLAT ? 0 : WIDTH, kNextY = FLAT ? ROWS : 0;
    if (member == 0) {
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
            barrier_init(&full[t], 1);
        }
        fence_barrier_init();
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
            arrive_expect(&full[t], kUnits * 16);
            load_2d(room + t * kUnits, &in_map, x + t * kNextX, y + t * kNextY, &full[t]);
        }
    }
#if !ONE_WAITS
    sync_team();
#endif
#pragma unroll
    for (int t = 0; t < TILES; ++t) {
        float4* tile = room + t * kUnits;
#if ONE_WAITS
        if (member == 0) {
            wait(&full[t], 0);
        }
        sync_team();
#else
        wait(&full[t], 0);
#endif
#pragma unroll 4
        for (u32 j = member; j < kUnits; j += TEAM) {
#if STORE
            tile[j] = plus_one(tile[j]);
#elif FLAT
            store_16(reinterpret_cast<float4*>(out) + static_cast<u64>(first + t) * kUnits + j,
                     plus_one(tile[j]));
#else
            const int row = y + j / kUnitsInRow;
            const int column = x + t * kNextX + j % kUnitsInRow * 4;
            if (row < height && column < width) {
                store_16(reinterpret_cast<float4*>(out + static_cast<u64>(row) * width + column), plus_one(tile[j]));
            }
#endif
        }
#if STORE
        fence_async_shared();
        sync_team();
        if (member == 0) {
            store_2d(&out, x + t * kNextX, y + t * kNextY, tile);
            commit_stores();
        }
#endif
    }
#if STORE
    if (member == 0) {
        wait_stores_read<0>();  // shared memory must outlive what reads it
    }
#endif
}
