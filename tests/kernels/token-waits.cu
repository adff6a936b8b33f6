// sample: token-waits
// says: raw PTX: arrivals that return a token, waits on that token with and without a time hint, loops with local labels
// array src: {"dtype": "float32", "shape": [32, 64], "fill": "ramp"}
// array out: {"dtype": "float32", "shape": [32, 64], "fill": -1}
// map src_map: {"of": "src", "box": [32, 16]}
// launch: {"grid": [2, 2], "block": 64}
// args: ["src_map", "out"]
// expect out: src * 4 - 1

#include "sample.cuh"

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, float* __restrict__ out)
{
    __shared__ alignas(128) float tile[16][32];
    __shared__ alignas(8) u64 bar;
    const u32 at = shared_address(&bar);
    const int x0 = blockIdx.x * 32;
    const int y0 = blockIdx.y * 16;

    // One thread initialises: the predicate and the register live in the block's own scope.
    asm volatile(
        "{\n\t"
        ".reg .pred first;\n\t"
        ".reg .b32 lane;\n\t"
        "mov.u32 lane, %%tid.x;\n\t"
        "setp.eq.u32 first, lane, 0;\n\t"
        "@first mbarrier.init.shared.b64 [%0], %1;\n\t"
        "@first fence.proxy.async;\n\t"
        "}" ::"r"(at),
        "r"(blockDim.x)
        : "memory");
    __syncthreads();

    u64 token;
    if (threadIdx.x == 0) {
        load_2d(tile, &src_map, x0, y0, &bar);
        asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %0, [%1], %2;"
                     : "=l"(token)
                     : "r"(at), "r"(static_cast<u32>(sizeof(tile)))
                     : "memory");
    } else {
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(at) : "memory");
    }
    asm volatile(
        "{\n\t"
        ".reg .pred done;\n\t"
        "again:\n\t"
        "mbarrier.try_wait.shared.b64 done, [%0], %1;\n\t"
        "@done bra.uni over;\n\t"
        "bra.uni again;\n\t"
        "over:\n\t"
        "}" ::"r"(at),
        "l"(token)
        : "memory");

    for (int i = threadIdx.x; i < 16 * 32; i += 64) {
        tile[i / 32][i % 32] *= 2.0f;
    }

    // A second phase, of threads alone: the same labels again, in a scope of their own, and a hint in nanoseconds.
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(at) : "memory");
    asm volatile(
        "{\n\t"
        ".reg .pred done;\n\t"
        "again:\n\t"
        "mbarrier.try_wait.acquire.cta.shared::cta.b64 done, [%0], %1, %2;\n\t"
        "@!done bra again;\n\t"
        "}" ::"r"(at),
        "l"(token), "r"(1000u)
        : "memory");

    for (int i = threadIdx.x; i < 16 * 32; i += 64) {
        const int row = 15 - i / 32;
        out[(y0 + row) * 64 + x0 + i % 32] = tile[row][i % 32] * 2.0f - 1.0f;
    }

    // A third phase that one thread never joins: the test must say no. Then the barrier is given up.
    u32 over = 0;
    if (threadIdx.x != 1) {
        asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 1;" : "=l"(token) : "r"(at) : "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "mbarrier.test_wait.shared.b64 p, [%1], %2;\n\t"
            "selp.b32 %0, 1, 0, p;\n\t"
            "}"
            : "=r"(over)
            : "r"(at), "l"(token)
            : "memory");
        if (over) {
            out[0] = -1.0e9f;
        }
        asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at) : "memory");
    }
}
