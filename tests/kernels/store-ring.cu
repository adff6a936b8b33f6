// sample: store-ring
// says: two output tiles take turns: while one is on its way out, the next is filled, held back by wait_group.read 1
// array src: {"dtype": "uint32", "shape": [64, 32], "fill": "hash:0:1000000000"}
// array out: {"dtype": "uint32", "shape": [64, 32], "fill": 0}
// map src_map: {"of": "src", "box": [32, 8]}
// map out_map: {"of": "out", "box": [32, 8]}
// launch: {"grid": 1, "block": 64}
// args: ["src_map", "out_map", {"i32": 8}]
// expect out: (src << np.uint32(3)) | (src >> np.uint32(29))

#include <cuda/barrier>

#include "sample.cuh"

namespace cde = cuda::device::experimental;
using barrier_t = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, const __grid_constant__ CUtensorMap out_map,
                             int tiles)
{
    __shared__ alignas(128) u32 in[8 * 32];
    __shared__ alignas(128) u32 ready[2][8 * 32];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier_t bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();

    for (int t = 0; t < tiles; ++t) {
        barrier_t::arrival_token token;
        if (threadIdx.x == 0) {
            cde::cp_async_bulk_tensor_2d_global_to_shared(in, &src_map, 0, t * 8, bar);
            cde::cp_async_bulk_wait_group_read<1>();  // before the arrival: who passes the barrier may fill the tile
            token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(in));
        } else {
            token = bar.arrive(1);
        }
        bar.wait(static_cast<barrier_t::arrival_token&&>(token));
        for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) {
            ready[t & 1][i] = __funnelshift_l(in[i], in[i], 3);
        }
        cde::fence_proxy_async_shared_cta();
        __syncthreads();
        if (threadIdx.x == 0) {
            cde::cp_async_bulk_tensor_2d_shared_to_global(&out_map, 0, t * 8, ready[t & 1]);
            cde::cp_async_bulk_commit_group();
        }
    }
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_wait_group_read<0>();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        (&bar)->~barrier_t();
    }
}
