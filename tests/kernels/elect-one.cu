// sample: elect-one
// says: each warp elects one lane with elect.sync; that lane loads the warp's own quarter of the tile behind its own barrier
// array src: {"dtype": "float32", "shape": [32, 64], "fill": "hash:-4096:4096"}
// array out: {"dtype": "float32", "shape": [32, 64], "fill": 0}
// array leaders: {"dtype": "uint32", "shape": [2, 4], "fill": 0}
// map src_map: {"of": "src", "box": [64, 4]}
// launch: {"grid": 2, "block": 128}
// args: ["src_map", "out", "leaders"]
// expect out: np.abs(src) * np.float32(0.5)
// expect leaders: np.ones((2, 4), np.uint32)

#include "sample.cuh"

__device__ inline bool elected()
{
    u32 yes;
    [[maybe_unused]] u32 who;
    asm volatile(
        "{\n\t"
        ".reg .pred chosen;\n\t"
        "elect.sync %1|chosen, 0xffffffff;\n\t"
        "selp.u32 %0, 1, 0, chosen;\n\t"
        "}"
        : "=r"(yes), "=r"(who));
    return yes != 0;
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, float* __restrict__ out, u32* leaders)
{
    __shared__ alignas(128) float tile[4][4][64];
    __shared__ alignas(8) u64 bar[4];

    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
    const int lane = threadIdx.x & 31;
    const int y0 = static_cast<int>(blockIdx.x) * 16 + warp * 4;
    u32 chosen = 0;
    if (elected()) {
        barrier_init(&bar[warp], 1);
        fence_barrier_init();
        arrive_expect(&bar[warp], sizeof(tile[0]));
        load_2d(tile[warp], &src_map, 0, y0, &bar[warp]);
        chosen = 1;
    }
    __syncwarp();
    wait(&bar[warp], 0);

    const float4* rows = reinterpret_cast<const float4*>(tile[warp]);
    float4* to = reinterpret_cast<float4*>(out + y0 * 64);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float4 v = rows[i * 32 + lane];
        v.x = fabsf(v.x) * 0.5f;
        v.y = fabsf(v.y) * 0.5f;
        v.z = fabsf(v.z) * 0.5f;
        v.w = fabsf(v.w) * 0.5f;
        to[i * 32 + lane] = v;
    }
    const u32 votes = __ballot_sync(0xffffffffu, chosen);
    if (lane == 0) {
        leaders[blockIdx.x * 4 + warp] = __popc(votes);
    }
}
