// sample: cp-async-classic
// says: the copies of the generation before: cp.async in groups, zero-filled tails, and arrivals that follow them on an mbarrier
// array src: {"dtype": "float32", "shape": [500], "fill": "ramp"}
// array out: {"dtype": "float32", "shape": [512], "fill": -1}
// launch: {"grid": 1, "block": 32}
// args: ["src", "out", {"i32": 500}]
// expect out: np.concatenate([src[:384] * 2, np.pad(src[384:], (0, 12))[::-1] * 2 + 1])

#include "sample.cuh"

__device__ inline void copy_16(float* to, const float* from, int nbytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(nbytes)
                 : "memory");
}

extern "C" __global__ void k(const float* __restrict__ src, float* __restrict__ out, int n)
{
    __shared__ alignas(16) float stage[3][128];
    __shared__ alignas(16) float last[128];
    __shared__ alignas(8) u64 bar;
    const int lane = threadIdx.x;
    if (lane == 0) {
        barrier_init(&bar, 32);
    }
    __syncwarp();

    for (int s = 0; s < 3; ++s) {
        copy_16(&stage[s][lane * 4], src + s * 128 + lane * 4, 16);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int j = 0; j < 4; ++j) {
        const int at = 384 + j * 32 + lane;
        const int take = at < n ? 4 : 0;
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(&last[j * 32 + lane])),
                     "l"(src + min(at, n - 1)), "r"(take)
                     : "memory");
    }
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&bar)) : "memory");

    for (int s = 0; s < 3; ++s) {
        if (s == 0) {
            asm volatile("cp.async.wait_group 2;" ::: "memory");
        } else if (s == 1) {
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_all;" ::: "memory");
        }
        __syncwarp();
        for (int j = 0; j < 4; ++j) {
            out[s * 128 + j * 32 + lane] = stage[s][j * 32 + lane] * 2.0f;
        }
    }
    wait(&bar, 0);
    for (int j = 0; j < 4; ++j) {
        out[384 + j * 32 + lane] = last[127 - j * 32 - lane] * 2.0f + 1.0f;
    }
}
