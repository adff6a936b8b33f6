// sample: store-tile
// says: threads fill a tile of int16, fence it for the async proxy, and one thread stores it by TMA, clipped at the edge
// array out: {"dtype": "int16", "shape": [40, 88], "fill": -3}
// map out_map: {"of": "out", "box": [32, 16], "l2": "L2_256B"}
// launch: {"grid": [3, 3], "block": 96}
// args: ["out_map", {"i32": 88}]
// expect out: (np.arange(40 * 88).reshape(40, 88) * 3 - 5).astype(np.int16)

#include <cuda/ptx>

#include "sample.cuh"

namespace ptx = cuda::ptx;

extern "C" __global__ void k(const __grid_constant__ CUtensorMap out_map, int width)
{
    __shared__ alignas(128) short tile[16][32];
    const int x0 = static_cast<int>(blockIdx.x) * 32;
    const int y0 = static_cast<int>(blockIdx.y) * 16;

    for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) {
        const int row = i >> 5;
        const int column = i & 31;
        tile[row][column] = static_cast<short>(((y0 + row) * width + x0 + column) * 3 - 5);
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();

    if (threadIdx.x == 0) {
        const int at[2] = {x0, y0};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out_map, at, &tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
}
