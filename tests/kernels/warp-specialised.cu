// sample: warp-specialised
// says: warpgroups that trade registers with setmaxnreg: one warpgroup feeds, one computes, a ring of two between them (sm_90a)
// arch: sm_90a
// array src: {"dtype": "int32", "shape": [64, 64], "fill": "hash:-700:700"}
// array out: {"dtype": "int32", "shape": [64, 64], "fill": 0}
// map src_map: {"of": "src", "box": [64, 16]}
// launch: {"grid": 1, "block": 256}
// args: ["src_map", "out", {"i32": 4}]
// expect out: src * src - 3

#include "sample.cuh"

extern "C" __global__ void __launch_bounds__(256, 1)
k(const __grid_constant__ CUtensorMap src_map, int* __restrict__ out, int tiles)
{
    __shared__ alignas(128) int ring[2][16 * 64];
    __shared__ alignas(8) u64 full[2];
    __shared__ alignas(8) u64 empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], 4);  // one arrival a consumer warp
        }
        fence_barrier_init();
    }
    __syncthreads();

    const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            for (int t = 0; t < tiles; ++t) {
                wait(&empty[t & 1], (t >> 1 & 1) ^ 1);
                arrive_expect(&full[t & 1], sizeof(ring[0]));
                load_2d(ring[t & 1], &src_map, 0, t * 16, &full[t & 1]);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int me = threadIdx.x - 128;
        for (int t = 0; t < tiles; ++t) {
            wait(&full[t & 1], t >> 1 & 1);
            for (int i = me; i < 16 * 64; i += 128) {
                const int v = ring[t & 1][i];
                out[t * 16 * 64 + i] = v * v - 3;
            }
            __syncwarp();
            if (me % 32 == 0) {
                arrive(&empty[t & 1]);
            }
        }
    }
}
