// SPDX-License-Identifier: MIT
//
// Exercise "ring": a block walks down a column of tiles, and while it works on one tile the next is
// on its way. The lines between the marks are the reader's; they start with one stage in use.
// Launch with kBlocks blocks of kThreads.

#include <cuda/ptx>
#include <cuda/std/cstdint>

namespace ptx = cuda::ptx;

constexpr int kWidth = 128;   // floats in a row of the matrix
constexpr int kHeight = 256;  // rows of the matrix
constexpr int kTile = 32;     // a tile is kTile x kTile floats
constexpr int kThreads = 256;
constexpr int kBlocks = kWidth / kTile;
constexpr int kTiles = kHeight / kTile;  // that each block walks down
constexpr int kStages = 2;               // tiles that fit in shared memory, a barrier each

// out = the matrix behind map, plus 1.
extern "C" __global__ void ringOfStages(const __grid_constant__ CUtensorMap map, float* out)
{
    __shared__ alignas(128) float tile[kStages][kTile][kTile];
    __shared__ alignas(8) cuda::std::uint64_t full[kStages];  // "the tile of this stage is there"

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) {
            ptx::mbarrier_init(&full[stage], 1);  // one arrival: that of the thread that asks
        }
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();

    const int tileX = blockIdx.x * kTile;
    // For one thread: asks for tile n of the column, to be put into a stage.
    auto fetch = [&](int stage, int n) {
        const cuda::std::int32_t start[2] = {tileX, n * kTile};
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                       &full[stage], sizeof(tile[stage]));
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile[stage], &map, start,
                                  &full[stage]);
    };
    // For all threads: waits until the phase of that parity, 0 or 1, of a stage's barrier is over.
    auto waitFor = [&](int stage, int parity) {
        while (!ptx::mbarrier_try_wait_parity(&full[stage], parity)) {
        }
    };
    // For all threads: adds 1 to the tile in a stage, and stores it as tile n.
    auto store = [&](int stage, int n) {
        const int column = threadIdx.x % kTile;
        for (int row = threadIdx.x / kTile; row < kTile; row += kThreads / kTile) {
            out[(n * kTile + row) * kWidth + (tileX + column)] = tile[stage][row][column] + 1.0f;
        }
    };
    // snippet: yours
    for (int n = 0; n < kTiles; ++n) {
        if (threadIdx.x == 0) fetch(0, n);
        waitFor(0, n % 2);
        store(0, n);
        __syncthreads();
    }
    // end snippet
}
