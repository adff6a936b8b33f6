// sample: dsmem-ring
// says: four blocks of a cluster pass their tile on to the next: mapa, st.async that counts bytes, a bulk copy between blocks, a remote arrive
// array src: {"dtype": "uint32", "shape": [2, 4, 128], "fill": "ramp"}
// array out: {"dtype": "uint32", "shape": [2, 4, 128], "fill": 0}
// launch: {"grid": 8, "block": 64, "cluster": [4, 1, 1]}
// args: ["src", "out"]
// let r: src.astype(np.uint32)
// expect out: np.concatenate([np.roll(r, 1, axis=1)[:, :, :64] + np.uint32(1), np.roll(r, 2, axis=1)[:, :, 64:] * np.uint32(5)], axis=2)

#include "sample.cuh"

__device__ inline u32 at_rank(u32 address, u32 rank)
{
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

__device__ inline void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

extern "C" __global__ void k(const u32* __restrict__ src, u32* __restrict__ out)
{
    __shared__ alignas(16) u32 mine[64];
    __shared__ alignas(16) u32 by_words[64];
    __shared__ alignas(16) u32 by_bulk[64];
    __shared__ alignas(8) u64 words_here;
    __shared__ alignas(8) u64 bulk_here;
    __shared__ alignas(8) u64 told;

    u32 rank, ranks;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
    const u32 next = (rank + 1) % ranks;
    const u32 after = (rank + 2) % ranks;
    const u32 tid = threadIdx.x;
    const u32* from = src + blockIdx.x * 128;

    if (tid == 0) {
        barrier_init(&words_here, 1);
        barrier_init(&bulk_here, 1);
        barrier_init(&told, 64);
        fence_barrier_init();
        arrive_expect(&words_here, 256);
        arrive_expect(&bulk_here, 256);
    }
    mine[tid] = from[64 + tid] * 5;
    fence_async_shared();
    cluster_sync();

    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                     at_rank(shared_address(&by_words[tid]), next)),
                 "r"(from[tid] + 1), "r"(at_rank(shared_address(&words_here), next))
                 : "memory");
    if (tid == 0) {
        asm volatile(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                at_rank(shared_address(by_bulk), after)),
            "r"(shared_address(mine)), "r"(256u), "r"(at_rank(shared_address(&bulk_here), after))
            : "memory");
    }
    wait(&words_here, 0);
    wait(&bulk_here, 0);
    out[blockIdx.x * 128 + tid] = by_words[tid];
    out[blockIdx.x * 128 + 64 + tid] = by_bulk[tid];

    // Every thread tells the sender of the bulk copy that it has arrived: its source may go away now.
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                     at_rank(shared_address(&told), (rank + ranks - 2) % ranks))
                 : "memory");
    while (true) {
        u32 over;
        asm volatile(
            "{\n\t"
            ".reg .pred p;\n\t"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n\t"
            "selp.u32 %0, 1, 0, p;\n\t"
            "}"
            : "=r"(over)
            : "r"(shared_address(&told))
            : "memory");
        if (over) {
            break;
        }
    }
}
