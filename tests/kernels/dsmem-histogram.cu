// sample: dsmem-histogram
// says: a histogram whose bins are spread over the shared memories of a cluster, by cooperative groups and remote atomics
// array src: {"dtype": "int32", "shape": [2048], "fill": "hash:0:128"}
// array bins: {"dtype": "int32", "shape": [128], "fill": 3}
// launch: {"grid": 4, "block": 128}
// args: ["src", "bins", {"i32": 2048}]
// expect bins: 3 + np.bincount(src, minlength=128).astype(np.int32)

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const int* __restrict__ src, int* __restrict__ bins, int n)
{
    constexpr int kBins = 64;  // in each of two blocks
    __shared__ int here[kBins];

    const cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < kBins; i += blockDim.x) {
        here[i] = 0;
    }
    cluster.sync();

    const int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const int bin = src[i];
        int* there = cluster.map_shared_rank(here, bin / kBins);
        atomicAdd(there + bin % kBins, 1);
    }
    cluster.sync();

    int* mine = bins + cluster.block_rank() * kBins;
    for (int i = threadIdx.x; i < kBins; i += blockDim.x) {
        atomicAdd(&mine[i], here[i]);
    }
}
