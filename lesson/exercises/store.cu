// SPDX-License-Identifier: MIT
//
// Exercise "store": the engine carries the tile back, too. The lines between the marks are the
// reader's; they start as the plain store of the lesson. Launch with kTilesX x kTilesY blocks of
// kThreads.

#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda/std/utility>

namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kWidth = 256;   // floats in a row of the matrix
constexpr int kHeight = 128;  // rows of the matrix
constexpr int kTile = 64;     // a tile is kTile x kTile floats
constexpr int kThreads = 256;
constexpr int kTilesX = kWidth / kTile;
constexpr int kTilesY = kHeight / kTile;
constexpr int kRowsPerStep = kThreads / kTile;

// out = the matrix behind map, plus 1. outMap is a map of out, with the same box.
extern "C" __global__ void storeByEngine(const __grid_constant__ CUtensorMap map,
                                         const __grid_constant__ CUtensorMap outMap, float* out)
{
    __shared__ alignas(128) float tile[kTile][kTile];
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
    // snippet: yours
    const int column = threadIdx.x % kTile;
    for (int row = threadIdx.x / kTile; row < kTile; row += kRowsPerStep) {
        out[(tileY + row) * kWidth + (tileX + column)] = tile[row][column] + 1.0f;
    }
    // end snippet
}
