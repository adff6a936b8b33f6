// sample: chained-scan
// says: a prefix sum in one pass: each block waits for the total of the block before it, published with release and read with acquire
// array src: {"dtype": "uint32", "shape": [512], "fill": "hash:0:100"}
// array out: {"dtype": "uint32", "shape": [512], "fill": 0}
// array flags: {"dtype": "uint32", "shape": [5], "fill": 0}
// array totals: {"dtype": "uint32", "shape": [5], "fill": 0}
// launch: {"grid": 4, "block": 128}
// args: ["src", "out", "flags", "totals"]
// let sums: np.cumsum(src, dtype=np.uint32)
// expect out: sums
// expect flags: np.array([1, 1, 1, 1, 4], np.uint32)
// expect totals: np.concatenate([sums[127::128], [0]]).astype(np.uint32)

#include "sample.cuh"

extern "C" __global__ void k(const u32* __restrict__ src, u32* __restrict__ out, u32* flags, u32* totals)
{
    __shared__ alignas(16) u32 part[128];
    __shared__ u32 warp_sum[4];
    __shared__ u32 before;
    __shared__ u32 ticket;
    __shared__ alignas(8) u64 bar;
    const int tid = threadIdx.x;
    const int lane = tid & 31;
    if (tid == 0) {
        ticket = atomicAdd(&flags[4], 1u);  // blocks take their turn in the order in which they start
        barrier_init(&bar, 1);
        fence_barrier_init();
    }
    __syncthreads();
    const u32 turn = ticket;
    if (tid == 0) {
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%2], 512;\n\t"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(
                shared_address(part)),
            "l"(src + turn * 128), "r"(shared_address(&bar))
            : "memory");
    }
    wait(&bar, 0);

    u32 sum = part[tid];
    for (int d = 1; d < 32; d *= 2) {
        const u32 left = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane >= d) {
            sum += left;
        }
    }
    if (lane == 31) {
        warp_sum[tid / 32] = sum;
    }
    __syncthreads();
    for (int w = 0; w < tid / 32; ++w) {
        sum += warp_sum[w];
    }
    if (tid == 127) {
        u32 carried = 0;
        if (turn > 0) {
            u32 ready;
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(ready) : "l"(&flags[turn - 1]) : "memory");
            } while (ready == 0);
            carried = *reinterpret_cast<volatile u32*>(&totals[turn - 1]);
        }
        totals[turn] = carried + sum;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&flags[turn]), "r"(1) : "memory");
        before = carried;
    }
    __syncthreads();
    out[turn * 128 + tid] = before + sum;
}
