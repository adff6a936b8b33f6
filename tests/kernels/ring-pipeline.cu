// sample: ring-pipeline
// says: a ring of four stages with full and empty barriers: warp 0 loads ahead, four warps sum the tiles they get
// array src: {"dtype": "float32", "shape": [32, 320], "fill": "hash:-512:512"}
// array out: {"dtype": "float32", "shape": [32, 32], "fill": -1}
// map src_map: {"of": "src", "box": [32, 16]}
// launch: {"grid": [1, 2], "block": 160}
// args: ["src_map", "out", {"u32": 10}]
// expect out: src.reshape(32, 10, 32).sum(axis=1, dtype=np.float32)

#include "sample.cuh"

constexpr u32 kStages = 4;
constexpr u32 kWidth = 32;
constexpr u32 kRows = 16;
constexpr u32 kConsumers = 128;

// A place in the ring: which stage, and the parity that its barriers have on this lap.
struct Place {
    u32 stage = 0;
    u32 parity = 0;

    __device__ void advance()
    {
        stage += 1;
        if (stage == kStages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

extern "C" __global__ void __launch_bounds__(160)
k(const __grid_constant__ CUtensorMap src_map, float* out, u32 tiles)
{
    __shared__ alignas(128) float ring[kStages][kRows * kWidth];
    __shared__ alignas(8) u64 full[kStages];
    __shared__ alignas(8) u64 empty[kStages];

    const u32 tid = threadIdx.x;
    if (tid == 0) {
        for (u32 s = 0; s < kStages; ++s) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], kConsumers);
        }
        fence_barrier_init();
    }
    __syncthreads();

    if (tid < 32) {
        if (tid == 0) {
            Place at;
            for (u32 t = 0; t < tiles; ++t) {
                wait(&empty[at.stage], at.parity ^ 1);  // a fresh barrier lets parity 1 through at once
                arrive_expect(&full[at.stage], kRows * kWidth * 4);
                load_2d(ring[at.stage], &src_map, t * kWidth, blockIdx.y * kRows, &full[at.stage]);
                at.advance();
            }
        }
    } else {
        const u32 me = tid - 32;
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        Place at;
        for (u32 t = 0; t < tiles; ++t) {
            wait(&full[at.stage], at.parity);
#pragma unroll
            for (u32 j = 0; j < 4; ++j) {
                sum[j] += ring[at.stage][j * kConsumers + me];
            }
            arrive(&empty[at.stage]);
            at.advance();
        }
#pragma unroll
        for (u32 j = 0; j < 4; ++j) {
            out[blockIdx.y * kRows * kWidth + j * kConsumers + me] = sum[j];
        }
    }
}
