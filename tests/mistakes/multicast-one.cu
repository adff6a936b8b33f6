// case: multicast-one
// says: each block multicasts to itself alone, and both expect both halves
// verdict: race
// class: too-many-bytes-expected
// map: {"box": [64, 32]}
// launch: {"grid": [8, 4], "block": 256}
// expect: add1

#if !defined(__CUDACC_RTC__)
#include <cuda.h>
#elif !defined(__cuda_cuda_h__)
typedef struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;
#endif
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/cstdint>

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

__device__ inline void expect(u64* bar, unsigned nbytes)
{
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, nbytes);
}

__device__ inline void load(float* tile, const CUtensorMap* map, i32 x, i32 y, u64* bar)
{
    const i32 at[2] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, map, at, bar);
}

__device__ inline void store(const CUtensorMap* map, i32 x, i32 y, const float* tile)
{
    const i32 at[2] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, map, at, tile);
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const __grid_constant__ CUtensorMap map, float* out)
{
    __shared__ alignas(128) float tile[T * T];
    __shared__ alignas(8) u64 bar;
    const int tid = threadIdx.x;
    const int rank = static_cast<int>(ptx::get_sreg_cluster_ctarank());
    const int x0 = blockIdx.x / 2 * T;
    const int y0 = blockIdx.y * T;
    if (tid == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    ptx::barrier_cluster_arrive(ptx::sem_release);
    ptx::barrier_cluster_wait(ptx::sem_acquire);
    if (tid == 0) {
        expect(&bar, sizeof(tile));
        const unsigned dst = static_cast<unsigned>(__cvta_generic_to_shared(tile + rank * T / 2 * T));
        const unsigned mbar = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
        const unsigned short both = 1 << rank;  // MISTAKE
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
            " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(dst), "l"(&map), "r"(x0), "r"(y0 + rank * T / 2), "r"(mbar), "h"(both)
            : "memory");
    }
    wait_for(&bar, 0);
    for (int i = tid; i < T / 2 * T; i += blockDim.x) {
        const int r = rank * T / 2 + i / T;
        out[(y0 + r) * W + x0 + i % T] = tile[r * T + i % T] + 1.0f;
    }
    ptx::barrier_cluster_arrive(ptx::sem_release);
    ptx::barrier_cluster_wait(ptx::sem_acquire);
}
