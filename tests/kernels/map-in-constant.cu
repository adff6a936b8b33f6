// sample: map-in-constant
// says: two maps in __constant__ memory, chosen by the block, with a table of factors beside them
// array a: {"dtype": "float32", "shape": [16, 32], "fill": "ramp"}
// array b: {"dtype": "float32", "shape": [16, 32], "fill": "hash:-300:300"}
// array out: {"dtype": "float32", "shape": [2, 16, 32], "fill": 0}
// map a_map: {"of": "a", "box": [32, 16]}
// map b_map: {"of": "b", "box": [32, 16]}
// symbol maps: ["a_map", "b_map"]
// launch: {"grid": 2, "block": 128}
// args: ["out"]
// expect out: np.stack([a * 3, b * -2])

#include "sample.cuh"

extern "C" {
__constant__ CUtensorMap maps[2];
}
__constant__ float factors[2] = {3.0f, -2.0f};
__device__ const int offsets[2] = {0, 512};

extern "C" __global__ void k(float* __restrict__ out)
{
    __shared__ alignas(128) float tile[16 * 32];
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        load_2d(tile, &maps[blockIdx.x], 0, 0, &bar);
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) {
        out[offsets[blockIdx.x] + i] = tile[i] * factors[blockIdx.x];
    }
}
