// sample: ranks
// says: maps of rank 1, 4 and 5 in one kernel, two of them running over the edge of the tensor
// array one: {"dtype": "uint32", "shape": [100], "fill": "ramp"}
// array four: {"dtype": "uint16", "shape": [3, 4, 5, 16], "fill": "hash:0:60000"}
// array five: {"dtype": "uint8", "shape": [2, 3, 3, 4, 32], "fill": "hash:0:256"}
// array out_one: {"dtype": "uint32", "shape": [128], "fill": 7}
// array out_four: {"dtype": "uint16", "shape": [2, 2, 2, 8], "fill": 7}
// array out_five: {"dtype": "uint8", "shape": [2, 2, 2, 2, 16], "fill": 7}
// map one_map: {"of": "one", "box": [64]}
// map four_map: {"of": "four", "box": [8, 2, 2, 2]}
// map five_map: {"of": "five", "box": [16, 2, 2, 2, 2]}
// launch: {"grid": 1, "block": 32}
// args: ["one_map", "four_map", "five_map", "out_one", "out_four", "out_five"]
// let pad5: np.pad(five, ((0, 1), (0, 0), (0, 0), (0, 0), (0, 0)))
// expect out_one: np.pad(one, (0, 28))
// expect out_four: four[1:3, 2:4, 3:5, 8:16]
// expect out_five: pad5[1:3, 1:3, 0:2, 2:4, 16:32]

#include "sample.cuh"

extern "C" __global__ void k(const __grid_constant__ CUtensorMap one_map, const __grid_constant__ CUtensorMap four_map,
                             const __grid_constant__ CUtensorMap five_map, u32* out_one, u16* out_four, u8* out_five)
{
    __shared__ alignas(128) u32 one[128];
    __shared__ alignas(128) u16 four[64];
    __shared__ alignas(128) u8 five[256];
    __shared__ alignas(8) u64 bar;
    const u32 at = shared_address(&bar);
    if (threadIdx.x == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(one) + sizeof(four) + sizeof(five));
        for (int half = 0; half < 2; ++half) {
            asm volatile(
                "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::
                    "r"(shared_address(one + half * 64)),
                "l"(&one_map), "r"(half * 64), "r"(at)
                : "memory");
        }
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(four)),
            "l"(&four_map), "r"(8), "r"(3), "r"(2), "r"(1), "r"(at)
            : "memory");
        asm volatile(
            "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(shared_address(five)),
            "l"(&five_map), "r"(16), "r"(2), "r"(0), "r"(1), "r"(1), "r"(at)
            : "memory");
    }
    __syncwarp();
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 128; i += 32) {
        out_one[i] = one[i];
    }
    for (int i = threadIdx.x; i < 64; i += 32) {
        out_four[i] = four[i];
    }
    for (int i = threadIdx.x; i < 256; i += 32) {
        out_five[i] = five[i];
    }
}
