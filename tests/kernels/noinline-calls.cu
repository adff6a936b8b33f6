// sample: noinline-calls
// says: functions that are not inlined: values, a struct by value and returned, a pointer to a local array, recursion
// array src: {"dtype": "int32", "shape": [16, 32], "fill": "hash:-1000:1000"}
// array out: {"dtype": "int32", "shape": [16, 32], "fill": 0}
// map src_map: {"of": "src", "box": [32, 8]}
// launch: {"grid": 2, "block": 64}
// args: ["src_map", "out"]
// let x: src.astype(np.int64)
// let n: np.arange(16 * 32).reshape(16, 32) % 7
// let tri: (n * (n + 1)) // 2
// let m: np.abs(x) % 8
// let poly: 2 + x * (3 + x)
// expect out: (poly + tri + (m * m - 2 * x) + (x + m)).astype(np.int32)

#include "sample.cuh"

struct Pair {
    int left;
    long long right;
    short tag;
};

__device__ __noinline__ int polynomial(int x, const int* coefficients, int n)
{
    int sum = 0;
    for (int i = n - 1; i >= 0; --i) {
        sum = sum * x + coefficients[i];
    }
    return sum;
}

__device__ __noinline__ int triangle(int n)
{
    return n <= 0 ? 0 : n + triangle(n - 1);
}

__device__ __noinline__ Pair split(Pair in, short by)
{
    Pair out;
    out.left = in.left + by;
    out.right = static_cast<long long>(by) * by - 2 * in.right;
    out.tag = static_cast<short>(in.tag ^ by);
    return out;
}

__device__ __noinline__ void fetch(float* dst, const CUtensorMap* map, int y, u64* bar)
{
    arrive_expect(bar, 8 * 32 * 4);
    load_2d(dst, map, 0, y, bar);
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, int* __restrict__ out)
{
    __shared__ alignas(128) int tile[8 * 32];
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) {
        barrier_init(&bar, 1);
        fence_barrier_init();
        fetch(reinterpret_cast<float*>(tile), &src_map, blockIdx.x * 8, &bar);
    }
    __syncthreads();
    wait(&bar, 0);

    for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) {
        const int n = blockIdx.x * 8 * 32 + i;
        const int x = tile[i];
        const int coefficients[3] = {2, 3, x == 0x7fffffff ? n : 1};
        const Pair in = {x, x, 0};
        const Pair got = split(in, static_cast<short>(abs(x) % 8));
        out[n] = polynomial(x, coefficients, 3) + triangle(n % 7) + static_cast<int>(got.right) + got.left;
    }
}
