// SPDX-License-Identifier: MIT
// What the samples in this folder share: the type of a tensor map, short integer names, and the PTX of the
// usual steps (initialise a barrier, ask for a copy, wait for it) as inline assembly. Some samples use it, some
// use libcu++, some spell their own PTX: the point of the folder is that authors differ.
#pragma once

#if defined(__CUDACC_RTC__)
// cuda.h cannot be had under NVRTC. libcu++ forward-declares the type under this very name.
struct alignas(64) CUtensorMap_st {
    unsigned long long opaque[16];
};
typedef struct CUtensorMap_st CUtensorMap;
#else
#include <cuda.h>
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ inline u32 shared_address(const void* p)
{
    return static_cast<u32>(__cvta_generic_to_shared(p));
}

__device__ inline void barrier_init(u64* bar, u32 arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the async proxy and to the other blocks of the cluster.
__device__ inline void fence_barrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Makes this thread's writes to shared memory visible to the async proxy.
__device__ inline void fence_async_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void arrive(u64* bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

__device__ inline void arrive_expect(u64* bar, u32 nbytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(nbytes)
                 : "memory");
}

__device__ inline bool phase_is_over(u64* bar, u32 parity)
{
    u32 over;
    asm volatile(
        "{\n\t"
        ".reg .pred done;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, done;\n\t"
        "}"
        : "=r"(over)
        : "r"(shared_address(bar)), "r"(parity)
        : "memory");
    return over != 0;
}

__device__ inline void wait(u64* bar, u32 parity)
{
    while (!phase_is_over(bar, parity)) {
    }
}

__device__ inline void load_2d(void* dst, const CUtensorMap* map, int x, int y, u64* bar)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(dst)),
        "l"(map), "r"(x), "r"(y), "r"(shared_address(bar))
        : "memory");
}

__device__ inline void store_2d(const CUtensorMap* map, int x, int y, const void* src)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x),
                 "r"(y), "r"(shared_address(src))
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
