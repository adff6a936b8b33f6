// case: no-release
// says: the consumers never release a stage
// verdict: race
// class: arrivals-missing
// map: {}
// launch: {"grid": [4, 1], "block": 160, "dynamic_smem": 0}
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

extern "C" __global__ void k(const __grid_constant__ CUtensorMap map, float* out)
{
    __shared__ alignas(128) float tile[2][T * T];
    __shared__ alignas(8) u64 full[2];
    __shared__ alignas(8) u64 empty[2];
    const int tid = threadIdx.x;
    const int x0 = blockIdx.x * T;
    if (tid == 0) {
        for (int s = 0; s < 2; ++s) {
            ptx::mbarrier_init(&full[s], 1);
            ptx::mbarrier_init(&empty[s], 128);
        }
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (tid < 32) {
        if (tid == 0) {
            for (int n = 0; n < 4; ++n) {
                const int s = n % 2;
                wait_for(&empty[s], (n / 2 & 1) ^ 1);
                expect(&full[s], T * T * sizeof(float));
                load(tile[s], &map, x0, n * T, &full[s]);
            }
        }
    } else {
        for (int n = 0; n < 4; ++n) {
            const int s = n % 2;
            wait_for(&full[s], n / 2 & 1);
            for (int i = tid - 32; i < T * T; i += 128) {
                out[(n * T + i / T) * W + x0 + i % T] = tile[s][i] + 1.0f;
            }
            // MISTAKE
        }
    }
}
