// sample: bulk-1d
// says: one-dimensional bulk copies: rows into shared memory, changed rows back out, and their sums added by a bulk reduction
// array src: {"dtype": "uint32", "shape": [12, 64], "fill": "hash:0:4000000"}
// array out: {"dtype": "uint32", "shape": [12, 64], "fill": 0}
// array sums: {"dtype": "uint32", "shape": [64], "fill": 11}
// launch: {"grid": 4, "block": 64}
// args: ["src", "out", "sums", {"u32": 3}]
// expect out: src * np.uint32(3) + np.arange(64, dtype=np.uint32)
// expect sums: 11 + src.sum(axis=0, dtype=np.uint32)

#include <cuda/ptx>

#include "sample.cuh"

namespace ptx = cuda::ptx;

constexpr int kWidth = 64;
enum : u32 { kBytes = kWidth * 4 };

extern "C" __global__ void k(const u32* __restrict__ src, u32* __restrict__ out, u32* __restrict__ sums, u32 rows)
{
    __shared__ alignas(16) u32 row[2][kWidth];
    __shared__ alignas(16) u32 changed[kWidth];
    __shared__ alignas(16) u32 partial[kWidth];
    __shared__ alignas(8) cuda::std::uint64_t bar[2];

    const u32 first = blockIdx.x * rows;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar[0], 1);
        ptx::mbarrier_init(&bar[1], 1);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();

    u32 sum = 0;
    for (u32 r = 0; r < rows; ++r) {
        const u32 s = r & 1;
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, row[s], src + (first + r) * kWidth, kBytes, &bar[s]);
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar[s], kBytes);
        }
        while (!ptx::mbarrier_try_wait_parity(&bar[s], r >> 1 & 1)) {
        }
        const u32 v = row[s][threadIdx.x];
        sum += v;
        changed[threadIdx.x] = v * 3 + threadIdx.x;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + (first + r) * kWidth, changed, kBytes);
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
        }
        __syncthreads();
    }

    partial[threadIdx.x] = sum;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(sums),
                     "r"(shared_address(partial)), "r"(kBytes)
                     : "memory");
        commit_stores();
        wait_stores<0>();
    }
}
