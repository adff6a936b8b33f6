// sample: cache-hints
// says: the same copies with everything that only speeds them up: prefetches, L2 cache policies, promotion, streaming loads and stores
// array src: {"dtype": "float32", "shape": [32, 64], "fill": "ramp"}
// array bias: {"dtype": "float32", "shape": [64], "fill": "hash:-9:9"}
// array out: {"dtype": "float32", "shape": [32, 64], "fill": 0}
// map src_map: {"of": "src", "box": [64, 16], "l2": "L2_256B"}
// map out_map: {"of": "out", "box": [64, 16], "l2": "L2_64B"}
// launch: {"grid": 2, "block": 128}
// args: ["src_map", "out_map", "bias"]
// expect out: src + bias

#include "sample.cuh"

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, const __grid_constant__ CUtensorMap out_map,
                             const float* __restrict__ bias)
{
    __shared__ alignas(128) float tile[16 * 64];
    __shared__ alignas(8) u64 bar;
    const int y0 = blockIdx.x * 16;
    if (threadIdx.x == 0) {
        u64 keep, stream;
        asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
        asm volatile("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(stream));
        asm volatile("prefetch.param.tensormap [%0];" ::"l"(__cvta_generic_to_grid_constant(&src_map)) : "memory");
        asm volatile("prefetch.tensormap [%0];" ::"l"(&out_map) : "memory");
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(&src_map), "r"(0), "r"(y0)
                     : "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(bias), "r"(256) : "memory");
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
            " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(tile)),
            "l"(&src_map), "r"(0), "r"(y0), "r"(shared_address(&bar)), "l"(keep)
            : "memory");
        // A policy word as libraries bake it in: evict first, for all of the range.
        const u64 baked = 0x12F0000000000000ull;
        wait(&bar, 0);
        asm volatile("" ::"l"(baked ^ stream) : "memory");
    }
    __syncthreads();
    wait(&bar, 0);

    asm volatile("prefetch.global.L2 [%0];" ::"l"(bias + threadIdx.x % 64) : "memory");
    asm volatile("prefetch.global.L1 [%0];" ::"l"(bias + threadIdx.x % 64) : "memory");
    for (int i = threadIdx.x; i < 16 * 64; i += blockDim.x) {
        float b;
        asm volatile("ld.global.nc.L1::no_allocate.L2::128B.f32 %0, [%1];" : "=f"(b) : "l"(bias + i % 64));
        const float again = __ldcs(bias + i % 64) - __ldcg(bias + i % 64);
        tile[i] += b + again;
    }
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(
                &out_map),
            "r"(0), "r"(y0), "r"(shared_address(tile)), "l"(0x12F0000000000000ull)
            : "memory");
        commit_stores();
        wait_stores<0>();
    }
}
