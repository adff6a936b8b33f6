"""Loads and stores reach the right bytes of the right state space, or fault where the chip does."""

from __future__ import annotations

import numpy as np
import pytest

from lesson.emulator.lanes import UNDEFINED, mask_of, merged, scattered
from lesson.errors import DeviceFault, IllegalAddress, LimitExceeded, MisalignedAddress
from tests.emulator.ptx_text import PUT, run

THREADS = np.arange(32, dtype=np.uint32)
SHARED = ".shared .align 16 .b8 cell[128];"
LOCAL = ".local .align 16 .b8 own[64];"


def test_a_store_of_few_lanes_leaves_the_others_alone() -> None:
    got = run(f"setp.lt.u32 %p1, %t, 3; @%p1 bra L; ret; L: {PUT.format('%t')}")
    assert got.tolist() == [0, 1, 2] + [0xFFFFFFFF] * 29


def test_the_last_lane_wins_a_word_that_all_store() -> None:
    assert run("st.global.u32 [%out], %t;")[0] == 31


@pytest.mark.parametrize("first,want", [(-1, 0xFFFFFFFF), (-128, 0xFFFFFF80)])
def test_a_signed_byte_fills_its_register_with_the_sign(first: int, want: int) -> None:
    data = np.array([first], np.int8)
    got = run(
        f"ld.param.u64 %rd1, [a]; ld.global.s8 %r1, [%rd1]; {PUT.format('%r1')}",
        data,
        params=", .param .u64 a",
    )
    assert got[0] == want


def test_a_vector_is_one_access_of_its_whole_size() -> None:
    body = (
        "ld.param.u64 %rd1, [a]; add.u64 %rd1, %rd1, 8; ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];"
    )
    with pytest.raises(MisalignedAddress, match="must be a multiple of 16 bytes"):
        run(body, np.zeros(8, np.uint32), params=", .param .u64 a")


def test_shared_memory_starts_poisoned() -> None:
    got = run(f"ld.shared.u32 %r1, [cell]; {PUT.format('%r1')}", head=SHARED)
    assert (got == 0xA5A5A5A5).all()


def test_each_block_has_its_own_shared_memory() -> None:
    body = """
        mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [cell], %r1; bar.sync 0;
        ld.shared.u32 %r2, [cell]; mad.lo.u32 %t, %r1, 32, %t;
    """
    got = run(body + PUT.format("%r2"), head=SHARED, grid=3, words=96)
    assert got.tolist() == [0] * 32 + [1] * 32 + [2] * 32


def test_each_lane_has_its_own_local_memory() -> None:
    body = f"st.local.u32 [own+4], %t; ld.local.u32 %r1, [own+4]; {PUT.format('%r1')}"
    assert np.array_equal(run(LOCAL + body), THREADS)


GENERIC = [
    ("shared", "mov.u64 %rd1, cell; cvta.shared.u64 %rd1, %rd1;", SHARED),
    ("local", "mov.u64 %rd1, own; cvta.local.u64 %rd1, %rd1;", ""),
    ("global", "mov.u64 %rd1, glob; cvta.global.u64 %rd1, %rd1;", ".global .u32 glob[4];"),
]


@pytest.mark.parametrize("space,address,head", GENERIC, ids=[row[0] for row in GENERIC])
def test_generic_addresses_reach_their_space(space: str, address: str, head: str) -> None:
    tests = "".join(
        f"isspacep.{each} %p1, %rd1; selp.u32 %r{k}, 1, 0, %p1;"
        for k, each in enumerate(("shared", "local", "global"))
    )
    body = (
        (LOCAL if space == "local" else "")
        + address
        + tests
        + "st.u32 [%rd1], 77; ld.u32 %r5, [%rd1];"
    )
    for register, want in (("%r5", 77), ("%r0", space == "shared"), ("%r2", space == "global")):
        assert run(body + PUT.format(register), head=head)[0] == want


def test_lanes_of_one_load_may_mean_different_spaces() -> None:
    body = """
        mov.u64 %rd1, cell; st.shared.u32 [%rd1], 5; cvta.shared.u64 %rd1, %rd1; mov.u64 %rd2, own;
        st.local.u32 [%rd2], 6; cvta.local.u64 %rd2, %rd2; setp.lt.u32 %p1, %t, 16;
        selp.b64 %rd3, %rd1, %rd2, %p1; ld.u32 %r1, [%rd3];
    """
    got = run(LOCAL + body + PUT.format("%r1"), head=SHARED)
    assert got.tolist() == [5] * 16 + [6] * 16


def test_initialised_variables_hold_their_values() -> None:
    head = ".const .b32 tab[4] = {10, 20, 30, 40}; .global .u16 half[2] = {7, 9};"
    body = (
        "ld.const.u32 %r1, [tab+8]; ld.global.u16 %r2, [half+2]; add.u32 %r1, %r1, %r2; "
        f"{PUT.format('%r1')}"
    )
    assert run(body, head=head)[0] == 39


def test_a_variable_may_hold_the_address_of_another() -> None:
    head = ".global .u32 x = 11; .global .u64 p = x; .global .u64 q = generic(x);"
    body = f"ld.global.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; {PUT.format('%r1')}"
    assert run(body, head=head)[0] == 11


def test_a_struct_by_value_is_read_by_name_and_by_address() -> None:
    body = f"""
        ld.param.u32 %r1, [s+4]; mov.b64 %rd1, s; ld.param.u32 %r2, [%rd1+8];
        cvta.param.u64 %rd2, %rd1; ld.u32 %r3, [%rd2]; mad.lo.u32 %r1, %r1, %r2, %r3;
        {PUT.format("%r1")}
    """
    struct = np.array([3, 5, 7], np.uint32).tobytes()
    assert run(body, struct, params=", .param .align 4 .b8 s[12]")[0] == 38


FAULTS = [
    ("st.global.u32 [%out+128], %t;", IllegalAddress, "0 bytes past the end of argument 0 (out)"),
    ("st.global.u32 [%out+-4], %t;", IllegalAddress, "a writable allocation"),
    ("mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1];", IllegalAddress, "no allocation is near"),
    ("ld.global.u32 %r1, [%out+2];", MisalignedAddress, "must be a multiple of 4 bytes"),
    ("ld.shared.u32 %r1, [cell+128];", IllegalAddress, "inside the 128 bytes of its block"),
    ("mov.u32 %r1, 0; ld.shared.u32 %r1, [%r1];", IllegalAddress, "got 0x0"),
    ("ld.shared.u32 %r1, [cell+1];", MisalignedAddress, "must be a multiple of 4 bytes"),
    ("mov.u64 %rd1, tab; st.global.u32 [%rd1], 1;", IllegalAddress, "a writable allocation"),
    ("ld.local.u32 %r1, [own+64];", IllegalAddress, "inside the thread's 64 bytes"),
]


@pytest.mark.parametrize("text,kind,words", FAULTS, ids=[row[0] for row in FAULTS])
def test_an_access_that_the_chip_refuses_is_a_fault(
    text: str, kind: type[DeviceFault], words: str
) -> None:
    with pytest.raises(kind) as caught:
        run(LOCAL + "ld.shared.u32 %r9, [cell];" + text, head=SHARED + ".const .u32 tab = 1;")
    assert words in str(caught.value)
    assert "block (0, 0, 0), thread (0, 0, 0)" in str(caught.value)


def test_a_fault_names_the_first_thread_that_does_it() -> None:
    body = "mad.wide.u32 %rd1, %t, 8, %out; setp.ge.u32 %p1, %t, 5; @%p1 st.global.u32 [%rd1], 0;"
    with pytest.raises(IllegalAddress, match=r"thread \(16, 0, 0\)"):
        run(body)


def test_a_guarded_access_of_no_lane_cannot_fault() -> None:
    assert (
        run("setp.ne.u32 %p1, 0, 0; mov.u64 %rd1, 1; @%p1 ld.global.u32 %r1, [%rd1];")[0]
        == 2**32 - 1
    )


def test_local_memory_beyond_the_bound_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="local memory of k"):
        run(".local .b8 huge[10000000]; st.local.u8 [huge], %h1;")


def test_merging_keeps_the_lanes_outside_the_mask() -> None:
    old, new = THREADS, THREADS + np.uint32(100)
    few, many = mask_of(np.array([1, 30]), 32), mask_of(np.arange(1, 32), 32)
    assert merged(old, new, few).tolist() == [0, 101, *range(2, 30), 130, 31]
    assert merged(old, new, many).tolist() == [0, *range(101, 132)]
    assert scattered(old, np.array([7, 8], np.uint32), few).tolist() == [0, 7, *range(2, 30), 8, 31]
    assert old.tolist() == list(range(32))


def test_a_register_that_was_never_written_takes_a_uniform_value_whole() -> None:
    one = np.array([5], np.uint32)
    assert merged(UNDEFINED[one.dtype], one, mask_of(np.array([3]), 32)) is one
