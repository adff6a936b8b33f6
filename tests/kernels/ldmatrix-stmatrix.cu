// sample: ldmatrix-stmatrix
// says: 8x8 fragments read from a 64B-swizzled half tile by ldmatrix, transposed on the way out by stmatrix.trans, stored by TMA
// array src: {"dtype": "float16", "shape": [32, 32], "fill": "ramp:1024"}
// array out: {"dtype": "float16", "shape": [32, 32], "fill": 0}
// array frag: {"dtype": "uint32", "shape": [2, 32, 4], "fill": 0}
// map src_map: {"of": "src", "box": [32, 16], "swizzle": "64B"}
// map out_map: {"of": "out", "box": [16, 32]}
// launch: {"grid": 2, "block": 32}
// args: ["src_map", "out_map", "frag"]
// let lane: np.arange(32)
// let words: src.view(np.uint32)
// let rows: [8 * (m % 2) + lane // 4 for m in range(4)]
// let cols: [4 * (m // 2) + lane % 4 for m in range(4)]
// expect out: src.T
// expect frag: np.stack([np.stack([words[16 * b + rows[m], cols[m]] for m in range(4)], axis=1) for b in range(2)])

#include "sample.cuh"

// A row of 32 halves is 64 bytes: the 16-byte unit is XORed with half the row, modulo 4.
__device__ inline u32 in_tile(u32 base, int row, int unit)
{
    return base + row * 64 + ((unit ^ (row >> 1 & 3)) << 4);
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, const __grid_constant__ CUtensorMap out_map,
                             u32* __restrict__ frag)
{
    __shared__ alignas(1024) u16 tile[16 * 32];
    __shared__ alignas(128) u16 turned[32 * 16];
    __shared__ alignas(8) u64 bar;
    const int lane = threadIdx.x;
    if (lane == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        load_2d(tile, &src_map, 0, blockIdx.x * 16, &bar);
    }
    __syncwarp();
    wait(&bar, 0);

    for (int half = 0; half < 2; ++half) {
        // Lanes 0-7 name the rows of fragment 0, 8-15 of fragment 1 (below it), 16-31 of those to the right.
        const u32 row = in_tile(shared_address(tile), lane % 16, half * 2 + lane / 16);
        u32 r[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(row)
                     : "memory");
        if (half == 0) {
            for (int m = 0; m < 4; ++m) {
                frag[(blockIdx.x * 32 + lane) * 4 + m] = r[m];
            }
        }
        const u32 to = shared_address(turned) + (half * 16 + lane / 16 * 8 + lane % 8) * 32 + (lane / 8 % 2) * 16;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(r[0]),
                     "r"(r[1]), "r"(r[2]), "r"(r[3])
                     : "memory");
    }
    fence_async_shared();
    __syncwarp();
    if (lane == 0) {
        store_2d(&out_map, blockIdx.x * 16, 0, turned);
        commit_stores();
        wait_stores<0>();
    }
}
