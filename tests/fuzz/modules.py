"""Small PTX modules, each with a launch that suits it: what the fuzzer starts from.

Between them they use every family of instructions, so that a change of a token lands in each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lesson.tensor_map import TensorMap

BLOCK = 32
HEAD = """.version 8.6
.target sm_90a
.address_size 64
.const .align 4 .b32 table[4] = {1, 2, 3, -4};
.global .align 8 .u64 place = table;
.extern .shared .align 128 .b8 dynamic[];
FUNCTIONS
.visible .entry k(.param .u64 pa, .param .u64 po, .param .align 64 .b8 pm[128], .param .u32 pn)
.maxntid 128, 1, 1
{
  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<12>; .reg .f32 %f<4>; .reg .f64 %d<3>;
  .reg .b64 %l<8>; .shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar[2];
  .local .align 8 .b8 own[16];
  .loc 1 7 3
  ld.param.u64 %l0, [pa]; cvta.to.global.u64 %l0, %l0; ld.param.u64 %l1, [po];
  cvta.to.global.u64 %l1, %l1; mov.u32 %r0, %tid.x; ld.param.u32 %r1, [pn];
  mad.wide.u32 %l1, %r0, 4, %l1; mov.u32 %r2, 7; mov.u32 %r9, tile; mov.u32 %r10, bar;
"""
TAIL = "  st.global.u32 [%l1], %r2;\n  ret;\n}\n"

FUNCTION = """.func (.param .b32 result) twice(.param .b32 given)
{ .reg .b32 %r<3>; ld.param.b32 %r0, [given]; add.s32 %r1, %r0, %r0;
  st.param.b32 [result], %r1; ret; }
"""
BODIES = {
    "integers": """
  mul.lo.s32 %r3, %r0, -5; mad.lo.s32 %r2, %r3, %r2, 0x1F; shf.l.wrap.b32 %r2, %r2, %r3, 3;
  bfe.u32 %r4, %r2, 4, 8; prmt.b32 %r4, %r4, %r2, 0x5410; lop3.b32 %r2, %r4, %r2, %r0, 0x96;
  div.u32 %r5, %r2, %r0; popc.b32 %r5, %r5; add.cc.u32 %r2, %r2, %r5; addc.u32 %r2, %r2, 0;""",
    "floats": """
  cvt.rn.f32.u32 %f0, %r0; fma.rn.f32 %f1, %f0, 0f40490FDB, 0f3F800000; sqrt.rn.f32 %f2, %f1;
  cvt.f64.f32 %d0, %f2; div.rn.f64 %d1, %d0, 0d4008000000000000; cvt.rzi.s32.f64 %r2, %d1;
  cvt.rn.f16.f32 %h0, %f1; add.f16 %h1, %h0, %h0; cvt.u32.u16 %r3, %h1; add.u32 %r2, %r2, %r3;""",
    "branches": """
  mov.u32 %r3, 0; setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW; @!%p0 bra HIGH;
LOW: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 6; @%p1 bra LOW; bra.uni JOIN;
HIGH: mov.u32 %r3, 100;
JOIN: and.b32 %r4, %r0, 3; ways: .branchtargets A, B, A, B; brx.idx %r4, ways;
A: add.u32 %r3, %r3, 2; bra DONE;
B: add.u32 %r3, %r3, 4;
DONE: selp.b32 %r2, %r3, %r0, %p0;""",
    "memory": """
  st.local.u32 [own+4], %r0; ld.local.u32 %r3, [own+4]; shl.b32 %r4, %r0, 2; add.u32 %r5, %r9, %r4;
  st.shared.u32 [%r5], %r3; bar.sync 0; ld.shared.u32 %r6, [%r9+8];
  and.b32 %r4, %r0, 3; mul.wide.u32 %l2, %r4, 4; mov.u64 %l3, table; add.u64 %l3, %l3, %l2;
  ld.const.u32 %r7, [%l3]; ld.global.v2.u32 {%r3, %r4}, [%l0+8]; ld.global.nc.u8 %h0, [%l0+1];
  cvta.shared.u64 %l4, tile; ld.v4.u32 {%r2, %r3, _, %r5}, [%l4]; add.u32 %r2, %r2, %r7;""",
    "calls": """
  { .param .b32 given; .param .b32 back; st.param.b32 [given], %r0;
    call.uni (back), twice, (given); ld.param.b32 %r2, [back]; }
  mov.u64 %l2, twice; { .param .b32 given; .param .b32 back; st.param.b32 [given+0], %r2;
    prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (back), %l2, (given), prototype; ld.param.b32 %r2, [back+0]; }""",
    "warps": """
  shfl.sync.bfly.b32 %r3|%p0, %r0, 4, 0x1f, -1; vote.sync.ballot.b32 %r4, %p0, 0xffffffff;
  match.any.sync.b32 %r5, %r3, -1; redux.sync.add.s32 %r6, %r5, -1; activemask.b32 %r7;
  elect.sync %r8|%p1, -1; bar.warp.sync -1; add.u32 %r2, %r6, %r7;""",
    "barriers": """
  setp.eq.u32 %p0, %r0, 0; barrier.sync.aligned 1, 32; bar.red.popc.u32 %r2, 2, %p0;
  bar.arrive 3, 64; barrier.cluster.arrive.release; barrier.cluster.wait.acquire;""",
    "mbarriers": """
  setp.ne.u32 %p0, %r0, 0; @%p0 bra OVER; mbarrier.init.shared::cta.b64 [bar], 32;
  fence.mbarrier_init.release.cluster;
OVER: bar.sync 0; mbarrier.arrive.shared::cta.b64 %l2, [bar];
WAIT: mbarrier.try_wait.shared::cta.b64 %p1, [bar], %l2; @!%p1 bra WAIT;
  mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r10], 1; selp.u32 %r2, 1, 0, %p2;""",
    "tensor": """
  setp.ne.u32 %p0, %r0, 0; @%p0 bra OVER; mbarrier.init.shared::cta.b64 [bar], 1;
  fence.proxy.async.shared::cta; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
  mov.b64 %l3, pm; cvta.param.u64 %l3, %l3; mov.u32 %r3, 0; mov.u32 %r4, 4;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r9], [%l3, {%r3, %r4}], [%r10];
OVER: bar.sync 0;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;
  shl.b32 %r5, %r0, 2; add.u32 %r5, %r5, %r9; ld.shared.u32 %r2, [%r5];""",
    "tensor-store": """
  shl.b32 %r5, %r0, 2; add.u32 %r5, %r5, %r9; st.shared.u32 [%r5], %r0;
  fence.proxy.async; bar.sync 0; setp.ne.u32 %p0, %r0, 0; @%p0 bra OVER;
  mov.b64 %l3, pm; cvta.param.u64 %l3, %l3; mov.u32 %r3, 4; prefetch.tensormap [%l3];
  cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%l3, {%r3, %r3}], [%r9];
  cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%l3, {%r3, 0}], [%r9];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
OVER:""",
    "bulk": """
  setp.ne.u32 %p0, %r0, 0; @%p0 bra OVER; mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64; mov.u32 %r3, 64;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%l0], %r3, [%r10];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;
  cp.async.bulk.global.shared::cta.bulk_group [%l0], [%r9], 64; cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
OVER:""",
    "cp-async": """
  shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r9; cp.async.ca.shared.global [%r3], [%l0], 4, %r1;
  cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; ld.shared.u32 %r2, [%r3];""",
    "atomics": """
  atom.global.add.u32 %r2, [%l0], %r0; red.shared.max.s32 [%r9], %r0; bar.sync 0;
  atom.shared.cas.b32 %r3, [tile], 31, %r0; atom.add.f32 %f0, [%l0+16], 0f3F800000;
  atom.global.exch.b64 %l3, [%l0+8], %l1;""",
    "matrix": """
  and.b32 %r3, %r0, 7; shl.b32 %r3, %r3, 4; add.u32 %r3, %r3, %r9;
  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r0};
  ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r2, %r4}, [%r3];""",
    "clocks": """
  mov.u64 %l2, %clock64; mov.u64 %l3, %globaltimer; nanosleep.u32 20; mov.u32 %r2, %laneid;
  mov.u32 %r3, %smid; mov.u32 %r4, %nctaid.x; sub.u64 %l2, %l3, %l2; griddepcontrol.wait;""",
}


@dataclass(frozen=True)
class Start:
    """A module and what it is launched with. `shared_bytes`: of dynamic shared memory."""

    name: str
    ptx: str
    grid: Any = 1
    block: Any = BLOCK
    shared_bytes: int = 64

    def args(self) -> list[Any]:
        """Fresh arguments: data, a place for results, a tensor map, a number."""
        data = np.arange(64, dtype=np.uint32)
        matrix = np.arange(256, dtype=np.uint32).reshape(16, 16)
        tmap = TensorMap(
            dtype="UINT32", dims=(16, 16), strides_bytes=(64,), box=(8, 4), base=matrix
        )
        return [data, np.zeros(2 * BLOCK, np.uint32), tmap, np.uint32(4)]


def text_of(body: str) -> str:
    """The module with a body of the kernel."""
    return HEAD.replace("FUNCTIONS", FUNCTION if "twice" in body else "") + body + TAIL


STARTS = tuple(Start(name, text_of(body)) for name, body in BODIES.items())
