// SPDX-License-Identifier: MIT
// What the measured kernels share: the type of a tensor map, and the PTX of the few steps that all of them are made
// of, one function a step. The lesson's own kernel says the same through libcu++; here every instruction stands
// spelled out, so that what is measured can be read off, and a compile takes a tenth of a second.
//
// Macros choose among variants; each has a default, so that every file compiles as it is.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cuda.h>
#elif !defined(__cuda_cuda_h__)
// cuda.h cannot be had under NVRTC. libcu++ forward-declares the type under this very name.
struct alignas(64) CUtensorMap_st {
    unsigned long long opaque[16];
};
typedef struct CUtensorMap_st CUtensorMap;
#endif

typedef unsigned int u32;
typedef unsigned long long u64;

// Cache hints: what L2 should do with the lines of a copy. 0: nothing said. 1: evict first. Of a thread's own store
// also 2: leave no line in L1.
#ifndef LOAD_HINT
#define LOAD_HINT 0
#endif
#ifndef STORE_HINT
#define STORE_HINT 0
#endif

__device__ inline u32 shared_address(const void* p)
{
    return static_cast<u32>(__cvta_generic_to_shared(p));
}

__device__ inline u64 evict_first()
{
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// ------------------------------------------------------------------------------------------------ barriers

__device__ inline void barrier_init(u64* bar, u32 arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the copy engine.
__device__ inline void fence_barrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Makes what this thread wrote to shared memory visible to the copy engine.
__device__ inline void fence_async_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void arrive_expect(u64* bar, u32 nbytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(nbytes)
                 : "memory");
}

// Waits for the end of the phase of this parity. The thread sleeps in try_wait, it does not spin.
__device__ inline void wait(u64* bar, u32 parity)
{
    u32 over;
    do {
        asm volatile(
            "{\n\t"
            ".reg .pred done;\n\t"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
            "selp.u32 %0, 1, 0, done;\n\t"
            "}"
            : "=r"(over)
            : "r"(shared_address(bar)), "r"(parity)
            : "memory");
    } while (over == 0);
}

// All threads of the block; for a block of one warp that is the warp.
__device__ inline void sync_block()
{
#if defined(THREADS) && THREADS == 32
    __syncwarp();
#else
    __syncthreads();
#endif
}

// ------------------------------------------------------------------------------------------------ tensor copies

__device__ inline void load_2d(void* dst, const CUtensorMap* map, int x, int y, u64* bar)
{
#if LOAD_HINT
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(dst)),
        "l"(map), "r"(x), "r"(y), "r"(shared_address(bar)), "l"(evict_first())
        : "memory");
#else
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(dst)),
        "l"(map), "r"(x), "r"(y), "r"(shared_address(bar))
        : "memory");
#endif
}

__device__ inline void load_3d(void* dst, const CUtensorMap* map, int x, int y, int z, u64* bar)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(dst)),
        "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(bar))
        : "memory");
}

__device__ inline void store_2d(const CUtensorMap* map, int x, int y, const void* src)
{
#if STORE_HINT
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(map),
        "r"(x), "r"(y), "r"(shared_address(src)), "l"(evict_first())
        : "memory");
#else
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x),
                 "r"(y), "r"(shared_address(src))
                 : "memory");
#endif
}

__device__ inline void store_3d(const CUtensorMap* map, int x, int y, int z, const void* src)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map), "r"(x),
                 "r"(y), "r"(z), "r"(shared_address(src))
                 : "memory");
}

__device__ inline void commit_stores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until at most `left` groups of stores still read shared memory.
template <int left>
__device__ inline void wait_stores_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}

// Waits until at most `left` groups of stores are not yet complete.
template <int left>
__device__ inline void wait_stores()
{
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(left) : "memory");
}

// ------------------------------------------------------------------------------------------------ linear copies

__device__ inline void load_linear(void* dst, const void* src, u32 nbytes, u64* bar)
{
#if LOAD_HINT
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(dst)),
        "l"(src), "r"(nbytes), "r"(shared_address(bar)), "l"(evict_first())
        : "memory");
#else
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(dst)),
                 "l"(src), "r"(nbytes), "r"(shared_address(bar))
                 : "memory");
#endif
}

__device__ inline void store_linear(void* dst, const void* src, u32 nbytes)
{
#if STORE_HINT
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(dst),
                 "r"(shared_address(src)), "r"(nbytes), "l"(evict_first())
                 : "memory");
#else
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(shared_address(src)),
                 "r"(nbytes)
                 : "memory");
#endif
}

// ------------------------------------------------------------------------------------------------ arithmetic

// One thread's own store of 16 bytes.
__device__ inline void store_16(float4* to, float4 v)
{
#if STORE_HINT == 1
    __stcs(to, v);
#elif STORE_HINT == 2
    asm volatile("st.global.L1::no_allocate.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z),
                 "f"(v.w)
                 : "memory");
#else
    *to = v;
#endif
}

__device__ inline float4 plus_one(float4 v)
{
    return make_float4(v.x + 1.0f, v.y + 1.0f, v.z + 1.0f, v.w + 1.0f);
}
