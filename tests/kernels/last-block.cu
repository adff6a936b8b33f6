// sample: last-block
// says: the last block to finish adds up the partial results of all, found out with a counter and __threadfence
// array src: {"dtype": "float32", "shape": [64, 64], "fill": "hash:-128:128"}
// array partial: {"dtype": "float32", "shape": [4], "fill": -1}
// array out: {"dtype": "float32", "shape": [1], "fill": -1}
// map src_map: {"of": "src", "box": [64, 16]}
// launch: {"grid": 4, "block": 128}
// args: ["src_map", "partial", "out"]
// expect partial: src.reshape(4, -1).sum(axis=1, dtype=np.float32)
// expect out: np.array([src.sum(dtype=np.float32)], np.float32)

#include "sample.cuh"

extern "C" {
__device__ u32 finished = 0;
}

__device__ float block_sum(float v, float* room)
{
    room[threadIdx.x] = v;
    __syncthreads();
    for (int half = 64; half > 0; half >>= 1) {
        if (static_cast<int>(threadIdx.x) < half) {
            room[threadIdx.x] += room[threadIdx.x + half];
        }
        __syncthreads();
    }
    return room[0];
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, float* partial, float* out)
{
    __shared__ alignas(128) float tile[16 * 64];
    __shared__ float room[128];
    __shared__ bool last;
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        load_2d(tile, &src_map, 0, blockIdx.x * 16, &bar);
    }
    __syncthreads();
    wait(&bar, 0);

    float v = 0.0f;
    for (int i = threadIdx.x; i < 16 * 64; i += 128) {
        v += tile[i];
    }
    v = block_sum(v, room);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = v;
        __threadfence();
        last = atomicInc(&finished, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
    volatile float* all = partial;
    v = threadIdx.x < gridDim.x ? all[threadIdx.x] : 0.0f;
    v = block_sum(v, room);
    if (threadIdx.x == 0) {
        out[0] = v;
        finished = 0;
    }
}
