"""Threads that meet: warps, barriers, mbarriers and atomics in whole kernels."""

from __future__ import annotations

import numpy as np
import pytest

from lesson.emulator import launch
from lesson.errors import (
    Hang,
    IllegalInstruction,
    LaunchFailure,
    MisalignedAddress,
    PtxSyntaxError,
    UnsupportedPtx,
)

HEAD = """.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 po)
{
  .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %l<16>;
  .shared .align 16 .b8 cell[1024]; .shared .align 8 .b64 bar[4];
  ld.param.u64 %l0, [pa]; cvta.to.global.u64 %l0, %l0;
  ld.param.u64 %l1, [po]; cvta.to.global.u64 %l1, %l1;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
  mad.lo.u32 %r3, %r1, %r2, %r0; mad.wide.u32 %l2, %r3, 4, %l1; mov.u32 %r15, 0;
"""
TAIL = "  st.global.u32 [%l2], %r15; ret;\n}\n"


def run(body: str, block: int = 32, grid: int = 1, data: np.ndarray | None = None, **options):
    """What each thread leaves in %r15; `data` is what %l0 points to."""
    out = np.full(grid * block, 0xFFFFFFFF, np.uint32)
    given = np.zeros(4, np.uint32) if data is None else data
    launch(HEAD + body + TAIL, "k", grid, block, [given, out], **options)
    return out


# -------------------------------------------------------------------------------------- warps
def test_two_halves_of_a_warp_shuffle_among_themselves_in_two_branches() -> None:
    out = run("""
  setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW;
  shfl.sync.bfly.b32 %r15, %r0, 1, 31, 0xFFFF0000; bra OVER;
LOW: shfl.sync.idx.b32 %r15, %r0, 3, 31, 0x0000FFFF;
OVER:""")
    assert out.tolist() == [3] * 16 + [lane ^ 1 for lane in range(16, 32)]


def test_halves_with_masks_of_their_own_share_one_instruction() -> None:
    out = run("""
  setp.lt.u32 %p0, %r0, 16; selp.b32 %r4, 0x0000FFFF, 0xFFFF0000, %p0;
  redux.sync.add.u32 %r15, %r0, %r4;""")
    assert out.tolist() == [120] * 16 + [376] * 16


def test_lanes_wait_for_the_late_ones_of_their_mask() -> None:
    out = run(
        """
  mov.u32 %r4, 0; setp.eq.u32 %p0, %r0, 40; @!%p0 bra MEET;
LOOP: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 1000; @%p1 bra LOOP;
MEET: vote.sync.any.pred %p2, %p0, -1; selp.u32 %r15, 1, 0, %p2;""",
        block=64,
    )
    assert out.tolist() == [0] * 32 + [1] * 32


def test_threads_that_have_exited_are_not_waited_for() -> None:
    out = run("""
  setp.lt.u32 %p0, %r0, 20; @!%p0 exit;
  setp.lt.u32 %p1, %r0, 10; @%p1 bra SAY; nanosleep.u32 10;
SAY: vote.sync.ballot.b32 %r15, %p1, -1;""")
    assert out.tolist() == [0x3FF] * 20 + [0xFFFFFFFF] * 12


def test_a_lane_that_never_comes_hangs_the_others() -> None:
    with pytest.raises(Hang) as caught:
        run("""
  setp.eq.u32 %p0, %r0, 5; @%p0 bra AWAY; shfl.sync.idx.b32 %r15, %r0, 0, 31, -1; bra OVER;
AWAY: mbarrier.init.shared::cta.b64 [bar], 1;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;
OVER:""")
    assert {wait.kind for wait in caught.value.waits} == {"warp", "mbarrier"}


def test_a_warp_barrier_meets_its_like_in_another_branch() -> None:
    out = run("""
  mov.u32 %r4, cell; mad.lo.u32 %r5, %r0, 4, %r4; st.shared.u32 [%r5], 7;
  setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW;
  st.shared.u32 [%r5], %r0; bar.warp.sync -1; bra OVER;
LOW: bar.warp.sync -1; xor.b32 %r6, %r0, 31; mad.lo.u32 %r6, %r6, 4, %r4;
  ld.shared.u32 %r15, [%r6];
OVER:""")
    assert out.tolist() == [31 - lane for lane in range(16)] + [0] * 16


def test_one_lane_is_elected_in_each_warp() -> None:
    out = run("elect.sync _|%p0, -1; selp.u32 %r15, 1, 0, %p0;", block=96)
    assert np.flatnonzero(out).tolist() == [0, 32, 64]


def test_a_match_of_64_bit_values_looks_at_all_bits() -> None:
    out = run("""
  shr.u32 %r4, %r0, 4; mov.b64 %l3, {0, %r4}; match.any.sync.b64 %r15, %l3, -1;""")
    assert out.tolist() == [0xFFFF] * 16 + [0xFFFF0000] * 16


# ----------------------------------------------------------------------------- named barriers
def test_a_named_barrier_that_too_few_reach_hangs() -> None:
    with pytest.raises(Hang) as caught:
        run("setp.lt.u32 %p0, %r0, 32; @%p0 bar.sync 3, 96;", block=64)
    (wait,) = caught.value.waits
    assert (wait.kind, wait.lanes) == ("bar", tuple(range(32)))
    assert set(wait.detail["barrier"].tolist()) == {3}


def test_a_block_of_many_waits_alone() -> None:
    out = run(
        """
  mov.u32 %r4, cell; mad.lo.u32 %r5, %r0, 4, %r4; add.u32 %r6, %r1, %r0;
  setp.lt.u32 %p0, %r0, 32; @%p0 bra EARLY; nanosleep.u32 5; nanosleep.u32 5;
EARLY: st.shared.u32 [%r5], %r6; bar.sync 0; xor.b32 %r6, %r0, 63; mad.lo.u32 %r6, %r6, 4, %r4;
  ld.shared.u32 %r15, [%r6];""",
        block=64,
        grid=5,
    )
    assert out.tolist() == [block + 63 - lane for block in range(5) for lane in range(64)]


def test_the_result_of_a_reduction_reaches_warps_that_came_at_different_times() -> None:
    out = run(
        """
  setp.eq.u32 %p1, %r0, 70; setp.lt.u32 %p0, %r0, 64; @%p0 bra MEET; nanosleep.u32 5;
MEET: bar.red.popc.u32 %r15, 1, 96, !%p1;""",
        block=96,
    )
    assert out.tolist() == [95] * 96


def test_a_barrier_number_above_15_is_refused_where_it_is_written() -> None:
    with pytest.raises(PtxSyntaxError, match=r"must be 0 to 15, got 17\. PTX line \d+"):
        run("bar.sync 17;")


def test_of_a_barrier_number_in_a_register_four_bits_count() -> None:
    out = run(
        """
  setp.lt.u32 %p0, %r0, 32; selp.u32 %r4, 17, 1, %p0; @%p0 bra LOW;
  bar.arrive 1, 64; bra OVER;
LOW: bar.sync %r4, 64; mov.u32 %r15, 5;
OVER:""",
        block=64,
    )
    assert out.tolist() == [5] * 32 + [0] * 32


def test_a_thread_count_of_part_of_a_warp_is_an_illegal_instruction() -> None:
    with pytest.raises(IllegalInstruction, match=r"multiple of 32, got 33\. PTX line \d+ \(bar"):
        run("add.u32 %r4, %r2, 1; bar.sync 1, %r4;")


def test_half_of_a_warp_is_all_of_it_once_the_others_have_exited() -> None:
    out = run("setp.gt.u32 %p0, %r0, 15; @%p0 bra OVER; barrier.sync 1, 32; mov.u32 %r15, 1; OVER:")
    assert out.tolist() == [1] * 16 + [0] * 16


# ---------------------------------------------------------------------------------- mbarriers
INIT = "setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared::cta.b64 [bar], {}; bar.sync 0;"


def test_256_threads_pass_a_barrier_together_many_times() -> None:
    out = run(
        INIT.format(256)
        + """
LOOP: mbarrier.arrive.shared::cta.b64 %l3, [bar];
WAIT: mbarrier.try_wait.shared::cta.b64 %p1, [bar], %l3; @!%p1 bra WAIT;
  add.u32 %r15, %r15, 1; setp.lt.u32 %p1, %r15, 20; @%p1 bra LOOP;""",
        block=256,
        grid=3,
    )
    assert (out == 20).all()


def test_a_generic_address_names_the_same_barrier() -> None:
    out = run(
        INIT.format(32)
        + """
  mov.u64 %l4, bar; cvta.shared.u64 %l4, %l4; mbarrier.arrive.b64 %l3, [%l4];
  mbarrier.test_wait.b64 %p1, [%l4], %l3; selp.u32 %r15, 1, 0, %p1;"""
    )
    assert (out == 1).all()


def test_blocks_of_a_cluster_arrive_at_the_barrier_of_rank_0() -> None:
    body = """
  setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared::cta.b64 [bar], 64;
  barrier.cluster.arrive; barrier.cluster.wait;
  mov.u32 %r4, bar; mapa.shared::cluster.u32 %r4, %r4, 0;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
  mov.u32 %r5, %cluster_ctarank; setp.ne.u32 %p2, %r5, 0; @%p2 bra OVER;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;
OVER: barrier.cluster.arrive; barrier.cluster.wait;
  mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;
  selp.u32 %r15, 1, 0, %p1;"""
    out = run(body, grid=4, cluster=(2, 1, 1))
    assert out.reshape(4, 32)[:, 0].tolist() == [1, 0, 1, 0]
    assert (out.reshape(4, 32) == out.reshape(4, 32)[:, :1]).all()


TWO_TOO_MANY = (
    INIT.format(2) + "setp.eq.u32 %p1, %r3, 40; @%p1 mbarrier.arrive.shared.b64 {}, [bar], 4;"
)


@pytest.mark.parametrize(
    "token, then",
    [
        ("_", "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;"),
        ("_", "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;"),
        ("_", "setp.eq.u32 %p2, %r0, 0; @%p2 bra OVER; add.u32 %r15, %r15, 1; OVER:"),
        ("_", "@!%p1 bar.sync 1, 64;"),
        ("%l4", "cvt.u32.u64 %r15, %l4;"),
    ],
)
def test_too_many_arrivals_name_the_block_and_the_thread(token: str, then: str) -> None:
    with pytest.raises(LaunchFailure, match=r"2 pending, got 4\. PTX line \d+ .*block \(1, 0, 0\)"):
        run(TWO_TOO_MANY.format(token) + then, grid=2)


@pytest.mark.parametrize("token", ["_", "%l4"])
def test_a_fault_that_the_end_of_the_kernel_overtakes_is_not_seen(token: str) -> None:
    assert (run(TWO_TOO_MANY.format(token), grid=2) == 0).all()


def test_a_barrier_at_four_bytes_past_alignment_is_misaligned() -> None:
    with pytest.raises(MisalignedAddress, match="multiple of 8 bytes"):
        run("mov.u32 %r4, bar; mbarrier.init.shared.b64 [%r4+4], 1;")


def test_a_wait_that_nothing_ends_is_a_hang_that_knows_barrier_and_parity() -> None:
    with pytest.raises(Hang) as caught:
        run(
            INIT.format(33)
            + """
  mbarrier.arrive.shared::cta.b64 _, [bar];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0, 1000; @!%p1 bra WAIT;"""
        )
    (wait,) = caught.value.waits
    assert wait.kind == "mbarrier"
    assert wait.detail["parity"].tolist() == [0] * 32
    assert set(wait.detail["index"].tolist()) == {0}


def test_polling_with_test_wait_hangs_as_well() -> None:
    with pytest.raises(Hang):
        run(
            INIT.format(1)
            + "WAIT: mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;"
        )


def test_a_modifier_that_no_mbarrier_has_is_refused() -> None:
    with pytest.raises(UnsupportedPtx, match="mbarrier"):
        run("mbarrier.arrive.tepid.shared.b64 _, [bar];")


# ------------------------------------------------------------------------------------ atomics
def test_lanes_take_a_lock_one_after_another() -> None:
    data = np.zeros(4, np.uint32)
    out = run(
        """
TAKE: atom.global.acquire.gpu.cas.b32 %r4, [%l0], 0, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra TAKE;
  ld.global.u32 %r15, [%l0+4]; add.u32 %r5, %r15, 1; st.global.u32 [%l0+4], %r5;
  atom.global.release.gpu.exch.b32 %r4, [%l0], 0;""",
        block=64,
        grid=2,
        data=data,
    )
    assert data[:2].tolist() == [0, 128]
    assert sorted(out.tolist()) == list(range(128))


def test_generic_addresses_may_mean_two_spaces_in_one_warp() -> None:
    data = np.array([100, 0, 0, 0], np.uint32)
    out = run(
        """
  st.shared.u32 [cell], 1000; bar.sync 0; mov.u64 %l3, cell; cvta.shared.u64 %l3, %l3;
  cvta.global.u64 %l4, %l0; and.b32 %r4, %r0, 1; setp.eq.u32 %p0, %r4, 0;
  selp.b64 %l5, %l3, %l4, %p0; atom.add.u32 %r15, [%l5], 2;""",
        data=data,
    )
    assert out.tolist() == [(1000 if lane % 2 == 0 else 100) + lane // 2 * 2 for lane in range(32)]
    assert data[0] == 132


def test_a_vector_of_floats_is_added_element_by_element() -> None:
    data = np.array([1, 2, 3, 4], np.float32)
    out = run(
        """
  mov.f32 %r4, 0f3F800000; mov.f32 %r5, 0f40000000;
  atom.global.add.v4.f32 {%r8, %r9, %r10, %r11}, [%l0], {%r4, %r5, %r4, %r5}; mov.b32 %r15, %r9;""",
        data=data.view(np.uint32),
    )
    assert data.tolist() == [33, 66, 35, 68]
    assert out.view(np.float32).tolist() == [2 + 2 * lane for lane in range(32)]


def test_a_128_bit_swap_is_refused_with_its_line() -> None:
    with pytest.raises(UnsupportedPtx, match="PTX line"):
        run("atom.global.exch.b128 %l3, [%l0], %l4;")
