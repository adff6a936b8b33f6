"""The lesson's kernel on a real GPU: exact, measured, and harmless when it is broken."""

from __future__ import annotations

import numpy as np
import pytest

from lesson import compile as nvrtc
from lesson import gpu, harness
from lesson.errors import Hang, IllegalInstruction, LaunchError
from lesson.tensor_map import TensorMap
from tests import encode_region
from tests.gpu import live

pytestmark = pytest.mark.gpu


def test_the_round_trip_is_exact_bit_by_bit():
    assert live.is_exact(live.round_trip())


def test_the_round_trip_is_exact_in_a_process_of_its_own():
    assert live.is_exact(live.round_trip(isolated=True))


def test_the_recording_says_that_each_block_wrote_its_own_tile_once():
    out, record = live.record_writes()
    blocks, threads = live.expected_writers()
    assert live.is_exact(out)
    assert record.write_counts.tolist() == [1] * out.size
    assert record.writer_blocks.tolist() == blocks.tolist()
    assert record.writer_threads.tolist() == threads.tolist()


@pytest.mark.skipif(bool(encode_region.missing()), reason=f"{encode_region.missing()}")
def test_cpp_and_python_encode_the_same_128_bytes():
    found = live.map_bytes()
    assert found.cpp_result == 0
    assert found.cpp == found.python
    assert len(found.python) == 128


def test_after_an_illegal_instruction_in_a_child_this_process_works():
    with pytest.raises(IllegalInstruction, match="CUDA_ERROR_ILLEGAL_INSTRUCTION"):
        live.round_trip(isolated=True, replace=live.ILLEGAL)
    assert live.is_exact(live.round_trip())


def test_after_a_hang_in_a_child_this_process_works():
    with pytest.raises(Hang, match="must finish within 3 s"):
        live.round_trip(isolated=True, replace=live.HANGS)
    assert live.is_exact(live.round_trip())


def test_a_driver_older_than_nvrtc_gets_machine_code(monkeypatch: pytest.MonkeyPatch):
    import cupy

    version = nvrtc.nvrtc_version()
    made = []
    to_cubin = nvrtc.to_cubin

    def noted(*args: object) -> bytes:
        made.append(to_cubin(*args))
        return made[-1]

    monkeypatch.setattr(cupy.cuda.runtime, "driverGetVersion", lambda: version[0] * 1000 - 10)
    monkeypatch.setattr(nvrtc, "to_cubin", noted)
    assert live.is_exact(live.round_trip())
    assert made[0][:4] == b"\x7fELF"


NUMBERS = """
struct Pair { int a; double b; };
struct Odd { unsigned char bytes[3]; };
extern "C" __global__
void numbers(double* out, Pair pair, float f, short s, unsigned char u, Odd odd)
{
    out[0] = pair.a; out[1] = pair.b; out[2] = f; out[3] = s; out[4] = u; out[5] = odd.bytes[2];
}
"""


def test_numbers_and_structs_pass_by_value():
    out = np.zeros(6)
    pair = np.zeros(1, np.dtype([("a", "<i4"), ("b", "<f8")], align=True))
    pair["a"], pair["b"] = -7, 2.5
    args = [out, pair[0], 0.5, np.int16(-3), 200, b"\1\2\3"]
    gpu.launch(nvrtc.to_ptx(NUMBERS), "numbers", 1, 1, args)
    assert out.tolist() == [-7.0, 2.5, 0.5, -3.0, 200.0, 3.0]


def test_views_of_one_array_are_one_memory_on_the_device():
    source = """extern "C" __global__ void move(int* to, const int* from) { *to = *from; }"""
    array = np.arange(10, dtype=np.int32)
    gpu.launch(nvrtc.to_ptx(source), "move", 1, 1, [array[8:], array[2:]])
    assert array.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 2, 9]


SHARED = """
extern __shared__ unsigned char room[];
extern "C" __global__ void far_end(int* out, int last) { room[last] = 7; *out = room[last]; }
"""


def test_dynamic_shared_memory_beyond_48_kib_needs_the_opt_in():
    ptx, out = nvrtc.to_ptx(SHARED), np.zeros(1, np.int32)
    nbytes = 200 * 1024
    gpu.launch(ptx, None, 1, 1, [out, nbytes - 1], shared_bytes=nbytes)
    assert out.tolist() == [7]
    with pytest.raises(LaunchError, match="204800 bytes of dynamic shared memory"):
        gpu.launch(ptx, None, 1, 1, [out, 0], shared_bytes=nbytes, opt_in=False)
    with pytest.raises(LaunchError, match="227 KiB a block"):
        gpu.launch(ptx, None, 1, 1, [out, 0], shared_bytes=400 * 1024)


CLUSTER = """
extern "C" __global__ void ranks(unsigned* out)
{
    unsigned rank, size;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    out[blockIdx.x] = 100 * size + rank;
}
"""


def test_a_cluster_is_asked_for_at_launch():
    out = np.zeros(8, np.uint32)
    gpu.launch(nvrtc.to_ptx(CLUSTER), None, 8, 32, [out], cluster=4)
    assert out.tolist() == [400, 401, 402, 403] * 2


ACQUIRE = 'asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(tileMap));'


def test_a_map_may_lie_in_device_memory_behind_a_pointer():
    kernel = harness.kernel_source(
        replace={
            "const __grid_constant__ CUtensorMap tileMap": "const CUtensorMap* tileMap",
            "tile, &tileMap, start": "tile, tileMap, start",
            "const cuda::std::int32_t start": f"{ACQUIRE} const cuda::std::int32_t start",
        }
    )
    array, out = live.matrix(), np.zeros((live.HEIGHT, live.WIDTH), np.float32)
    args = [live.tile_map(array), out]
    gpu.launch(live.compiled(kernel), kernel.kernel, live.GRID, live.BLOCK, args)
    assert live.is_exact(out)


def test_cupy_arrays_are_used_where_they_are():
    import cupy

    array, out = cupy.asarray(live.matrix()), cupy.zeros((live.HEIGHT, live.WIDTH), cupy.float32)
    tmap = TensorMap.from_array(array, (live.TILE_WIDTH, live.TILE_HEIGHT))
    kernel = harness.kernel_source()
    gpu.launch(live.compiled(kernel), None, live.GRID, live.BLOCK, [tmap, out])
    assert live.is_exact(out.get())


def test_the_drivers_verdict_on_a_map_can_be_had():
    right = live.tile_map(live.matrix())
    assert gpu.driver_accepts(right)
    assert not gpu.driver_accepts(TensorMap.from_array(live.matrix(), (257, 1)))
    assert not gpu.driver_accepts(TensorMap.from_array(live.matrix()[:, 1:], (64, 64)))
