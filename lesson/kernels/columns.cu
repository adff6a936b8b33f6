// SPDX-License-Identifier: MIT
//
// Reads a tile from shared memory by rows or by columns, with and without the 128-byte swizzle. Only
// the pattern of its accesses matters here: the lesson counts bank conflicts in it. Launch it with
// one block of kTile threads, which is one warp.

#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda/std/utility>

namespace ptx = cuda::ptx;

constexpr int kTile = 32;  // 32 floats are 128 bytes: a row is one swizzle span, one word a bank

static_assert(kTile * sizeof(float) == 128, "a row of the tile is one span of the 128-byte swizzle");

// out[t] is the sum of what thread t reads: of row t where the warp reads column after column, of
// column t where it reads row after row. `swizzled` says whether tileMap swizzles; the kernel has to
// know, to find its elements again.
extern "C" __global__ void sumTile(const __grid_constant__ CUtensorMap tileMap, int swizzled,
                                   int byColumns, float* out)
{
    // The swizzle takes three bits of the address itself, so the pattern repeats every 1024 bytes.
    __shared__ alignas(1024) float tile[kTile * kTile];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;

    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();

    cuda::barrier<cuda::thread_scope_block>::arrival_token token;
    if (threadIdx.x == 0) {
        const cuda::std::int32_t start[2] = {0, 0};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &tileMap, start,
                                  cuda::device::barrier_native_handle(bar));
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
    } else {
        token = bar.arrive();
    }
    bar.wait(cuda::std::move(token));

    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < kTile; ++i) {
        // By columns, the 32 threads read 32 rows of column i; by rows, 32 columns of row i.
        const int row = byColumns ? threadIdx.x : i;
        const int column = byColumns ? i : threadIdx.x;
        // snippet: find-element
        int piece = column / 4;             // 16 bytes hold 4 floats, a row holds 8 such pieces
        if (swizzled) piece ^= row % 8;     // where the engine put that piece of this row
        sum += tile[row * kTile + piece * 4 + column % 4];
        // end snippet
    }
    out[threadIdx.x] = sum;
}
