"""Every thread that can move does, and a launch that cannot end is a hang that says who waits."""

from __future__ import annotations

import numpy as np
import pytest

from lesson.emulator import Limits
from lesson.errors import Hang, LimitExceeded
from tests.emulator.ptx_text import PUT, run

BAR = ".shared .align 8 .b64 bar; .shared .u32 flag;"
INIT = (
    "setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; "
    "@%p1 st.shared.u32 [flag], 0; bar.sync 0;"
)
SPIN = "W: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p2, %r1, 0; @%p2 bra W;"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;"
QUICK = Limits(steps=200_000, seconds=20)


@pytest.mark.parametrize("writer", [5, 40])
def test_a_lane_that_spins_on_a_flag_lets_the_writer_run(writer: int) -> None:
    body = f"""
        {INIT} setp.eq.u32 %p3, %t, 7; @%p3 bra W; setp.eq.u32 %p4, %t, {writer}; @!%p4 bra OUT;
        st.shared.u32 [flag], 3; bra OUT; {SPIN} OUT:
    """
    assert run(body + PUT.format("%t"), head=BAR, threads=64).tolist() == list(range(64))


def test_a_lane_that_takes_a_lock_again_and_again_lets_the_others_in() -> None:
    body = """
        and.b32 %r1, %t, 31; setp.ne.u32 %p1, %r1, 0; @%p1 bra OUT;
        L: atom.global.cas.b32 %r2, [%out], -1, 7; setp.ne.u32 %p2, %r2, -1; @%p2 bra L;
        ld.global.u32 %r3, [%out+4]; add.u32 %r3, %r3, 1; st.global.u32 [%out+4], %r3;
        atom.global.exch.b32 %r2, [%out], -1; OUT:
    """
    assert run(body, threads=128)[1] == 3  # 2**32 - 1, and four more


@pytest.mark.parametrize("sleep", ["", "nanosleep.u32 100;"])
def test_a_spin_that_nothing_ends_is_a_hang_soon(sleep: str) -> None:
    with pytest.raises(Hang) as caught:
        run(f"{INIT} {SPIN.replace('W:', 'W: ' + sleep)}", head=BAR, limits=QUICK)
    (wait,) = caught.value.waits
    assert (wait.kind, wait.block, len(wait.lanes)) == ("spin", 0, 32)


def test_a_wait_that_nothing_ends_names_barrier_parity_and_lanes() -> None:
    body = f"{INIT} setp.lt.u32 %p3, %t, 30; @%p3 bra OUT; {WAIT} OUT:"
    with pytest.raises(Hang, match=r"got 2 that wait for ever \(mbarrier\)") as caught:
        run(body, head=BAR, limits=QUICK)
    (wait,) = caught.value.waits
    assert wait.kind == "mbarrier"
    assert wait.lanes == (30, 31)
    assert np.array_equal(wait.detail["index"], [0, 0])
    assert set(np.ravel(wait.detail["parity"])) == {0}


def test_a_bounded_wait_gives_up() -> None:
    body = f"""
        {INIT} mov.u32 %r1, 0; W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @%p2 bra OUT;
        add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 2000; @%p3 bra W; OUT: {PUT.format("%r1")}
    """
    assert (run(body, head=BAR) == 2000).all()


@pytest.mark.parametrize("clock", ["%globaltimer", "%clock64"])
def test_a_wait_with_a_deadline_gives_up(clock: str) -> None:
    body = f"""
        {INIT} mov.u64 %rd1, {clock}; W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
        @%p2 bra OUT;
        mov.u64 %rd2, {clock}; sub.u64 %rd3, %rd2, %rd1; setp.lt.u64 %p3, %rd3, 5000000000;
        @%p3 bra W;
        OUT: {PUT.format("%t")}
    """
    assert run(body, head=BAR, limits=QUICK).tolist() == list(range(32))


def test_a_wait_without_a_deadline_that_looks_at_the_clock_is_a_hang() -> None:
    body = (
        f"{INIT} W: mov.u64 %rd1, %clock64; "
        "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;"
    )
    with pytest.raises(Hang):
        run(body, head=BAR, limits=QUICK)


def test_a_wait_outlasts_a_long_computation() -> None:
    body = f"""
        {INIT} setp.ne.u32 %p3, %t, 0; @%p3 bra W; mov.u32 %r1, 0;
        L: add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 5000; @%p4 bra L;
        mbarrier.arrive.shared.b64 _, [bar]; bra OUT;
        W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; selp.u32 %t, %t, 999, %p2; OUT:
    """
    assert run(body + PUT.format("%t"), head=BAR).tolist() == list(range(32))


def test_a_barrier_that_one_thread_misses_is_a_hang() -> None:
    body = "setp.eq.u32 %p1, %t, 3; @%p1 bra L; bar.sync 1; bra OUT; L: bar.sync 2; OUT:"
    with pytest.raises(Hang) as caught:
        run(body, threads=64)
    found = {
        int(np.ravel(wait.detail["barrier"])[0]): len(wait.lanes) for wait in caught.value.waits
    }
    assert found == {1: 63, 2: 1}


def test_lanes_of_a_warp_wait_for_those_of_the_mask() -> None:
    body = """
        setp.lt.u32 %p1, %t, 16; mov.u32 %r1, 0; @!%p1 bra JOIN;
        L: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, %t; @%p2 bra L;
        JOIN: shfl.sync.idx.b32 %r2, %t, 3, 31, -1;
    """
    assert (run(body + PUT.format("%r2")) == 3).all()


def test_exited_lanes_are_not_waited_for() -> None:
    body = "setp.gt.u32 %p1, %t, 20; @%p1 bra W; exit; W: bar.warp.sync -1; bar.sync 0;"
    got = run(body + PUT.format("%t"), threads=64)
    assert got.tolist() == [2**32 - 1] * 21 + list(range(21, 64))


def test_a_step_limit_stops_what_changes_for_ever() -> None:
    with pytest.raises(LimitExceeded, match="steps must stay within 20000 instructions"):
        run("L: atom.global.add.u32 %r1, [%out], 1; bra L;", limits=Limits(steps=20_000))


def test_a_time_limit_stops_what_changes_for_ever() -> None:
    with pytest.raises(LimitExceeded, match=r"must end within 0\.2 seconds"):
        run("L: atom.global.add.u32 %r1, [%out], 1; bra L;", limits=Limits(seconds=0.2))


def test_a_barrier_of_the_whole_grid_works_beyond_one_batch() -> None:
    body = """
        setp.ne.u32 %p1, %t, 0; @%p1 bra JOIN; atom.global.add.u32 %r1, [%out], 1;
        W: ld.volatile.global.u32 %r2, [%out]; setp.ne.u32 %p2, %r2, 39; @%p2 bra W;
        JOIN: bar.sync 0; mov.u32 %r3, %ctaid.x; mad.wide.u32 %rd1, %r3, 4, %out;
        @!%p1 st.global.u32 [%rd1+4], %r3;
    """
    got = run(body, grid=40, words=41, batch_blocks=8, limits=QUICK)
    assert got.tolist() == [39, *range(40)]


def test_the_result_does_not_depend_on_the_batches() -> None:
    body = "mov.u32 %r1, %ctaid.x; mad.lo.u32 %t, %r1, 48, %t;" + PUT.format("%t")
    for batch in (1, 3, 7, 100):
        got = run(body, threads=48, grid=7, words=48 * 7, batch_blocks=batch)
        assert np.array_equal(got, np.arange(48 * 7))
