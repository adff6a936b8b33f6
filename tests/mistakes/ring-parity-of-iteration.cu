// case: ring-parity-of-iteration
// says: ring of three, the parity is that of the iteration
// verdict: race
// class: wait-wrong-parity
// map: {"box": [64, 32]}
// launch: {"grid": [4, 1], "block": 256, "dynamic_smem": 0}
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

extern "C" __global__ void k(const __grid_constant__ CUtensorMap map, float* __restrict__ out)
{
    constexpr int S = 3;
    __shared__ alignas(128) float tile[S][T / 2 * T];
    __shared__ alignas(8) u64 full[S];
    const int tid = threadIdx.x;
    const int x0 = blockIdx.x * T;
    if (tid == 0) {
        for (int s = 0; s < S; ++s) {
            ptx::mbarrier_init(&full[s], 1);
        }
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    constexpr int N = 8;
    if (tid == 0) {
        for (int s = 0; s < S; ++s) {
            expect(&full[s], sizeof(tile[0]));
            load(tile[s], &map, x0, s * (T / 2), &full[s]);
        }
    }
    for (int n = 0; n < N; ++n) {
        const int s = n % S;
        wait_for(&full[s], n & 1);  // MISTAKE
        for (int i = tid; i < T / 2 * T; i += blockDim.x) {
            out[(n * (T / 2) + i / T) * W + x0 + i % T] = tile[s][i] + 1.0f;
        }
        __syncthreads();
        if (tid == 0 && n + S < N) {
            expect(&full[s], sizeof(tile[0]));
            load(tile[s], &map, x0, (n + S) * (T / 2), &full[s]);
        }
    }
}
