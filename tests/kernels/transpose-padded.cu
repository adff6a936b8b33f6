// sample: transpose-padded
// says: a block loads a 32x32 tile by TMA, copies it to a padded tile, and stores it transposed, a row a warp
// array src: {"dtype": "float32", "shape": [64, 96], "fill": "ramp"}
// array out: {"dtype": "float32", "shape": [96, 64], "fill": -1}
// map src_map: {"of": "src", "box": [32, 32], "l2": "L2_128B"}
// launch: {"grid": [3, 2], "block": [32, 8]}
// args: ["src_map", "out", {"i32": 64}]
// expect out: src.T

#include "sample.cuh"

constexpr int kTile = 32;

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, float* __restrict__ out, int out_width)
{
    __shared__ alignas(128) float tile[kTile][kTile];
    __shared__ float padded[kTile][kTile + 1];  // the odd pitch keeps a column free of bank conflicts
    __shared__ alignas(8) u64 bar;

    const int x0 = blockIdx.x * kTile;
    const int y0 = blockIdx.y * kTile;
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        load_2d(tile, &src_map, x0, y0, &bar);
    }
    __syncthreads();
    wait(&bar, 0);

#pragma unroll
    for (int r = threadIdx.y; r < kTile; r += 8) {
        padded[r][threadIdx.x] = tile[r][threadIdx.x];
    }
    __syncthreads();

#pragma unroll
    for (int r = threadIdx.y; r < kTile; r += 8) {
        out[(x0 + r) * out_width + y0 + threadIdx.x] = padded[threadIdx.x][r];
    }
}
