// sample: ragged-edges
// says: a matrix that no tile divides, rows padded to 16 bytes, NaN outside: guarded stores, and the NaNs counted with atomics
// array src: {"dtype": "float32", "shape": [50, 44], "fill": "hash:-500:500"}
// array out: {"dtype": "float32", "shape": [50, 42], "fill": -1}
// array outside: {"dtype": "uint32", "shape": [1], "fill": 0}
// map src_map: {"of": "src", "dims": [42, 50], "strides": [176], "box": [32, 32], "oob": "NAN_REQUEST_ZERO_FMA"}
// launch: {"grid": [2, 2], "block": 128}
// args: ["src_map", "out", "outside", {"i32": 42}, {"i32": 50}]
// expect out: src[:, :42] + 1
// expect outside: np.array([64 * 64 - 42 * 50], np.uint32)

#include "sample.cuh"

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, float* __restrict__ out, u32* outside, int width,
                             int height)
{
    __shared__ alignas(128) float tile[32 * 32];
    __shared__ alignas(8) u64 bar;
    __shared__ u32 nans;
    const int x0 = blockIdx.x * 32;
    const int y0 = blockIdx.y * 32;
    if (threadIdx.x == 0) {
        nans = 0;
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));  // the whole box, also where it lies outside
        load_2d(tile, &src_map, x0, y0, &bar);
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) {
        const int x = x0 + i % 32;
        const int y = y0 + i / 32;
        const float v = tile[i];
        if (x < width && y < height) {
            out[y * width + x] = v + 1.0f;
        } else if (v != v) {
            atomicAdd(&nans, 1u);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(outside, nans);
    }
}
