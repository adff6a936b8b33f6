// sample: byte-histogram
// says: bytes of an image tile counted in shared memory, four to a word, then added to the global bins; the largest kept with atomicMax and CAS
// array image: {"dtype": "uint8", "shape": [32, 128], "fill": "hash:0:256"}
// array bins: {"dtype": "uint32", "shape": [256], "fill": 0}
// array best: {"dtype": "uint64", "shape": [1], "fill": 0}
// array total: {"dtype": "float32", "shape": [1], "fill": 0}
// map image_map: {"of": "image", "box": [64, 32]}
// launch: {"grid": 2, "block": 128}
// args: ["image_map", "bins", "best", "total"]
// expect bins: np.bincount(image.ravel(), minlength=256).astype(np.uint32)
// expect best: np.array([image.max()], np.uint64) << np.uint64(40)
// expect total: np.array([image.sum()], np.float32)

#include "sample.cuh"

extern "C" __global__ void k(const __grid_constant__ CUtensorMap image_map, u32* bins, u64* best, float* total)
{
    __shared__ alignas(128) u8 tile[32 * 64];
    __shared__ u32 local[256];
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        load_2d(tile, &image_map, blockIdx.x * 64, 0, &bar);
    }
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        local[i] = 0;
    }
    __syncthreads();
    wait(&bar, 0);

    const uchar4* fours = reinterpret_cast<const uchar4*>(tile);
    u32 sum = 0;
    u32 top = 0;
    for (int i = threadIdx.x; i < 32 * 16; i += blockDim.x) {
        const uchar4 v = fours[i];
        atomicAdd(&local[v.x], 1u);
        atomicAdd(&local[v.y], 1u);
        atomicAdd(&local[v.z], 1u);
        atomicAdd(&local[v.w], 1u);
        sum += v.x + v.y + v.z + v.w;
        top = max(top, static_cast<u32>(max(max(v.x, v.y), max(v.z, v.w))));
    }
    atomicMax(best, static_cast<u64>(top) << 40);

    // A float sum by compare-and-swap, as before there was an atomicAdd for it. Sums below 2^24 are exact.
    int* as_int = reinterpret_cast<int*>(total);
    int old = *as_int;
    int assumed;
    do {
        assumed = old;
        old = atomicCAS(as_int, assumed, __float_as_int(__int_as_float(assumed) + static_cast<float>(sum)));
    } while (assumed != old);

    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        if (local[i] != 0) {
            atomicAdd(&bins[i], local[i]);
        }
    }
}
