// sample: function-pointers
// says: calls through a table of device functions, chosen for each lane, and a virtual member
// array src: {"dtype": "float32", "shape": [128], "fill": "hash:-50:50"}
// array out: {"dtype": "float32", "shape": [128], "fill": 0}
// launch: {"grid": 2, "block": 64}
// args: ["src", "out"]
// let i: np.arange(128)
// let op: np.choose(i % 3, [src * 2, src - 8, src * src])
// expect out: np.where(i % 2 == 0, op + 1, -op).astype(np.float32)

using Op = float (*)(float);

__device__ float twice(float x) { return x * 2.0f; }
__device__ float less_eight(float x) { return x - 8.0f; }
__device__ float square(float x) { return x * x; }

__device__ const Op table[3] = {twice, less_eight, square};

struct Finish {
    __device__ virtual float operator()(float x) const = 0;
};
struct AddOne : Finish {
    __device__ float operator()(float x) const override { return x + 1.0f; }
};
struct Negate : Finish {
    __device__ float operator()(float x) const override { return -x; }
};

extern "C" __global__ void k(const float* __restrict__ src, float* __restrict__ out)
{
    const AddOne add_one;
    const Negate negate;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const Finish* finish = i % 2 == 0 ? static_cast<const Finish*>(&add_one) : static_cast<const Finish*>(&negate);
    out[i] = (*finish)(table[i % 3](src[i]));
}
