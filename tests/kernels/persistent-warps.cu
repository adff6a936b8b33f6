// sample: persistent-warps
// says: persistent blocks take tile numbers from a global counter; a scheduler-producer warp feeds three consumer warps
// array src: {"dtype": "uint32", "shape": [48, 64], "fill": "hash:0:1000000"}
// array out: {"dtype": "uint32", "shape": [48, 64], "fill": 0}
// array counter: {"dtype": "uint32", "shape": [1], "fill": 0}
// map src_map: {"of": "src", "box": [32, 8]}
// map out_map: {"of": "out", "box": [32, 8]}
// launch: {"grid": 3, "block": 128}
// args: ["src_map", "out_map", "counter", {"u32": 12}, {"u32": 2}]
// expect out: src * np.uint32(2654435761) ^ (src >> np.uint32(7))
// expect counter: np.array([12 + 3], np.uint32)

#include "sample.cuh"

constexpr int kStages = 2;
constexpr int kWidth = 32;
constexpr int kRows = 8;
constexpr u32 kNone = 0xffffffffu;

struct alignas(128) Room {
    u32 tile[kStages][kRows * kWidth];
    u32 result[kRows * kWidth];
    u32 number[kStages];
    u64 full[kStages];
    u64 empty[kStages];
};

__device__ void produce(Room& room, const CUtensorMap* map, u32* counter, u32 tiles, u32 across)
{
    u32 parity = 1;
    for (int s = 0;; s ^= 1) {
        wait(&room.empty[s], parity);
        const u32 n = atomicAdd(counter, 1u);
        room.number[s] = n < tiles ? n : kNone;
        if (n >= tiles) {
            arrive(&room.full[s]);
            return;
        }
        arrive_expect(&room.full[s], sizeof(room.tile[s]));
        load_2d(room.tile[s], map, n % across * kWidth, n / across * kRows, &room.full[s]);
        if (s == 1) {
            parity ^= 1;
        }
    }
}

__device__ void consume(Room& room, const CUtensorMap* map, u32 across)
{
    const u32 me = threadIdx.x - 32;
    u32 parity = 0;
    for (int s = 0;; s ^= 1) {
        wait(&room.full[s], parity);
        const u32 n = room.number[s];
        if (n == kNone) {
            break;
        }
        if (me == 0) {
            wait_stores_read<0>();  // the last result has left before it is overwritten
        }
        asm volatile("bar.sync 1, 96;" ::: "memory");
        for (u32 i = me; i < kRows * kWidth; i += 96) {
            const u32 v = room.tile[s][i];
            room.result[i] = v * 2654435761u ^ (v >> 7);
        }
        arrive(&room.empty[s]);
        fence_async_shared();
        asm volatile("bar.sync 1, 96;" ::: "memory");
        if (me == 0) {
            store_2d(map, n % across * kWidth, n / across * kRows, room.result);
            commit_stores();
        }
        if (s == 1) {
            parity ^= 1;
        }
    }
    if (me == 0) {
        wait_stores<0>();
    }
}

extern "C" __global__ void k(const __grid_constant__ CUtensorMap src_map, const __grid_constant__ CUtensorMap out_map,
                             u32* counter, u32 tiles, u32 across)
{
    __shared__ Room room;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            barrier_init(&room.full[s], 1);
            barrier_init(&room.empty[s], 96);
        }
        fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x >= 32) {
        consume(room, &out_map, across);
    } else if (threadIdx.x == 0) {
        produce(room, &src_map, counter, tiles, across);
    }
}
