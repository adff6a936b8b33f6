// sample: cuda-pipeline
// says: libcu++'s cuda::pipeline with two stages: all threads fetch batch n + 1 while they work on batch n
// array src: {"dtype": "int32", "shape": [2, 5, 64], "fill": "hash:-9999:9999"}
// array out: {"dtype": "int32", "shape": [2, 64], "fill": 0}
// launch: {"grid": 2, "block": 64}
// args: ["src", "out", {"i32": 5}]
// expect out: (src * np.arange(1, 6, dtype=np.int32).reshape(1, 5, 1)).sum(axis=1, dtype=np.int32)

#include <cooperative_groups.h>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

extern "C" __global__ void k(const int* __restrict__ src, int* __restrict__ out, int batches)
{
    constexpr int kStages = 2;
    __shared__ alignas(16) int stage[kStages][64];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;

    const auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    const int* from = src + blockIdx.x * batches * 64;

    int sum = 0;
    int fetched = 0;
    for (int batch = 0; batch < batches; ++batch) {
        for (; fetched < batches && fetched < batch + kStages; ++fetched) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stage[fetched % kStages], from + fetched * 64, cuda::aligned_size_t<16>(256), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += stage[batch % kStages][threadIdx.x] * (batch + 1);
        pipe.consumer_release();
    }
    out[blockIdx.x * 64 + threadIdx.x] = sum;
}
