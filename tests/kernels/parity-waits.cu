// sample: parity-waits
// says: raw PTX: sink arrivals, expect_tx apart from arrive, waits by parity with a hint, predicated copies, a retry count
// array src: {"dtype": "uint16", "shape": [64, 64], "fill": "hash:0:65536"}
// array out: {"dtype": "uint16", "shape": [64, 64], "fill": 9}
// array tries: {"dtype": "uint32", "shape": [1], "fill": 0}
// map src_map: {"of": "src", "box": [64, 8]}
// launch: {"grid": 2, "block": 32}
// args: ["src_map", "out", "tries"]
// expect out: src ^ np.uint16(0x5a5a)
// expect tries: np.array([2], np.uint32)

#include "sample.cuh"

constexpr u32 kBytes = 8 * 64 * 2;

// Asks for one tile if `go`; every instruction is predicated and nothing branches.
__device__ inline void ask_if(u32 go, u32 dst, const CUtensorMap* map, int y, u32 bar)
{
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        ".reg .b32 zero;\n\t"
        "setp.ne.s32 p, %0, 0;\n\t"
        "mov.b32 zero, 0;\n\t"
        "@p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%4], %5;\n\t"
        "@p mbarrier.arrive.release.cta.shared::cta.b64 _, [%4];\n\t"
        "@p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2, {zero, %3}], [%4];\n\t"
        "}" ::"r"(go),
        "r"(dst), "l"(map), "r"(y), "r"(bar), "r"(kBytes)
        : "memory");
}

__device__ inline u32 wait_with_hint(u32 bar, u32 parity)
{
    u32 passed;
    asm volatile(
        "{\n\t"
        ".reg .pred P1;\n\t"
        ".reg .b32 count;\n\t"
        "mov.b32 count, 0;\n\t"
        "LAB_WAIT:\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%1], %2, 0x989680;\n\t"
        "add.u32 count, count, 1;\n\t"
        "@P1 bra DONE;\n\t"
        "bra LAB_WAIT;\n\t"
        "DONE:\n\t"
        "min.u32 %0, count, 1;\n\t"
        "}"
        : "=r"(passed)
        : "r"(bar), "r"(parity)
        : "memory");
    return passed;
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, u16* __restrict__ out, u32* tries)
{
    __shared__ alignas(128) u16 tile[2][8][64];
    __shared__ alignas(8) u64 bars[2];
    const u32 bar = shared_address(bars);
    const u32 first = threadIdx.x == 0;
    if (first) {
        barrier_init(&bars[0], 1);
        barrier_init(&bars[1], 1);
        fence_barrier_init();
    }
    __syncwarp();

    const int y0 = blockIdx.x * 32;
    ask_if(first, shared_address(tile[0]), &src_map, y0, bar);
    u32 passed = 0;
    for (int n = 0; n < 4; ++n) {
        const int s = n & 1;
        ask_if(first && n < 3, shared_address(tile[s ^ 1]), &src_map, y0 + (n + 1) * 8, bar + (s ^ 1) * 8);
        passed |= wait_with_hint(bar + s * 8, n >> 1);
        const u32* words = reinterpret_cast<const u32*>(tile[s]);
        u32* to = reinterpret_cast<u32*>(out + (y0 + n * 8) * 64);
        for (int i = threadIdx.x; i < 8 * 32; i += 32) {
            to[i] = words[i] ^ 0x5a5a5a5au;
        }
        __syncwarp();
    }
    if (first) {
        asm volatile("red.global.add.u32 [%0], %1;" ::"l"(tries), "r"(passed) : "memory");
    }
}
