// sample: reduce-store
// says: every block reduces its partial tile into one output by TMA: add in float32, min and max in int32, or and xor in uint32
// array total: {"dtype": "float32", "shape": [8, 32], "fill": 100}
// array low: {"dtype": "int32", "shape": [8, 32], "fill": 1000}
// array high: {"dtype": "int32", "shape": [8, 32], "fill": -1000}
// array any: {"dtype": "uint32", "shape": [8, 32], "fill": 0}
// array parity: {"dtype": "uint32", "shape": [8, 32], "fill": 4294967295}
// map total_map: {"of": "total", "box": [32, 8]}
// map low_map: {"of": "low", "box": [32, 8]}
// map high_map: {"of": "high", "box": [32, 8]}
// map any_map: {"of": "any", "box": [32, 8]}
// map parity_map: {"of": "parity", "box": [32, 8]}
// launch: {"grid": 5, "block": 64}
// args: ["total_map", "low_map", "high_map", "any_map", "parity_map"]
// let i: np.arange(256).reshape(8, 32)
// let each: [(i * 37 + b * 101) % 509 - 250 for b in range(5)]
// expect total: (100 + sum(each)).astype(np.float32)
// expect low: np.minimum(np.min(each, axis=0), 1000).astype(np.int32)
// expect high: np.maximum(np.max(each, axis=0), -1000).astype(np.int32)
// expect any: np.bitwise_or.reduce([e.astype(np.uint32) for e in each])
// expect parity: ~np.bitwise_xor.reduce([e.astype(np.uint32) for e in each])

#include "sample.cuh"

#define REDUCE(OP, map, src)                                                                               \
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." OP ".tile.bulk_group [%0, {%1, %2}], " \
                 "[%3];" ::"l"(&map),                                                                      \
                 "r"(0), "r"(0), "r"(shared_address(src))                                                  \
                 : "memory")

extern "C" __global__ void k(const __grid_constant__ CUtensorMap total_map, const __grid_constant__ CUtensorMap low_map,
                             const __grid_constant__ CUtensorMap high_map, const __grid_constant__ CUtensorMap any_map,
                             const __grid_constant__ CUtensorMap parity_map)
{
    __shared__ alignas(128) float real[256];
    __shared__ alignas(128) int whole[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        const int v = (i * 37 + static_cast<int>(blockIdx.x) * 101) % 509 - 250;
        whole[i] = v;
        real[i] = static_cast<float>(v);
    }
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
        REDUCE("add", total_map, real);
        REDUCE("min", low_map, whole);
        REDUCE("max", high_map, whole);
        commit_stores();
        REDUCE("or", any_map, whole);
        REDUCE("xor", parity_map, whole);
        commit_stores();
        wait_stores<1>();
        wait_stores<0>();
    }
}
