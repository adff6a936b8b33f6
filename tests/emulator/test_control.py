"""Branches, calls and exits: each lane goes its own way and comes back."""

from __future__ import annotations

import numpy as np
import pytest

from lesson.emulator import Limits
from lesson.errors import (
    DeviceFault,
    Hang,
    LaunchFailure,
    LimitExceeded,
    PtxSyntaxError,
    UnsupportedPtx,
)
from tests.emulator.ptx_text import PUT, run

T = np.arange(32)
FEW = Limits(steps=5000)
FACTORIAL = """
.func (.param .b32 rv) fact(.param .b32 n) {
    .reg .b32 %r<4>; .reg .pred %p; ld.param.b32 %r0, [n]; setp.le.u32 %p, %r0, 1; mov.u32 %r1, 1;
    @%p bra DONE; sub.u32 %r2, %r0, 1;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), fact, (a);
    ld.param.b32 %r1, [b]; }
    mul.lo.u32 %r1, %r1, %r0; DONE: st.param.b32 [rv], %r1; ret;
}
"""
TWO = """
.func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, %x;
    st.param.b32 [r], %x; ret; }
.func (.param .b32 r) square(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a];
mul.lo.u32 %x, %x, %x;
    st.param.b32 [r], %x; ret; }
"""
INDIRECT = """
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %t;
      P: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (b), %rd1, (a), P; ld.param.b32 %r1, [b]; }
"""


def test_both_sides_of_a_branch_meet_again() -> None:
    body = """
        and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN; mul.lo.u32 %r2, %t, 3; bra JOIN;
        EVEN: add.u32 %r2, %t, 1000; JOIN: activemask.b32 %r3; setp.eq.u32 %p2, %r3, -1;
        @%p2 add.u32 %r2, %r2, 100000;
    """
    want = np.where(T % 2 == 0, T + 1000, T * 3) + 100000
    assert np.array_equal(run(body + PUT.format("%r2")), want)


def test_each_lane_has_its_own_trip_count() -> None:
    body = """
        mov.u32 %r1, 0; mov.u32 %r2, %t; L: setp.eq.u32 %p1, %r2, 0; @%p1 bra OUT;
        add.u32 %r1, %r1, %r2; sub.u32 %r2, %r2, 1; bra L; OUT:
    """
    assert np.array_equal(run(body + PUT.format("%r1")), T * (T + 1) // 2)


def test_a_guard_that_all_lanes_share_is_decided_once() -> None:
    body = (
        "mov.u32 %r1, 4; setp.eq.u32 %p1, %r1, 4; @!%p1 bra BAD; mov.u32 %r2, 9; bra OUT; "
        "BAD: mov.u32 %r2, 1; OUT:"
    )
    assert (run(body + PUT.format("%r2")) == 9).all()


def test_a_table_of_branches_picks_by_index() -> None:
    body = """
        and.b32 %r1, %t, 3; TS: .branchtargets A, B, C, A; brx.idx %r1, TS;
        A: mov.u32 %r2, 10; bra J; B: mov.u32 %r2, 20; bra J; C: mov.u32 %r2, 30; J:
    """
    assert np.array_equal(run(body + PUT.format("%r2")), np.array([10, 20, 30, 10] * 8))


def test_an_index_beyond_the_table_is_a_fault() -> None:
    body = "TS: .branchtargets A, B; brx.idx %t, TS; A: B:"
    with pytest.raises(LaunchFailure, match=r"the index of brx\.idx must be below 2"):
        run(body)


def test_recursion_has_its_own_registers_a_level() -> None:
    body = """
        rem.u32 %r1, %t, 10; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
        call.uni (b), fact, (a); ld.param.b32 %r2, [b]; }
    """
    want = [[1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880][t % 10] for t in range(32)]
    assert run(body + PUT.format("%r2"), head=FACTORIAL).tolist() == want


def test_a_recursion_without_end_is_stopped() -> None:
    head = ".func f() { call f; ret; }"
    with pytest.raises(LimitExceeded, match="calls must nest at most 4096 deep"):
        run("call f;", head=head)


def test_each_lane_calls_what_its_pointer_names() -> None:
    body = """
        mov.u64 %rd2, twice; mov.u64 %rd3, square; setp.lt.u32 %p1, %t, 8;
        selp.b64 %rd1, %rd2, %rd3, %p1;
    """
    got = run(body + INDIRECT + PUT.format("%r1"), head=TWO)
    assert np.array_equal(got, np.where(T < 8, 2 * T, T * T))


def test_a_table_of_functions_in_memory_works() -> None:
    head = TWO + ".global .u64 table[2] = {twice, square};"
    body = (
        "and.b32 %r1, %t, 1; mov.u64 %rd2, table; mad.wide.u32 %rd2, %r1, 8, %rd2; "
        "ld.global.u64 %rd1, [%rd2];"
    )
    got = run(body + INDIRECT + PUT.format("%r1"), head=head)
    assert np.array_equal(got, np.where(T % 2 == 0, 2 * T, T * T))


def test_a_pointer_to_no_function_is_a_fault() -> None:
    with pytest.raises(
        LaunchFailure, match="a function pointer must hold the address of a function"
    ):
        run("mov.u64 %rd1, 64;" + INDIRECT)


def test_parameters_may_be_registers() -> None:
    head = ".func (.reg .u32 %r) add1(.reg .u32 %a) { add.u32 %r, %a, 1; ret; }"
    body = (
        f"setp.gt.u32 %p1, %t, 3; mov.u32 %r1, 0; @%p1 call (%r1), add1, (%t); {PUT.format('%r1')}"
    )
    assert np.array_equal(run(body, head=head), np.where(T > 3, T + 1, 0))


def test_a_call_of_a_function_without_a_body_is_refused_when_it_happens() -> None:
    head = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);"
    call = "{ .param .b32 r; .param .b64 f; .param .b64 a; call (r), vprintf, (f, a); }"
    assert run("setp.ne.u32 %p1, 0, 0; @!%p1 bra OUT;" + call + "OUT:", head=head)[0] == 2**32 - 1
    with pytest.raises(UnsupportedPtx, match="vprintf, which has none"):
        run(call, head=head)


def test_a_failed_assert_is_the_fault_that_cuda_reports() -> None:
    head = ".extern .func __assertfail();"
    with pytest.raises(DeviceFault, match="the condition of an assert must hold") as caught:
        run("call __assertfail;", head=head)
    assert caught.value.cuda_error == "CUDA_ERROR_ASSERT"


def test_the_number_of_arguments_is_checked() -> None:
    with pytest.raises(PtxSyntaxError, match="as many arguments as the function, got 0 for 1"):
        run("{ .param .b32 b; call (b), fact, (); }", head=FACTORIAL)


def test_exit_ends_the_thread_inside_a_call() -> None:
    head = (
        ".func f() { .reg .pred %p; .reg .b32 %t; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 4; "
        "@%p exit; ret; }"
    )
    got = run("call f;" + PUT.format("%t"), head=head)
    assert got.tolist() == [2**32 - 1] * 4 + list(range(4, 32))


def test_trap_is_a_launch_failure_of_its_thread() -> None:
    with pytest.raises(LaunchFailure, match=r"must not reach trap.*thread \(7, 0, 0\)"):
        run("setp.eq.u32 %p1, %t, 7; @%p1 trap;")


def test_what_is_not_modelled_is_refused_only_when_a_thread_gets_there() -> None:
    text = "wgmma.fence.sync.aligned;"
    assert run(f"bra OUT; {text} OUT:")[0] == 2**32 - 1
    with pytest.raises(UnsupportedPtx, match=r"got wgmma\.fence\.sync\.aligned\. PTX line \d+"):
        run(text)


def test_an_undeclared_label_is_a_syntax_error() -> None:
    with pytest.raises(
        PtxSyntaxError, match="a branch target must be a label of the function, got 'L'"
    ):
        run("bra L;")


SPECIAL = [
    ("%ntid.x", 64),
    ("%nctaid.x", 1),
    ("%tid.y", 0),
    ("%nwarpid", 2),
    ("%cluster_nctarank", 1),
    ("%total_smem_size", 128),
]


@pytest.mark.parametrize("name,want", SPECIAL)
def test_special_registers_are_those_of_the_launch(name: str, want: int) -> None:
    head = ".shared .b8 cell[128];"
    body = f"mov.u32 %r9, cell; mov.u32 %r1, {name};"
    assert run(body + PUT.format("%r1"), head=head, threads=64)[5] == want


@pytest.mark.parametrize(
    "name,want",
    [("%laneid", T), ("%lanemask_lt", (1 << T) - 1), ("%lanemask_ge", 2**32 - (1 << T))],
)
def test_special_registers_are_those_of_the_lane(name: str, want: np.ndarray) -> None:
    assert np.array_equal(run(f"mov.u32 %r1, {name};" + PUT.format("%r1")), want)


def test_words_are_packed_and_unpacked() -> None:
    body = """
        mov.u32 %r1, 0x12345678; mov.b32 {%h1, %h2}, %r1; mov.b32 %r2, {%h2, %h1};
        mov.b64 %rd1, {%r2, %r1}; mov.b64 {%r3, _}, %rd1; mov.b64 {_, %r4}, %rd1;
        sub.u32 %r5, %r4, %r3;
    """
    assert run(body + PUT.format("%r2"))[0] == 0x56781234
    assert run(body + PUT.format("%r5"))[0] == (0x12345678 - 0x56781234) % 2**32


def test_a_loop_of_branch_tables_ends_in_a_verdict() -> None:
    loop = "A: and.b32 %r1, %t, 1; TS: .branchtargets A, B; B: brx.idx %r1, TS;"
    with pytest.raises(Hang, match="every thread must be able to finish"):
        run(loop)
    with pytest.raises(LimitExceeded, match="steps must stay within 5000 instructions"):
        run("mov.u32 %r2, 0;" + loop.replace("brx", "add.u32 %r2, %r2, 1; brx"), limits=FEW)


def test_lanes_that_spin_in_a_branch_table_let_the_others_run() -> None:
    body = """
        .shared .b32 flag; TS: .branchtargets A, B, DONE;
        setp.eq.u32 %p1, %t, 31; @%p1 bra SET;
        A: B: and.b32 %r1, %t, 1; ld.volatile.shared.b32 %r2, [flag];
        setp.eq.u32 %p2, %r2, 7; selp.b32 %r1, 2, %r1, %p2; brx.idx %r1, TS;
        SET: mov.u32 %r2, 7; st.volatile.shared.b32 [flag], %r2;
        DONE:
    """
    assert run(body + PUT.format("%r2")).tolist() == [7] * 32
