// sample: memcpy-async
// says: libcu++ alone: cuda::memcpy_async on a cuda::barrier, cooperative and by single threads, aligned and not
// array src: {"dtype": "float32", "shape": [4, 256], "fill": "ramp"}
// array out: {"dtype": "float32", "shape": [4, 256], "fill": -1}
// launch: {"grid": 4, "block": 128}
// args: ["src", "out"]
// expect out: src[:, ::-1] * 2

#include <cooperative_groups.h>
#include <cuda/barrier>

namespace cg = cooperative_groups;

extern "C" __global__ void k(const float* src, float* out)
{
    using barrier_t = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(16) float row[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier_t bar;

    const auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) {
        init(&bar, block.size());
    }
    block.sync();

    const float* from = src + blockIdx.x * 256;
    cuda::memcpy_async(block, row, from, cuda::aligned_size_t<16>(128 * sizeof(float)), bar);
    cuda::memcpy_async(row + 128 + threadIdx.x, from + 128 + threadIdx.x, sizeof(float), bar);
    bar.arrive_and_wait();

    for (unsigned i = block.thread_rank(); i < 256; i += block.size()) {
        out[blockIdx.x * 256 + i] = row[255 - i] * 2.0f;
    }
}
