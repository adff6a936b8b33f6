// SPDX-License-Identifier: MIT
//
// One tile a block, fetched by the Tensor Memory Accelerator (TMA) of a Hopper GPU or later.
//
//     matrix in global memory            one block
//     256 x 256 floats                   1. thread 0 names a tile and asks for it, once
//     +----+----+----+----+              2. the TMA engine copies 16384 bytes to shared memory
//     |    |    |    |    |              3. all 256 threads sleep at a barrier that counts bytes
//     +----+----+----+----+              4. each thread adds 1 to 16 elements and stores them
//     |    |    |tile|    |
//     +----+----+----+----+              Nobody computes a global address for the load: the tensor
//     |    |    |    |    |              map, made on the host, is the whole address story. The
//     +----+----+----+----+              tile passes through no register on its way, and 255 of
//     |    |    |    |    |              the 256 threads issue no load at all.
//     +----+----+----+----+
//
// Build and run (CUDA 12.6 or later; also -arch=sm_100 and -arch=sm_120):
//
//     nvcc -std=c++17 -O3 -arch=sm_90 -lineinfo -o tma_tile tma_tile.cu && ./tma_tile
//
// The lesson beside this file quotes the regions between "// snippet: NAME" and "// end snippet",
// and compiles the device half with NVRTC, which knows no host code: hence __CUDACC_RTC__ below.

#if !defined(__CUDACC_RTC__)
#include <cudaTypedefs.h>  // CUtensorMap, and the type of the driver's encode function
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#endif

#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#include <cuda/std/utility>

namespace ptx = cuda::ptx;

// ------------------------------------------------------------------------------------ shapes

constexpr int kGmemWidth = 256;   // floats in a row of the matrix
constexpr int kGmemHeight = 256;  // rows of the matrix
constexpr int kTileWidth = 64;    // floats in a row of a tile
constexpr int kTileHeight = 64;   // rows of a tile
constexpr int kThreadsPerBlock = 256;

constexpr int kTilesX = kGmemWidth / kTileWidth;
constexpr int kTilesY = kGmemHeight / kTileHeight;
constexpr int kRowsPerStep = kThreadsPerBlock / kTileWidth;  // tile rows stored at once

// What the hardware demands, pinned where a change of shape would break it.
static_assert(kTileWidth <= 256 && kTileHeight <= 256,
              "TMA: each dimension of the box is at most 256 elements");
static_assert(kTileWidth * sizeof(float) % 16 == 0,
              "TMA: the innermost row of the box is a multiple of 16 bytes");
static_assert(kGmemWidth * sizeof(float) % 16 == 0,
              "TMA: the row stride in global memory is a multiple of 16 bytes");
static_assert(kTilesX * kTileWidth == kGmemWidth && kTilesY * kTileHeight == kGmemHeight,
              "this kernel: the grid of tiles covers the matrix exactly, with no edge tiles");
static_assert(kThreadsPerBlock % 32 == 0 && kThreadsPerBlock <= 1024,
              "this kernel: the block is whole warps, 1024 threads at most");
static_assert(kThreadsPerBlock % kTileWidth == 0 && kTileHeight % kRowsPerStep == 0,
              "this kernel: the block stores whole rows, and every thread as many elements");

// ------------------------------------------------------------------------------------ kernel

// out = matrix behind tileMap, plus 1. Launch with kTilesX x kTilesY blocks of kThreadsPerBlock.
//
// The map is passed by value, and __grid_constant__ keeps it where it arrived: in constant memory,
// where the TMA engine can read its 128 bytes. Without it the compiler may hand the engine the
// address of a private copy on the thread's stack, which the engine cannot reach.
//
// extern "C" keeps the name as it is written, so that a program can look it up in the PTX.
extern "C" __global__ void loadTileTma(const __grid_constant__ CUtensorMap tileMap,
                                       float* __restrict__ out)
{
    // The engine delivers to 128-byte boundaries of shared memory alone; a float has only 4.
    __shared__ alignas(128) float tile[kTileHeight][kTileWidth];

    // An mbarrier: 64 bits in shared memory that count arrivals of threads AND bytes that landed.
    // A shared variable runs no constructor, which the compiler would warn of: init() below does
    // that work.
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;

    // Coordinates of the tile's first element, counted in elements of the matrix.
    const int tileX = blockIdx.x * kTileWidth;
    const int tileY = blockIdx.y * kTileHeight;

    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);  // a phase needs an arrival from every thread of the block
        // Threads reach shared memory through one door (the generic proxy), the TMA engine through
        // another (the async proxy). The fence makes what thread 0 wrote through the first visible
        // through the second: without it the engine may count bytes on a barrier that is not there.
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();  // no other thread may touch the barrier before it exists

    // snippet: issue-tma
    cuda::barrier<cuda::thread_scope_block>::arrival_token token;
    if (threadIdx.x == 0) {
        // Where the tile starts: elements, not tiles and not bytes, and x before y.
        const cuda::std::int32_t start[2] = {tileX, tileY};
        // One instruction for 4096 elements. It returns at once; the engine does the copying.
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &tileMap, start,
                                  cuda::device::barrier_native_handle(bar));
        // Arrive once, and announce how many bytes this phase has to wait for. They may have landed
        // already: the phase cannot end before this thread, too, has arrived.
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
    } else {
        token = bar.arrive();  // the others asked for nothing: they arrive, and announce no bytes
    }
    // end snippet

    // The phase ends when all threads have arrived and all announced bytes have landed. Whoever
    // has seen it end may read the tile: waiting is also what makes the engine's bytes visible.
    bar.wait(cuda::std::move(token));

    // snippet: plain-store
    // Consecutive threads take consecutive columns, so that a warp writes 128 bytes in a row. Each
    // thread keeps its column and walks down the tile, 4 rows a step: 16 elements in all.
    const int column = threadIdx.x % kTileWidth;
    for (int step = 0; step < kTileHeight; step += kRowsPerStep) {
        const int row = step + threadIdx.x / kTileWidth;
        out[(tileY + row) * kGmemWidth + (tileX + column)] = tile[row][column] + 1.0f;
    }
    // end snippet
}

// -------------------------------------------------------------------------------------- host

#if !defined(__CUDACC_RTC__)

#define CUDA_CHECK(call)                                                                     \
    do {                                                                                     \
        const cudaError_t status_ = (call);                                                  \
        if (status_ != cudaSuccess) {                                                        \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,               \
                         cudaGetErrorString(status_));                                       \
            std::exit(EXIT_FAILURE);                                                         \
        }                                                                                    \
    } while (0)

// Names device 0, and ends the program where it has no TMA engine.
static void requireTma()
{
    cudaDeviceProp gpu{};
    CUDA_CHECK(cudaSetDevice(0));
    CUDA_CHECK(cudaGetDeviceProperties(&gpu, 0));
    std::printf("GPU: %s (compute capability %d.%d)\n", gpu.name, gpu.major, gpu.minor);
    if (gpu.major < 9) {
        std::fprintf(stderr,
                     "compute capability must be 9.0 or higher, got %d.%d (%s): the TMA engine "
                     "came with Hopper. Run this on an H100, H200, B200 or RTX 50 series GPU.\n",
                     gpu.major, gpu.minor, gpu.name);
        std::exit(EXIT_FAILURE);
    }
}

// The encode function is the driver's. Asked for by name at run time, it needs no -lcuda; asked
// for by version, it is the function that the typedef below describes, on newer drivers too.
static PFN_cuTensorMapEncodeTiled_v12000 findEncodeTiled()
{
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess || function == nullptr) {
        std::fprintf(stderr,
                     "cuTensorMapEncodeTiled must be in the driver, got query result %d. Install a "
                     "driver for CUDA 12.0 or later.\n",
                     static_cast<int>(found));
        std::exit(EXIT_FAILURE);
    }
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

// The tensor map of the matrix at `in` (device memory), to be read in boxes of one tile.
static CUtensorMap encodeTileMap(float* in)
{
    const PFN_cuTensorMapEncodeTiled_v12000 encodeTiled = findEncodeTiled();

    // snippet: encode-map
    CUtensorMap tileMap{};                                         // 128 opaque bytes
    const cuuint64_t shape[2] = {kGmemWidth, kGmemHeight};         // elements, x first
    const cuuint64_t strides[1] = {kGmemWidth * sizeof(float)};    // bytes from row to row
    const cuuint32_t box[2] = {kTileWidth, kTileHeight};           // elements: one tile
    const cuuint32_t elementStrides[2] = {1, 1};                   // 1: take every element
    const CUresult encoded = encodeTiled(
        &tileMap,                            // where the 128 bytes go
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32,     // what an element is
        2,                                   // rank: how many coordinates name an element
        in,                                  // global address, a multiple of 16 bytes
        shape,                               // beyond it lies nothing: reads there are filled
        strides,                             // rank - 1 of them: elements of a row are adjacent
        box,                                 // what one instruction copies
        elementStrides,                      // no gaps between the elements of a box
        CU_TENSOR_MAP_INTERLEAVE_NONE,       // plain rows
        CU_TENSOR_MAP_SWIZZLE_NONE,          // the tile lies in shared memory row after row
        CU_TENSOR_MAP_L2_PROMOTION_NONE,     // fetch no more than was asked for
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);  // beyond the matrix: zeros
    // end snippet

    if (encoded != CUDA_SUCCESS) {
        std::fprintf(stderr,
                     "cuTensorMapEncodeTiled must accept the map, got CUresult %d. Check address, "
                     "strides and box against its rules in the CUDA driver API.\n",
                     static_cast<int>(encoded));
        std::exit(EXIT_FAILURE);
    }
    return tileMap;
}

// Compares bit by bit: adding 1 to a whole number below 2^24 is exact, so any difference is a bug.
static bool isRoundTripExact(const std::vector<float>& in, const std::vector<float>& out)
{
    for (size_t i = 0; i < out.size(); ++i) {
        const float want = in[i] + 1.0f;
        if (std::memcmp(&out[i], &want, sizeof(float)) != 0) {
            std::fprintf(stderr,
                         "round trip: FAIL. First difference at index %zu (row %zu, column %zu): "
                         "got %.9g, want %.9g.\n",
                         i, i / kGmemWidth, i % kGmemWidth, out[i], want);
            return false;
        }
    }
    return true;
}

int main()
{
    requireTma();

    constexpr size_t kElements = size_t{kGmemWidth} * kGmemHeight;
    constexpr size_t kBytes = kElements * sizeof(float);
    std::vector<float> input(kElements);
    std::vector<float> output(kElements);
    for (size_t i = 0; i < kElements; ++i) {
        input[i] = static_cast<float>(i);  // every element differs: a misplaced tile cannot hide
    }

    float* deviceIn = nullptr;
    float* deviceOut = nullptr;
    CUDA_CHECK(cudaMalloc(&deviceIn, kBytes));
    CUDA_CHECK(cudaMalloc(&deviceOut, kBytes));
    CUDA_CHECK(cudaMemcpy(deviceIn, input.data(), kBytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(deviceOut, 0, kBytes));  // no element may be 0: an unwritten tile shows

    const CUtensorMap tileMap = encodeTileMap(deviceIn);
    loadTileTma<<<dim3(kTilesX, kTilesY), kThreadsPerBlock>>>(tileMap, deviceOut);
    CUDA_CHECK(cudaGetLastError());       // was the launch itself accepted?
    CUDA_CHECK(cudaDeviceSynchronize());  // did the kernel finish without a fault?

    CUDA_CHECK(cudaMemcpy(output.data(), deviceOut, kBytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(deviceIn));
    CUDA_CHECK(cudaFree(deviceOut));
    if (!isRoundTripExact(input, output)) {
        return EXIT_FAILURE;
    }
    std::printf("round trip: PASS. %zu elements, %d tiles of %d x %d floats, "
                "one cp.async.bulk.tensor per tile.\n",
                kElements, kTilesX * kTilesY, kTileWidth, kTileHeight);
    return EXIT_SUCCESS;
}

#endif  // !defined(__CUDACC_RTC__)
