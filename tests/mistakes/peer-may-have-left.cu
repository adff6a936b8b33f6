// case: peer-may-have-left
// says: a block reads the tile of its peer, which may have ended
// verdict: race
// class: block-exits-early
// map: {}
// launch: {"grid": [4, 4], "block": 256, "dynamic_smem": 0, "cluster": [2, 1, 1]}
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

__device__ inline unsigned rank()
{
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ inline void cluster_sync()
{
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
}

__device__ inline unsigned remote(const void* p, unsigned r)
{
    unsigned a;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(static_cast<unsigned>(__cvta_generic_to_shared(p))), "r"(r));
    return a;
}

__device__ inline void load_for_both(void* to, const CUtensorMap* map, int x, int y, u64* bar)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(map), "r"(x), "r"(y),
        "r"(static_cast<unsigned>(__cvta_generic_to_shared(bar))), "h"(static_cast<unsigned short>(3)) : "memory");
}

__device__ inline void arrive_at(const void* p, unsigned r)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote(p, r)) : "memory");
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap map, float* __restrict__ out)
{
    __shared__ alignas(128) float tile[T * T];
    __shared__ alignas(8) u64 bar;
    const int x0 = blockIdx.x * T;
    const int y0 = blockIdx.y * T;
    const int tid = threadIdx.x;
    if (tid == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (tid == 0) {
        expect(&bar, sizeof(tile));
        load(tile, &map, x0, y0, &bar);
    }
    wait_for(&bar, 0);
    for (int i = tid; i < T * T; i += blockDim.x) {
        tile[i] += 1.0f;
    }
    cluster_sync();
    const unsigned peer = rank() ^ 1;
    const int px = (blockIdx.x ^ 1) * T;
    for (int i = tid; i < T * T; i += blockDim.x) {
        float v;
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(remote(tile + i, peer)) : "memory");  // MISTAKE
        out[(y0 + i / T) * W + px + i % T] = v;
    }
}
