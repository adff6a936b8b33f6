// sample: transpose-swizzled
// says: two tiles under the 128B swizzle: one is loaded, its transpose is built in the other, and that one is stored
// array src: {"dtype": "int32", "shape": [64, 64], "fill": "hash:-100000:100000"}
// array out: {"dtype": "int32", "shape": [64, 64], "fill": 7}
// map src_map: {"of": "src", "box": [32, 32], "swizzle": "128B"}
// map out_map: {"of": "out", "box": [32, 32], "swizzle": "128B"}
// launch: {"grid": [2, 2], "block": 128}
// args: ["src_map", "out_map"]
// expect out: src.T

#include <cuda/barrier>
#include <cuda/ptx>

#include "sample.cuh"

namespace ptx = cuda::ptx;
using barrier_t = cuda::barrier<cuda::thread_scope_block>;

constexpr int kTile = 32;  // 32 int32 are 128 bytes: one row is one swizzle span

// Where element (row, column) lies: the 16-byte unit of a row is XORed with the row modulo 8.
__device__ inline int swizzled(int row, int column)
{
    const int unit = (column / 4) ^ (row % 8);
    return row * kTile + unit * 4 + column % 4;
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, const __grid_constant__ CUtensorMap out_map)
{
    __shared__ alignas(1024) int in[kTile * kTile];
    __shared__ alignas(1024) int turned[kTile * kTile];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier_t bar;

    const int x0 = static_cast<int>(blockIdx.x) * kTile;
    const int y0 = static_cast<int>(blockIdx.y) * kTile;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();

    barrier_t::arrival_token token;
    if (threadIdx.x == 0) {
        const int at[2] = {x0, y0};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, in, &src_map, at,
                                  cuda::device::barrier_native_handle(bar));
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(in));
    } else {
        token = bar.arrive();
    }
    bar.wait(static_cast<barrier_t::arrival_token&&>(token));

    for (int i = threadIdx.x; i < kTile * kTile; i += blockDim.x) {
        const int row = i / kTile;
        const int column = i % kTile;
        turned[swizzled(column, row)] = in[swizzled(row, column)];
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();

    if (threadIdx.x == 0) {
        const int at[2] = {y0, x0};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out_map, at, turned);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
    }
}
