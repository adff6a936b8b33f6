// SPDX-License-Identifier: MIT
//
// Exercise "edges": a matrix that is not square, and whose last tiles hang over its edges. The
// lines between the marks are the reader's; they start as those of the lesson, whose tiles fit.
// Launch with kTilesX x kTilesY blocks of kThreads.

#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda/std/utility>

namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kWidth = 200;   // floats in a row of the matrix
constexpr int kHeight = 120;  // rows of the matrix
constexpr int kTile = 64;     // a tile is kTile x kTile floats
constexpr int kThreads = 256;
constexpr int kTilesX = (kWidth + kTile - 1) / kTile;
constexpr int kTilesY = (kHeight + kTile - 1) / kTile;
constexpr int kRowsPerStep = kThreads / kTile;  // tile rows that the block stores at once

// Thread 0 asks for the box that starts at (x, y) and announces nbytes. Everybody arrives.
__device__ __forceinline__ Barrier::arrival_token ask(float* tile, const CUtensorMap* map, int x,
                                                      int y, Barrier& bar, unsigned nbytes)
{
    if (threadIdx.x != 0) {
        return bar.arrive();
    }
    const cuda::std::int32_t start[2] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, map, start,
                              cuda::device::barrier_native_handle(bar));
    return cuda::device::barrier_arrive_tx(bar, 1, nbytes);
}

// out = the matrix behind map, plus 1. Both are kHeight rows of kWidth floats.
extern "C" __global__ void edgeTiles(const __grid_constant__ CUtensorMap map, float* out)
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
    // snippet: yours
    auto token = ask(&tile[0][0], &map, tileX, tileY, bar, sizeof(tile));
    bar.wait(cuda::std::move(token));
    const int column = threadIdx.x % kTile;
    for (int step = 0; step < kTile; step += kRowsPerStep) {
        const int row = step + threadIdx.x / kTile;
        out[(tileY + row) * kWidth + (tileX + column)] = tile[row][column] + 1.0f;
    }
    // end snippet
}
