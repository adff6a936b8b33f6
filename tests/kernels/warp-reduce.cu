// sample: warp-reduce
// says: row sums of a half tile by shuffles over warps: half2 arithmetic, redux, ballot, match, scans up and down
// array src: {"dtype": "float16", "shape": [16, 64], "fill": "hash:-16:17"}
// array sums: {"dtype": "float32", "shape": [16], "fill": 0}
// array tops: {"dtype": "int32", "shape": [16], "fill": 0}
// array scan: {"dtype": "int32", "shape": [16, 32], "fill": 0}
// array peers: {"dtype": "uint32", "shape": [16, 32], "fill": 0}
// map src_map: {"of": "src", "box": [64, 8]}
// launch: {"grid": 2, "block": [32, 8]}
// args: ["src_map", "sums", "tops", "scan", "peers"]
// let pairs: src[:, 0::2].astype(np.int32) + src[:, 1::2].astype(np.int32)
// expect sums: src.astype(np.float32).sum(axis=1)
// expect tops: pairs.max(axis=1)
// expect scan: np.cumsum(pairs, axis=1, dtype=np.int32)
// expect peers: ((pairs[:, :, None] == pairs[:, None, :]).astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(axis=2, dtype=np.uint32)

#include <cuda_fp16.h>

#include "sample.cuh"

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, float* sums, int* tops, int* scan, u32* peers)
{
    __shared__ alignas(128) __half2 tile[8][32];
    __shared__ alignas(8) u64 bar;
    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    if (lane == 0 && warp == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(tile));
        load_2d(tile, &src_map, 0, blockIdx.x * 8, &bar);
    }
    __syncthreads();
    wait(&bar, 0);

    const u32 all = 0xffffffffu;
    const int row = blockIdx.x * 8 + warp;
    const __half2 v = tile[warp][lane];
    const __half pair = __hadd(__low2half(v), __high2half(v));
    float sum = __half2float(pair);
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
        sum += __shfl_xor_sync(all, sum, d);
    }
    const int whole = __half2int_rn(pair);
    int running = whole;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        const int left = __shfl_up_sync(all, running, d);
        running += lane >= d ? left : 0;
    }
    scan[row * 32 + lane] = running;
    peers[row * 32 + lane] = __match_any_sync(all, whole);
    const int top = __reduce_max_sync(all, whole);
    const u32 who = __ballot_sync(all, whole == top);
    const int leader = __ffs(who) - 1;
    if (lane == leader) {
        sums[row] = sum;
        tops[row] = top;
    }
}
