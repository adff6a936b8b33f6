// case: ok-add-in-place-two-groups
// says: tiles are loaded, added to in place and stored, two buffers, one group left unread
// verdict: ok
// class: silent
// map: {"box": [64, 32]}
// omap: {"target": "out", "box": [64, 32]}
// launch: {"grid": [4, 1], "block": 256, "dynamic_smem": 0}
// args: ["map", "omap"]
// expect: add1

#if !defined(__CUDACC_RTC__)
#include <cuda.h>
#elif !defined(__cuda_cuda_h__)
typedef struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;
#endif
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda/std/utility>

constexpr int W = 256;  // floats in a row of the matrix
constexpr int T = 64;   // a tile is T x T floats

using u64 = cuda::std::uint64_t;
using i32 = cuda::std::int32_t;
namespace ptx = cuda::ptx;

__device__ inline void wait_for(u64* bar, unsigned parity)
{
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
    }
}

__device__ inline void load(void* to, const CUtensorMap* map, int x, int y, u64* bar)
{
    const i32 at[2] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, map, at, bar);
}

__device__ inline void expect(u64* bar, unsigned nbytes)
{
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, nbytes);
}

__device__ inline void arrive(u64* bar)
{
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar);
}

__device__ inline void store(const CUtensorMap* map, int x, int y, const void* from)
{
    const i32 at[2] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, map, at, from);
    ptx::cp_async_bulk_commit_group();
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap map, const __grid_constant__ CUtensorMap omap)
{
    __shared__ alignas(128) float tile[2][T / 2 * T];
    __shared__ alignas(8) u64 bars[2];
    const int tid = threadIdx.x;
    const int x0 = blockIdx.x * T;
    if (tid == 0) {
        ptx::mbarrier_init(&bars[0], 1);
        ptx::mbarrier_init(&bars[1], 1);
        ptx::fence_proxy_async(ptx::space_shared);
        expect(&bars[0], sizeof(tile[0]));
        load(tile[0], &map, x0, 0, &bars[0]);
    }
    __syncthreads();
    for (int n = 0; n < 8; ++n) {
        const int s = n % 2;
        if (tid == 0 && n + 1 < 8) {
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
            expect(&bars[s ^ 1], sizeof(tile[0]));
            load(tile[s ^ 1], &map, x0, (n + 1) * (T / 2), &bars[s ^ 1]);
        }
        wait_for(&bars[s], (n / 2) & 1);
        for (int i = tid; i < T / 2 * T; i += blockDim.x) {
            tile[s][i] += 1.0f;
        }
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (tid == 0) {
            store(&omap, x0, n * (T / 2), tile[s]);
        }
    }
    if (tid == 0) {
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
}
