"""st.async and red.async: registers that go to the other block's shared memory and count there."""

from __future__ import annotations

import numpy as np
import pytest

from lesson.emulator import launch
from lesson.errors import Hang, IllegalAddress, UnsupportedPtx

SCHEDULES = ("eager", "late", "random")
MBAR = "shared::cluster.mbarrier::complete_tx::bytes"
HEAD = """.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 po)
{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %l<8>; .reg .f32 %f<4>;
  .shared .align 16 .b32 cell[4]; .shared .align 8 .b64 bar;
  ld.param.u64 %l0, [po]; mov.u32 %r0, %cluster_ctarank; mad.wide.u32 %l0, %r0, 16, %l0;
  mov.u32 %r9, 0; st.shared.v4.u32 [cell], {%r9, %r9, %r9, %r9};
  mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], NBYTES;
  xor.b32 %r1, %r0, 1; mov.u32 %r2, cell; mapa.shared::cluster.u32 %r3, %r2, %r1;
  mov.u32 %r2, bar; mapa.shared::cluster.u32 %r4, %r2, %r1;
  add.u32 %r5, %r0, 10; add.u32 %r6, %r0, 20; mov.b64 %l2, {%r5, %r6}; mov.b32 %f1, 0f3F800000;
"""
TAIL = """
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;
  ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [cell];
  st.global.v4.u32 [%l0], {%r10, %r11, %r12, %r13};
  barrier.cluster.arrive; barrier.cluster.wait; ret;
}
"""


def run(body: str, nbytes: int, schedule: str = "eager") -> list[list[int]]:
    """What each of two blocks of one thread finds in its cells when its bytes have come."""
    out = np.full((2, 4), 0xFFFFFFFF, np.uint32)
    ptx = HEAD.replace("NBYTES", str(nbytes)) + body + TAIL
    launch(ptx, "k", 2, 1, [out], cluster=2, schedule=schedule)
    return out.tolist()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_vector_of_registers_reaches_the_other_block(schedule: str) -> None:
    body = f"st.async.weak.{MBAR}.v2.u32 [%r3+8], {{%r5, %r6}}, [%r4];"
    assert run(body, 8, schedule) == [[0, 0, 11, 21], [0, 0, 10, 20]]


def test_a_float_and_a_64_bit_store_count_their_own_bytes() -> None:
    body = f"st.async.{MBAR}.f32 [%r3], %f1, [%r4]; st.async.{MBAR}.b64 [%r3+8], %l2, [%r4];"
    assert run(body, 12) == [[0x3F800000, 0, 11, 21], [0x3F800000, 0, 10, 20]]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_reductions_of_the_other_block_add_up(schedule: str) -> None:
    add = f"red.async.relaxed.cluster.{MBAR}.add.u32 [%r3], %r5, [%r4];"
    largest = f"red.async.{MBAR}.max.s32 [%r3+4], %r6, [%r4];"
    assert run(add + add + largest, 12, schedule) == [[22, 21, 0, 0], [20, 20, 0, 0]]


def test_bytes_that_are_never_sent_are_waited_for_in_vain() -> None:
    with pytest.raises(Hang):
        run(f"st.async.{MBAR}.u32 [%r3], %r5, [%r4];", 8)


def test_a_store_past_the_other_blocks_memory_is_a_fault() -> None:
    with pytest.raises(IllegalAddress, match=r"st\.async"):
        run(f"st.async.{MBAR}.u32 [%r3+4096], %r5, [%r4];", 4)


@pytest.mark.parametrize(
    "body",
    [
        "st.async.mmio.release.sys.global.u32 [%l0], %r5;",
        f"st.async.{MBAR}.u16 [%r3], %r5, [%r4];",
        f"red.async.{MBAR}.exch.u32 [%r3], %r5, [%r4];",
    ],
)
def test_forms_that_are_not_modelled_are_refused(body: str) -> None:
    with pytest.raises(UnsupportedPtx):
        run(body, 4)
