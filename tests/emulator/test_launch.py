"""What a launch accepts, what it refuses and in which words, and what it gives back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lesson import emulator
from lesson.emulator import Limits
from lesson.errors import LaunchError, LessonError, LimitExceeded, TensorMapError
from lesson.tensor_map import TensorMap
from tests.emulator.ptx_text import HEAD, PUT, module, run

EMPTY = f"{HEAD}.visible .entry k() {{ ret; }}"
OUT = np.zeros(32, np.uint32)


def params(kinds: str) -> str:
    declared = ", ".join(f".param {kind} p{n}" for n, kind in enumerate(kinds.split()))
    return f"{HEAD}.visible .entry k({declared}) {{ ret; }}"


SHAPES: list[tuple[dict[str, Any], str]] = [
    ({"grid": 0}, "grid.x must be 1 to 2147483647, got 0."),
    ({"grid": (1, 70000)}, "grid.y must be 1 to 65535, got 70000."),
    ({"grid": (1, 1, 1, 1)}, "grid must be one to three whole numbers, got (1, 1, 1, 1)."),
    ({"grid": 1.5}, "grid must be one to three whole numbers, got 1.5."),
    ({"block": 1025}, "block.x must be 1 to 1024, got 1025."),
    ({"block": (64, 32)}, "a block must have at most 1024 threads, got 2048"),
    ({"block": (1, 1, 65)}, "block.z must be 1 to 64, got 65."),
    ({"shared_bytes": -1}, "shared_bytes must be a whole number of bytes, got -1."),
    ({"shared_bytes": 232449}, "shared memory of a block must be at most 232448 bytes, got 232449"),
    ({"cluster": 2, "grid": 3}, "grid.x must be a multiple of the cluster's 2 blocks, got 3."),
    ({"cluster": 32, "grid": 32}, "cluster.x must be 1 to 16, got 32."),
    ({"schedule": "soon"}, "schedule must be one of eager, late, random, got 'soon'."),
    ({"batch_blocks": 0}, "batch_blocks must be a whole number from 1, got 0."),
    ({"kernel": "f"}, "the kernel must be an entry of the module, got 'f'. Entries: k."),
    ({"args": [OUT]}, "a launch must pass 0 arguments (none), got 1."),
]


@pytest.mark.parametrize("change,words", SHAPES, ids=[words[:40] for _, words in SHAPES])
def test_a_launch_that_the_chip_refuses_is_refused(change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"kernel": "k", "grid": 1, "block": 32, "args": [], **change}
    with pytest.raises(LaunchError) as caught:
        emulator.launch(EMPTY, **given)
    assert words in str(caught.value)


def test_what_the_kernel_demands_of_its_block_holds() -> None:
    text = f"{HEAD}.entry k() .reqntid 64 {{ ret; }}"
    with pytest.raises(LaunchError, match=r"as \.reqntid of k says, got \(32, 1, 1\)"):
        emulator.launch(text, "k", 1, 32, [])
    text = f"{HEAD}.entry k() .maxntid 64 {{ ret; }}"
    with pytest.raises(LaunchError, match=r"at most 64 threads, as __launch_bounds__ of k says"):
        emulator.launch(text, "k", 1, 65, [])
    text = f"{HEAD}.entry k() .explicitcluster .reqnctapercluster 2 {{ ret; }}"
    with pytest.raises(LaunchError, match=r"the cluster must be \(2, 1, 1\)"):
        emulator.launch(text, "k", 4, 32, [], cluster=4)


def test_a_module_of_two_kernels_wants_a_name() -> None:
    text = f"{HEAD}.entry a() {{ ret; }} .entry b() {{ ret; }}"
    with pytest.raises(LaunchError, match="must be named unless there is just one, got 2: a, b"):
        emulator.launch(text, None, 1, 1, [])
    assert emulator.launch(EMPTY, None, 1, 1, []).lanes == 1


BAD_ARGUMENTS = [
    (".u64", np.float32(1), "argument 0 (p0) must be 8 bytes (.u64), got 4 bytes from a float32"),
    (".u32", OUT, "argument 0 (p0) must be 4 bytes (.u32), got 8 bytes from a ndarray"),
    (".u32", 2**33, "argument 0 (p0) must fit in 4 bytes, got 8589934592."),
    (".u32", "x", "argument 0 (p0) must be an array, a tensor map, a number or bytes, got str"),
    (".u32", 1 << 20000, "argument 0 (p0) must fit in 4 bytes, got an integer of 20001 bits."),
]


@pytest.mark.parametrize(
    "kind,value,words", BAD_ARGUMENTS, ids=["float", "array", "wide", "text", "huge"]
)
def test_an_argument_that_does_not_fit_is_named(kind: str, value: Any, words: str) -> None:
    with pytest.raises(LessonError) as caught:
        emulator.launch(params(kind), "k", 1, 1, [value])
    assert words in str(caught.value)


GOOD_ARGUMENTS = [
    (".u32", 7, 7),
    (".s32", -1, 2**32 - 1),
    (".u32", np.int32(-2), 2**32 - 2),
    (".f32", 1.5, 0x3FC00000),
    (".f32", 2, 0x40000000),
    (".b32", True, 1),
    (".b32", (5).to_bytes(4, "little"), 5),
]


@pytest.mark.parametrize("kind,value,word", GOOD_ARGUMENTS)
def test_numbers_become_the_bits_of_the_parameter(kind: str, value: Any, word: int) -> None:
    body = f"ld.param.b32 %r1, [n]; {PUT.format('%r1')}"
    assert run(body, value, params=f", .param {kind} n")[0] == word


def test_parameters_lie_at_their_alignment() -> None:
    body = f"ld.param.b64 %rd1, [b]; cvt.u32.u64 %r1, %rd1; {PUT.format('%r1')}"
    got = run(body, np.uint8(1), np.uint64(42), params=", .param .u8 a, .param .u64 b")
    assert got[0] == 42


def test_views_of_one_array_share_its_memory() -> None:
    both = np.zeros(64, np.uint32)
    body = "ld.param.u64 %rd1, [b]; sub.u64 %rd2, %rd1, %out; cvt.u32.u64 %r1, %rd2;"
    text = module(body + PUT.format("%r1"), params=", .param .u64 b")
    emulator.launch(text, "k", 1, 32, [both[:32], both[32:]])
    assert both.tolist() == [128] * 32 + [0] * 32


def test_an_array_in_fortran_order_keeps_its_bytes_in_place() -> None:
    out = np.zeros((2, 16), np.uint32, order="F")
    emulator.launch(module(PUT.format("%t")), "k", 1, 32, [out])
    assert np.array_equal(out.T.reshape(-1), np.arange(32))


def test_a_read_only_array_may_be_read_but_not_written() -> None:
    out = np.zeros(32, np.uint32)
    out.flags.writeable = False
    emulator.launch(module("ld.global.u32 %r1, [%out];"), "k", 1, 32, [out])
    with pytest.raises(LaunchError, match="must be writeable, got a read-only array"):
        emulator.launch(module(PUT.format("1")), "k", 1, 32, [out])


def test_a_kernel_that_fails_leaves_the_arrays_as_they_were() -> None:
    out = np.zeros(32, np.uint32)
    with pytest.raises(LessonError):
        emulator.launch(module(PUT.format("1") + "trap;"), "k", 1, 32, [out])
    assert not out.any()


def test_a_map_that_the_driver_refuses_is_refused() -> None:
    tensor = TensorMap.from_array(np.zeros((8, 8), np.float32), (3, 8))
    with pytest.raises(TensorMapError, match="box"):
        emulator.launch(f"{HEAD}.entry k(.param .b8 m[128]) {{ ret; }}", "k", 1, 1, [tensor])


def test_memory_beyond_the_limit_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="memory of a launch must stay within 1000 bytes"):
        run("", limits=Limits(memory_bytes=1000))


def test_every_launch_starts_from_the_initial_values() -> None:
    head = ".global .u32 count = 5;"
    body = f"atom.global.add.u32 %r1, [count], 1; {PUT.format('%r1')}"
    assert [int(run(body, head=head, threads=1)[0]) for _ in range(2)] == [5, 5]


def test_a_symbol_is_set_before_the_launch() -> None:
    head = ".const .u32 tab[2] = {1, 2};"
    body = f"ld.const.u32 %r1, [tab+4]; {PUT.format('%r1')}"
    assert run(body, head=head, symbols={"tab": np.array([8, 9], np.uint32)})[0] == 9
    with pytest.raises(LaunchError, match="must be a variable of the module, got 'nothing'"):
        run(body, head=head, symbols={"nothing": b""})


def test_the_result_counts_threads_and_instructions() -> None:
    result = emulator.launch(module(""), "k", (2, 3), 33, [OUT.copy()])
    assert result.lanes == 2 * 3 * 33
    assert result.steps == 4  # the three of the head, and ret
    assert result.batches == 1
    assert result.copies == 0


def test_coordinates_run_x_first_in_blocks_and_threads() -> None:
    body = """
        mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.x;
        mad.lo.u32 %r5, %r2, 4, %r1; mad.lo.u32 %r5, %r5, 4, %t; mad.lo.u32 %r6, %r3, 3, %r4;
        mad.lo.u32 %t, %r6, 32, %r5;
    """
    got = run(body + PUT.format("%t"), threads=(4, 4, 2), grid=(3, 2), words=192)
    assert np.array_equal(got, np.arange(192))


def test_a_cluster_numbers_its_blocks_and_reaches_their_memory() -> None:
    head = ".shared .u32 cell;"
    body = """
        mov.u32 %r1, %cluster_ctarank; mov.u32 %r9, %ctaid.x; mul.lo.u32 %r2, %r9, 10;
        st.shared.u32 [cell], %r2; barrier.cluster.arrive; barrier.cluster.wait;
        xor.b32 %r3, %r1, 1; mov.u32 %r4, cell; mapa.shared::cluster.u32 %r5, %r4, %r3;
        ld.shared::cluster.u32 %r6, [%r5]; getctarank.shared::cluster.u32 %r7, %r5;
        mad.lo.u32 %r6, %r7, 1000, %r6; barrier.cluster.arrive; barrier.cluster.wait;
        mad.lo.u32 %t, %r9, 32, %t;
    """
    got = run(body + PUT.format("%r6"), head=head, grid=4, cluster=2, words=128)
    assert got.reshape(4, 32)[:, 0].tolist() == [1010, 0, 1030, 20]


def test_a_block_cannot_reach_a_peer_without_asking_for_the_cluster() -> None:
    body = "mov.u32 %r4, cell; mapa.shared::cluster.u32 %r5, %r4, 1; ld.shared.u32 %r6, [%r5];"
    with pytest.raises(LessonError, match=r"block \(0, 0, 0\)"):
        run(body, head=".shared .u32 cell;", grid=2, cluster=2)


def test_dynamic_shared_memory_lies_behind_the_static() -> None:
    head = ".shared .u32 first[3]; .extern .shared .align 16 .b8 more[];"
    body = (
        "mov.u32 %r1, more; mov.u32 %r2, first; sub.u32 %r1, %r1, %r2; "
        f"st.shared.u32 [more+96], 1; {PUT.format('%r1')}"
    )
    assert run(body, head=head, shared_bytes=100)[0] == 16
    with pytest.raises(LessonError, match="inside the 112 bytes of its block"):
        run(body, head=head, shared_bytes=96)


def test_a_grid_without_end_is_stopped_though_each_block_is_short() -> None:
    limits = Limits(steps=20)
    with pytest.raises(LimitExceeded, match="steps must stay within 20 instructions"):
        emulator.launch(EMPTY, "k", 2**31 - 1, 32, [], limits=limits, batch_blocks=1)


@pytest.mark.parametrize(
    "options,words",
    [
        ({"args": 5}, "the arguments must be a list, got int."),
        ({"symbols": 5}, "symbols must be a dictionary from name to contents, got int."),
        ({"seed": -1}, "seed must be a whole number from 0, got -1."),
        ({"seed": "x"}, "seed must be a whole number from 0, got 'x'."),
        ({"schedule": None}, "schedule must be one of eager, late, random, got None."),
    ],
)
def test_options_of_other_types_are_refused(options: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"args": [], **options}
    with pytest.raises(LaunchError) as caught:
        emulator.launch(EMPTY, "k", 1, 32, **given)
    assert words in str(caught.value)


def test_an_array_of_python_objects_is_refused() -> None:
    with pytest.raises(LaunchError, match=r"an array must hold numbers, got Python objects"):
        emulator.launch(params(".u64"), "k", 1, 32, [np.array([None])])
