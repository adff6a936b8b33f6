// SPDX-License-Identifier: MIT
//
// Exercise "swizzle": a transpose, whose warps read columns of a tile. The lines between the marks
// are the reader's; they start with a tile that lies row after row, so that all elements of a column
// are in one bank. Launch with kTilesX x kTilesY blocks of kThreads.

#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda/std/utility>

namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kWidth = 128;  // floats in a row of the matrix
constexpr int kHeight = 64;  // rows of the matrix
constexpr int kTile = 32;    // a tile is kTile x kTile floats: a row is 128 bytes, all 32 banks
constexpr int kThreads = 256;
constexpr int kTilesX = kWidth / kTile;
constexpr int kTilesY = kHeight / kTile;
constexpr int kColumnsPerStep = kThreads / kTile;  // tile columns that the block reads at once

// out = the transpose of the matrix behind map, plus 1: kWidth rows of kHeight floats.
extern "C" __global__ void transposeTile(const __grid_constant__ CUtensorMap map, float* out)
{
    // The pattern of a 128-byte swizzle repeats every 1024 bytes, so the tile starts on one.
    __shared__ alignas(1024) float tile[kTile][kTile];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier bar;

    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();

    const int tileX = blockIdx.x * kTile;
    const int tileY = blockIdx.y * kTile;
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
        const cuda::std::int32_t start[2] = {tileX, tileY};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, start,
                                  cuda::device::barrier_native_handle(bar));
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
    } else {
        token = bar.arrive();
    }
    bar.wait(cuda::std::move(token));

    const int row = threadIdx.x % kTile;  // a warp takes a column: 32 rows
    // snippet: yours
    for (int column = threadIdx.x / kTile; column < kTile; column += kColumnsPerStep) {
        const int place = column;
        out[(tileX + column) * kHeight + (tileY + row)] = tile[row][place] + 1.0f;
    }
    // end snippet
}
