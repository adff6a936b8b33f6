// sample: stencil-3d
// says: a seven-point stencil: a box with a halo of one (four in x, for the 16-byte rule) starts below zero and is zero-filled outside
// array src: {"dtype": "float32", "shape": [12, 10, 24], "fill": "hash:-1000:1000"}
// array out: {"dtype": "float32", "shape": [12, 10, 24], "fill": -1}
// map src_map: {"of": "src", "box": [16, 6, 6]}
// launch: {"grid": [3, 3, 3], "block": [8, 4, 4]}
// args: ["src_map", "out", {"i32": 24}, {"i32": 10}, {"i32": 12}]
// let p: np.pad(src, 1)
// let c: slice(1, -1)
// let sides: p[2:, c, c] + p[:-2, c, c] + p[c, 2:, c] + p[c, :-2, c] + p[c, c, 2:] + p[c, c, :-2]
// expect out: sides - 6 * src

#include "sample.cuh"

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, float* __restrict__ out, int nx, int ny,
                             int nz)
{
    __shared__ alignas(128) float box[6][6][16];
    __shared__ alignas(8) u64 bar;

    const int x0 = static_cast<int>(blockIdx.x) * 8;
    const int y0 = static_cast<int>(blockIdx.y) * 4;
    const int z0 = static_cast<int>(blockIdx.z) * 4;
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
        barrier_init(&bar, 1);
        fence_async_shared();
        arrive_expect(&bar, sizeof(box));
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(box)),
            "l"(&src_map), "r"(x0 - 4), "r"(y0 - 1), "r"(z0 - 1), "r"(shared_address(&bar))
            : "memory");
    }
    __syncthreads();
    wait(&bar, 0);

    const int i = threadIdx.x + 4;
    const int j = threadIdx.y + 1;
    const int l = threadIdx.z + 1;
    const int x = x0 + threadIdx.x;
    const int y = y0 + threadIdx.y;
    const int z = z0 + threadIdx.z;
    if (x < nx && y < ny && z < nz) {
        const float sides = box[l][j][i - 1] + box[l][j][i + 1] + box[l][j - 1][i] + box[l][j + 1][i] +
                            box[l - 1][j][i] + box[l + 1][j][i];
        out[(z * ny + y) * nx + x] = sides - 6.0f * box[l][j][i];
    }
}
