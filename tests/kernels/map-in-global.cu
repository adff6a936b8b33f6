// sample: map-in-global
// says: the map lies in global memory: written by the host, acquired with fence.proxy.tensormap, and prefetched
// array src: {"dtype": "float64", "shape": [16, 32], "fill": "ramp"}
// array out: {"dtype": "float64", "shape": [16, 32], "fill": 0}
// map src_map: {"of": "src", "box": [16, 8]}
// launch: {"grid": [2, 2], "block": 64}
// args: [{"pointer": "src_map"}, "out"]
// expect out: src / 2

#include <cuda/ptx>

#include "sample.cuh"

namespace ptx = cuda::ptx;

extern "C" __global__ void k(const CUtensorMap* src_map, double* __restrict__ out)
{
    __shared__ alignas(128) double tile[8][16];
    __shared__ alignas(8) u64 bar;
    const int x0 = blockIdx.x * 16;
    const int y0 = blockIdx.y * 8;
    if (threadIdx.x == 0) {
        ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_sys, src_map, ptx::n32_t<128>{});
        asm volatile("prefetch.tensormap [%0];" ::"l"(src_map) : "memory");
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        load_2d(tile, src_map, x0, y0, &bar);
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 8 * 16; i += blockDim.x) {
        out[(y0 + i / 16) * 32 + x0 + i % 16] = tile[i / 16][i % 16] * 0.5;
    }
}
