// case: bulk-one-tile
// says: one tile a block, fetched as bytes that lie in one piece: no map
// launch: {"grid": [32], "block": 256}
// args: ["in", "out"]
// expect: add1

// SPDX-License-Identifier: MIT
// One tile a block, without a map: a tile that lies in one piece needs only an address and a number of bytes.

#include "bench.cuh"

#ifndef TILE
#define TILE 2048  // floats that a block takes in a row
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef STORE
#define STORE 0  // 0: each thread stores what it added. 1: they add in place, and the engine stores.
#endif

constexpr u32 kUnits = TILE / 4;  // units of 16 bytes
static_assert(kUnits % THREADS == 0, "every thread takes as many 16-byte units of a tile");

extern "C" __global__ void __launch_bounds__(THREADS) k(const float4* __restrict__ in, float4* __restrict__ out)
{
    __shared__ alignas(128) float4 tile[kUnits];
    __shared__ alignas(8) u64 full;
    const u64 start = static_cast<u64>(blockIdx.x) * kUnits;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barrier_init();
        arrive_expect(&full, sizeof(tile));
        load_linear(tile, in + start, sizeof(tile), &full);
    }
    sync_block();
    wait(&full, 0);
#pragma unroll 4
    for (u32 j = threadIdx.x; j < kUnits; j += THREADS) {
#if STORE
        tile[j] = plus_one(tile[j]);
#else
        store_16(out + start + j, plus_one(tile[j]));
#endif
    }
#if STORE
    fence_async_shared();
    sync_block();
    if (threadIdx.x == 0) {
        store_linear(out + start, tile, sizeof(tile));
        commit_stores();
        wait_stores_read<0>();  // shared memory must outlive what reads it
    }
#endif
}
