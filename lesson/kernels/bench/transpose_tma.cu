// case: transpose-tma
// says: a transpose with swizzled tiles, the engine at both ends
// map: {"gdim": [32, 256, 8], "gstrides": [1024, 128], "box": [32, 64, 2], "swizzle": "128B"}
// omap: {"target": "out", "gdim": [32, 256, 8], "gstrides": [1024, 128], "box": [32, 64, 2], "swizzle": "128B"}
// launch: {"grid": [16], "block": 256, "dynamic_smem": 17408}
// args: ["map", "omap", 4, 4]
// expect: transposed

// SPDX-License-Identifier: MIT
// A transpose with the engine at both ends. A tile of TILE x TILE floats lies in shared memory as TILE / 32 columns of
// boxes, each 32 floats (128 bytes) wide; a box dimension of its own counts them, so that one instruction fetches all.
//
// Each thread turns blocks of 4 x 4: four 16-byte reads, registers renamed, four 16-byte writes. Under the 128-byte
// swizzle the 16-byte unit u of row r lies at u ^ (r % 8).

#include "bench.cuh"

#ifndef TILE
#define TILE 64
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef SWIZZLE
#define SWIZZLE 1  // 1: both maps have the 128-byte swizzle. 0: rows lie plainly.
#endif
#ifndef DIAGONAL
#define DIAGONAL 1  // 1: the lanes of a quarter warp walk a diagonal. 0: they walk a row of the input.
#endif
#ifndef RASTER
#define RASTER 0  // 0: blocks go along the rows. N: down strips that are N tiles wide.
#endif

constexpr u32 kTileBytes = TILE * TILE * 4;
constexpr u32 kBlocks = TILE / 4;  // blocks of 4 x 4 along one side
constexpr u32 kEach = kBlocks * kBlocks / THREADS;
static_assert(kBlocks * kBlocks % THREADS == 0, "every thread takes as many blocks of 4 x 4");

extern __shared__ float room[];

// Where the 16-byte unit `unit` (0 .. TILE / 4 - 1) of row `row` lies, counted in units.
__device__ inline u32 place(u32 row, u32 unit)
{
    const u32 in_row = SWIZZLE ? unit % 8 ^ row % 8 : unit % 8;
    return unit / 8 * (TILE * 8) + row * 8 + in_row;
}

// Block number n of 4 x 4 as (row of blocks, column of blocks).
__device__ inline void block_of(u32 n, u32& a, u32& b)
{
    a = n / kBlocks;
    b = n % kBlocks;
    if (DIAGONAL) {
        // Eight neighbouring lanes get eight different a % 8 and eight different b % 8.
        const u32 lane = n % 8, rest = n / 8;
        const u32 turn = rest % 8, group = rest / 8;
        a = group / (kBlocks / 8) * 8 + lane;
        b = group % (kBlocks / 8) * 8 + (lane ^ turn);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    k(const __grid_constant__ CUtensorMap in_map, const __grid_constant__ CUtensorMap out_map, int across, int down)
{
    __shared__ alignas(8) u64 full;
    float4* tile = reinterpret_cast<float4*>(room + (1024 - shared_address(room) % 1024) % 1024 / 4);

    u32 tx = blockIdx.x % across, ty = blockIdx.x / across;
#if RASTER
    const u32 strip = blockIdx.x / (RASTER * down), in_strip = blockIdx.x % (RASTER * down);
    tx = strip * RASTER + in_strip % RASTER;
    ty = in_strip / RASTER;
#endif
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        fence_barrier_init();
        arrive_expect(&full, kTileBytes);
        load_3d(tile, &in_map, 0, ty * TILE, tx * (TILE / 32), &full);
    }
    __syncthreads();
    wait(&full, 0);

    float4 v[kEach][4];
#pragma unroll
    for (u32 e = 0; e < kEach; ++e) {
        u32 a, b;
        block_of(e * THREADS + threadIdx.x, a, b);
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            v[e][k] = tile[place(4 * a + k, b)];
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 e = 0; e < kEach; ++e) {
        u32 a, b;
        block_of(e * THREADS + threadIdx.x, a, b);
        const float4* w = v[e];
        tile[place(4 * b + 0, a)] = make_float4(w[0].x, w[1].x, w[2].x, w[3].x);
        tile[place(4 * b + 1, a)] = make_float4(w[0].y, w[1].y, w[2].y, w[3].y);
        tile[place(4 * b + 2, a)] = make_float4(w[0].z, w[1].z, w[2].z, w[3].z);
        tile[place(4 * b + 3, a)] = make_float4(w[0].w, w[1].w, w[2].w, w[3].w);
    }
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
        store_3d(&out_map, 0, tx * TILE, ty * (TILE / 32), tile);
        commit_stores();
        wait_stores_read<0>();
    }
}
