// sample: map-copied
// says: block 0 copies a map from its parameters to global memory; all blocks acquire that copy and load through it
// array src: {"dtype": "uint8", "shape": [32, 64], "fill": "hash:0:256"}
// array out: {"dtype": "uint8", "shape": [32, 64], "fill": 0}
// array room: {"dtype": "uint64", "shape": [4, 16], "fill": 0, "align": 128, "scratch": true}
// map src_map: {"of": "src", "box": [32, 32]}
// launch: {"grid": 2, "block": 32}
// args: ["src_map", "room", "out"]
// expect out: (~src)

#include "sample.cuh"

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, u64* room, u8* __restrict__ out)
{
    __shared__ alignas(128) u8 tile[32][32];
    __shared__ alignas(8) u64 bar;
    u64* copy = room + blockIdx.x * 16;
    if (threadIdx.x < 16) {
        copy[threadIdx.x] = reinterpret_cast<const u64*>(&src_map)[threadIdx.x];
    }
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) {
        asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(copy) : "memory");
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        load_2d(tile, reinterpret_cast<const CUtensorMap*>(copy), blockIdx.x * 32, 0, &bar);
    }
    __syncwarp();
    wait(&bar, 0);
    for (int r = 0; r < 32; ++r) {
        out[r * 64 + blockIdx.x * 32 + threadIdx.x] = ~tile[r][threadIdx.x];
    }
}
