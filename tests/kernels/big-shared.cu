// sample: big-shared
// says: 96 KiB and more of dynamic shared memory, aligned by hand, holding three tiles of 32 KiB behind one barrier
// array src: {"dtype": "float32", "shape": [192, 128], "fill": "hash:-64:64"}
// array out: {"dtype": "float32", "shape": [64, 128], "fill": -1}
// map src_map: {"of": "src", "box": [128, 64]}
// launch: {"grid": 1, "block": 256, "dynamic_smem": 99456}
// args: ["src_map", "out", {"u32": 3}]
// expect out: src[0:64] + src[64:128] * 2 + src[128:192] * 3

#include "sample.cuh"

extern __shared__ u8 room[];

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, float* __restrict__ out, u32 parts)
{
    constexpr u32 kBytes = 64 * 128 * 4;
    u8* base = room + (1024 - shared_address(room) % 1024) % 1024;
    u64* bar = reinterpret_cast<u64*>(base + parts * kBytes);
    if (threadIdx.x == 0) {
        barrier_init(bar, 1);
        fence_barrier_init();
        arrive_expect(bar, parts * kBytes);
        for (u32 p = 0; p < parts; ++p) {
            load_2d(base + p * kBytes, &src_map, 0, p * 64, bar);
        }
    }
    __syncthreads();
    wait(bar, 0);
    for (u32 i = threadIdx.x; i < kBytes / 4; i += blockDim.x) {
        float sum = 0.0f;
        for (u32 p = 0; p < parts; ++p) {
            sum = fmaf(reinterpret_cast<const float*>(base + p * kBytes)[i], static_cast<float>(p + 1), sum);
        }
        out[i] = sum;
    }
}
