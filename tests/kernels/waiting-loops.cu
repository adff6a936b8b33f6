// sample: waiting-loops
// says: wait loops that back off with nanosleep, look at the clock and the global timer, and count only what is certain
// array src: {"dtype": "float32", "shape": [16, 64], "fill": "ramp"}
// array out: {"dtype": "float32", "shape": [16, 64], "fill": 0}
// array seen: {"dtype": "uint32", "shape": [2, 4], "fill": 9}
// map src_map: {"of": "src", "box": [64, 8]}
// launch: {"grid": 2, "block": 64}
// args: ["src_map", "out", "seen", {"u64": 20000000000}]
// expect out: src + 0.5
// expect seen: np.tile(np.array([1, 1, 1, 0], np.uint32), (2, 1))

#include "sample.cuh"

__device__ inline u64 global_nanoseconds()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, float* __restrict__ out, u32* seen, u64 patience)
{
    __shared__ alignas(128) float tile[8 * 64];
    __shared__ alignas(8) u64 bar;
    const u64 began = global_nanoseconds();
    const long long tick = clock64();
    if (threadIdx.x == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        load_2d(tile, &src_map, 0, blockIdx.x * 8, &bar);
    }
    __syncthreads();

    u32 gave_up = 0;
    u32 pause = 16;
    while (!phase_is_over(&bar, 0)) {
        __nanosleep(pause);
        pause = pause < 256 ? pause * 2 : 256;
        if (global_nanoseconds() - began > patience) {
            gave_up = 1;
            break;
        }
    }
    if (!gave_up) {
        for (int i = threadIdx.x; i < 8 * 64; i += blockDim.x) {
            out[blockIdx.x * 8 * 64 + i] = tile[i] + 0.5f;
        }
    }

    // Spin for a number of cycles, as benchmarks do; then both clocks must have moved.
    const long long start = clock64();
    while (clock64() - start < 500) {
    }
    const u32 short_clock = static_cast<u32>(clock());
    while (static_cast<u32>(clock()) - short_clock < 100u) {
    }
    while (global_nanoseconds() == began) {
    }
    const bool all_moved = __syncthreads_and(clock64() > tick);
    if (threadIdx.x == 0) {
        u32* mine = seen + blockIdx.x * 4;
        mine[0] = all_moved;
        mine[1] = global_nanoseconds() > began;
        mine[2] = clock64() - tick >= 600;
        mine[3] = gave_up;
    }
}
