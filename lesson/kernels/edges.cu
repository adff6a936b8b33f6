// SPDX-License-Identifier: MIT
//
// Two small kernels that ask the TMA engine for a box where a matrix ends: one loads it, one stores
// it. The lesson runs them at the edges, to show what the chip itself does there. Launch each with
// one block of kBoxWidth x kBoxHeight threads.

#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda/std/utility>

namespace ptx = cuda::ptx;

constexpr int kBoxWidth = 8;   // floats in a row of the box
constexpr int kBoxHeight = 8;  // rows of the box

// Loads the box that starts at (x, y), waits for expectedBytes, and writes what arrived to out.
extern "C" __global__ void loadBox(const __grid_constant__ CUtensorMap map, int x, int y,
                                   int expectedBytes, float* out)
{
    __shared__ alignas(128) float box[kBoxHeight][kBoxWidth];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;

    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();

    cuda::barrier<cuda::thread_scope_block>::arrival_token token;
    if (threadIdx.x == 0) {
        const cuda::std::int32_t start[2] = {x, y};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, start,
                                  cuda::device::barrier_native_handle(bar));
        token = cuda::device::barrier_arrive_tx(bar, 1, expectedBytes);
    } else {
        token = bar.arrive();
    }
    bar.wait(cuda::std::move(token));

    out[threadIdx.x] = box[threadIdx.x / kBoxWidth][threadIdx.x % kBoxWidth];
}

// Fills a box with `value`, and stores it so that it starts at (x, y) of the matrix.
extern "C" __global__ void storeBox(const __grid_constant__ CUtensorMap map, int x, int y,
                                    float value)
{
    __shared__ alignas(128) float box[kBoxHeight][kBoxWidth];
    box[threadIdx.x / kBoxWidth][threadIdx.x % kBoxWidth] = value;

    // The threads wrote the box through the generic proxy, the engine will read it through the
    // async proxy: each writer fences, then all meet, then one thread asks.
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();

    if (threadIdx.x == 0) {
        const cuda::std::int32_t start[2] = {x, y};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, start, box);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});  // shared memory must outlive the copy
    }
}
