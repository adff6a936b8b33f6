// sample: mixed-dtypes
// says: half and bfloat16 tiles meet double and 64-bit integers: conversions, fma in several widths, three barriers of bytes
// array h: {"dtype": "float16", "shape": [16, 32], "fill": "hash:-40:41"}
// array d: {"dtype": "float64", "shape": [16, 32], "fill": "hash:-100000:100000"}
// array l: {"dtype": "int64", "shape": [16, 32], "fill": "hash:-1000000:1000000"}
// array b: {"dtype": "uint16", "shape": [16, 32], "fill": "bfloat16:-90:90"}
// array out_d: {"dtype": "float64", "shape": [16, 32], "fill": 0}
// array out_l: {"dtype": "int64", "shape": [16, 32], "fill": 0}
// array out_h: {"dtype": "float16", "shape": [16, 32], "fill": 0}
// array out_b: {"dtype": "uint16", "shape": [16, 32], "fill": 0}
// map h_map: {"of": "h", "box": [32, 8], "dtype": "FLOAT16"}
// map d_map: {"of": "d", "box": [32, 8], "dtype": "FLOAT64"}
// map l_map: {"of": "l", "box": [32, 8], "dtype": "INT64"}
// map b_map: {"of": "b", "box": [32, 8], "dtype": "BFLOAT16"}
// launch: {"grid": 2, "block": 128}
// args: ["h_map", "d_map", "l_map", "b_map", "out_d", "out_l", "out_h", "out_b"]
// let bf: (b.astype(np.uint32) << np.uint32(16)).view(np.float32)
// expect out_d: d * h + 0.25
// expect out_l: l * 3 - d.astype(np.int64) + (l >> 5)
// expect out_h: (h * h - h).astype(np.float16)
// expect out_b: ((bf * 2 + 4).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "sample.cuh"

extern "C" __global__ void k(const __grid_constant__ CUtensorMap h_map, const __grid_constant__ CUtensorMap d_map,
                             const __grid_constant__ CUtensorMap l_map, const __grid_constant__ CUtensorMap b_map,
                             double* out_d, long long* out_l, __half* out_h, __nv_bfloat16* out_b)
{
    __shared__ alignas(128) __half h[256];
    __shared__ alignas(128) double d[256];
    __shared__ alignas(128) long long l[256];
    __shared__ alignas(128) __nv_bfloat16 b[256];
    __shared__ alignas(8) u64 bar;
    const int y0 = blockIdx.x * 8;
    if (threadIdx.x == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        arrive_expect(&bar, sizeof(h) + sizeof(d) + sizeof(l) + sizeof(b));
        load_2d(h, &h_map, 0, y0, &bar);
        load_2d(d, &d_map, 0, y0, &bar);
        load_2d(l, &l_map, 0, y0, &bar);
        load_2d(b, &b_map, 0, y0, &bar);
    }
    __syncthreads();
    wait(&bar, 0);

    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        const int to = y0 * 32 + i;
        out_d[to] = fma(d[i], static_cast<double>(__half2float(h[i])), 0.25);
        out_l[to] = l[i] * 3 - __double2ll_rz(d[i]) + (l[i] >> 5);
        out_h[to] = __hfma(h[i], h[i], __hneg(h[i]));
        out_b[to] = __hfma(b[i], __float2bfloat16(2.0f), __float2bfloat16(4.0f));
    }
}
