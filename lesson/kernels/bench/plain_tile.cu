// case: plain-tile
// says: the lesson's tiles, with plain loads and a test of every element against the matrix's end
// launch: {"grid": [4, 4], "block": 256}
// args: ["in", "out", 256, 256]
// expect: add1

// SPDX-License-Identifier: MIT
// The tiles of tma_one_tile.cu with plain loads: every thread computes where its elements lie and whether they lie in
// the matrix at all. UNIT floats at a time: 4 needs rows of a multiple of 4 floats, 1 takes any.

#include "bench.cuh"

#ifndef ROWS
#define ROWS 64
#endif
#ifndef WIDTH
#define WIDTH 64
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef UNIT
#define UNIT 4
#endif

#if UNIT == 4
typedef float4 Unit;
#else
typedef float Unit;
__device__ inline float plus_one(float v)
{
    return v + 1.0f;
}
#endif

constexpr u32 kUnitsInRow = WIDTH / UNIT;
constexpr u32 kEach = ROWS * kUnitsInRow / THREADS;
static_assert(ROWS * kUnitsInRow % THREADS == 0, "every thread takes as many units of a tile");

// Block (x, y) takes tile (x, y) of a matrix of width x height floats.
extern "C" __global__ void __launch_bounds__(THREADS)
    k(const float* __restrict__ in, float* __restrict__ out, int width, int height)
{
    Unit v[kEach];
    u64 at[kEach];
    bool inside[kEach];
#pragma unroll
    for (u32 e = 0; e < kEach; ++e) {
        const u32 j = e * THREADS + threadIdx.x;
        const int row = blockIdx.y * ROWS + j / kUnitsInRow;
        const int column = blockIdx.x * WIDTH + j % kUnitsInRow * UNIT;
        inside[e] = row < height && column < width;
        at[e] = static_cast<u64>(row) * width + column;
        if (inside[e]) {
            v[e] = *reinterpret_cast<const Unit*>(in + at[e]);
        }
    }
#pragma unroll
    for (u32 e = 0; e < kEach; ++e) {
        if (inside[e]) {
            *reinterpret_cast<Unit*>(out + at[e]) = plus_one(v[e]);
        }
    }
}
