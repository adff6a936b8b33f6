// sample: named-barriers
// says: two pairs of warps hand a buffer to and fro with bar.arrive and bar.sync on barriers of their own; bar.red counts and votes
// array src: {"dtype": "int32", "shape": [6, 64], "fill": "hash:-5000:5000"}
// array out: {"dtype": "int32", "shape": [6, 64], "fill": 0}
// array counts: {"dtype": "uint32", "shape": [3], "fill": 0}
// launch: {"grid": 1, "block": 128}
// args: ["src", "out", "counts", {"i32": 6}]
// expect out: src[:, ::-1] + np.arange(6, dtype=np.int32)[:, None]
// expect counts: np.array([128 // 3 + 1, 0, 1], np.uint32)

#include "sample.cuh"

__device__ inline void barrier_sync(int id, int threads)
{
    asm volatile("barrier.cta.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline void barrier_arrive(int id, int threads)
{
    asm volatile("barrier.cta.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

extern "C" __global__ void k(const int* __restrict__ src, int* __restrict__ out, u32* __restrict__ counts, int rounds)
{
    enum { kFilled = 1, kDrained = 2 };
    __shared__ int buffer[64];
    const int tid = threadIdx.x;
    if (tid < 64) {
        for (int r = 0; r < rounds; ++r) {
            if (r > 0) {
                barrier_sync(kDrained, 128);
            }
            buffer[tid] = src[r * 64 + tid] + r;
            barrier_arrive(kFilled, 128);
        }
    } else {
        for (int r = 0; r < rounds; ++r) {
            barrier_sync(kFilled, 128);
            out[r * 64 + tid - 64] = buffer[127 - tid];
            if (r + 1 < rounds) {
                barrier_arrive(kDrained, 128);
            }
        }
    }
    const int third = __syncthreads_count(tid % 3 == 0);
    const int all = __syncthreads_and(tid < 127);
    const int some = __syncthreads_or(tid == 77);
    if (tid == 127) {
        counts[0] = third;
        counts[1] = all != 0;
        counts[2] = some != 0;
    }
}
