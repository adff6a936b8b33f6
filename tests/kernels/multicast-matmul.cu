// sample: multicast-matmul
// says: a cluster of 2x2 blocks multiplies matrices: each block loads half a tile of A for its row of blocks and half a tile of B for its column
// array a: {"dtype": "int32", "shape": [64, 96], "fill": "hash:-99:100"}
// array b: {"dtype": "int32", "shape": [96, 64], "fill": "hash:-99:100"}
// array out: {"dtype": "int32", "shape": [64, 64], "fill": 0}
// map a_map: {"of": "a", "box": [32, 16]}
// map b_map: {"of": "b", "box": [32, 16]}
// launch: {"grid": [2, 2], "block": [32, 8], "cluster": [2, 2, 1]}
// args: ["a_map", "b_map", "out", {"i32": 96}]
// expect out: a @ b

#include "sample.cuh"

constexpr int kTile = 32;

__device__ inline void load_for_many(void* dst, const CUtensorMap* map, int x, int y, u64* bar, u16 blocks)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(dst)),
        "l"(map), "r"(x), "r"(y), "r"(shared_address(bar)), "h"(blocks)
        : "memory");
}

__device__ inline void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                             int* __restrict__ out, int depth)
{
    __shared__ alignas(128) int a[kTile][kTile];
    __shared__ alignas(128) int b[kTile][kTile];
    __shared__ alignas(8) u64 full;

    u32 bx, by;
    asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(bx));
    asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(by));
    const bool leader = threadIdx.x == 0 && threadIdx.y == 0;
    if (leader) {
        barrier_init(&full, 1);
        fence_barrier_init();
    }
    cluster_sync();

    int sum[4] = {0, 0, 0, 0};
    for (int step = 0; step < depth / kTile; ++step) {
        if (leader) {
            arrive_expect(&full, sizeof(a) + sizeof(b));
            // Ranks run x first: the blocks of my row are 2 by and 2 by + 1, those of my column bx and bx + 2.
            load_for_many(a[bx * 16], &a_map, step * kTile, blockIdx.y * kTile + bx * 16, &full, 3u << (2 * by));
            load_for_many(b[by * 16], &b_map, blockIdx.x * kTile, step * kTile + by * 16, &full, 5u << bx);
        }
        wait(&full, step & 1);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = threadIdx.y + 8 * j;
            for (int e = 0; e < kTile; ++e) {
                sum[j] += a[row][e] * b[e][threadIdx.x];
            }
        }
        cluster_sync();  // nobody writes into a tile that a neighbour still reads
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        out[(blockIdx.y * kTile + threadIdx.y + 8 * j) * 64 + blockIdx.x * kTile + threadIdx.x] = sum[j];
    }
}
