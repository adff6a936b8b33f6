// case: tile-aligned-by-chance
// says: the tile is declared for 16 bytes, and lies at a multiple of 128 by chance
// verdict: race
// class: misaligned-shared
// map: {"box": [64, 32]}
// launch: {"grid": [4, 4], "block": 256, "dynamic_smem": 0}
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
    __shared__ alignas(16) float tile[T * T];  // MISTAKE
    __shared__ alignas(8) u64 bar;
    const int x0 = blockIdx.x * T;
    const int y0 = blockIdx.y * T;
    const int tid = threadIdx.x;
    if (tid == 0) {
        ptx::mbarrier_init(&bar, 2);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();

    if (tid == 37 || tid == 99) {
        const int half = tid == 99;
        expect(&bar, sizeof(tile) / 2);
        load(tile + half * T / 2 * T, &map, x0, y0 + half * T / 2, &bar);
    }
    wait_for(&bar, 0);
    for (int i = tid; i < T * T; i += blockDim.x) {
        out[(y0 + i / T) * W + x0 + i % T] = tile[i] + 1.0f;
    }
}
