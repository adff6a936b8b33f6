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


__device__ inline void load_linear(void* dst, const float* src, u32 nbytes, u64* bar)
{
#if LOAD_HINT
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
            shared_address(dst)), "l"(src), "r"(nbytes), "r"(shared_address(bar)), "l"(evict_first()) : "memory");
#else
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(dst)), "l"(src), "r"(nbytes), "r"(shared_address(bar)) : "memory");
#endif
}

__device__ inline void store_linear(float* dst, const void* src, u32 nbytes)
{
#if STORE_HINT
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(dst), "r"(shared_address(src)), "r"(nbytes), "l"(evict_first()) : "memory");
#else
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(shared_address(src)), "r"(nbytes) : "memory");
#endif
}

extern __shared__ float room[];

// Tile t of a block's `count` is first + t * step; the map has one column of tiles.
extern "C" __global__ void __launch_bounds__(THREADS)
    k(const float* in, float* out, int tiles, int chunk)
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
            load_linear(stages + s * kTileFloats, in + static_cast<u64>(first + s * step) * kTileFloats, kTileBytes, &full[s]);
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
            store_linear(out + static_cast<u64>(first + i * step) * kTileFloats, tile, kTileBytes);
            commit_stores();
            // The store of LAG turns ago has left its stage: the tile STAGES turns after that one may come in.
            const int next = i - LAG + STAGES;
            if (i >= LAG && next < count) {
                wait_stores_read<LAG>();
                const int free = stage >= LAG ? stage - LAG : stage - LAG + STAGES;
                arrive_expect(&full[free], kTileBytes);
                load_linear(stages + free * kTileFloats, in + static_cast<u64>(first + next * step) * kTileFloats, kTileBytes, &full[free]);
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
