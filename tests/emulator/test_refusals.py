"""What the emulator does not model is refused when a thread reaches it, by name and line."""

from __future__ import annotations

import numpy as np
import pytest

from lesson.emulator import launch
from lesson.errors import UnsupportedPtx

HEAD = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 po, .param .u32 take)
{
  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .f64 %d<4>;
  .reg .b64 %l<6>; .reg .b128 %q<4>; .shared .align 16 .b8 cell[64];
  ld.param.u64 %l1, [po]; cvta.to.global.u64 %l1, %l1; ld.param.u32 %r1, [take];
  setp.eq.u32 %p1, %r1, 0; @%p1 bra OVER;
"""
LINE = 10
TAIL = "\nOVER: st.global.u32 [%l1], 7; ret;\n}\n"
REFUSED = """
atom.global.exch.b128 %q0, [%l1], %q1
atom.shared.cas.b128 %q0, [cell], %q1, %q2
mov.b128 %q0, {%l1, %l2}
mov.b128 {%l2, %l3}, %q0
ld.global.b128 %q0, [%l1]
st.global.b128 [%l1], %q0
redux.sync.min.f32 %f3, %f1, -1
redux.sync.max.abs.NaN.f32 %f3, %f1, -1
multimem.ld_reduce.global.add.f32 %f3, [%l1]
multimem.st.global.f32 [%l1], %f1
multimem.red.global.add.f32 [%l1], %f1
vabsdiff4.u32.u32.u32 %r4, %r1, %r2, %r3
vadd.s32.s32.s32 %r4, %r1, %r2
vmad.s32.s32.u32 %r4, %r1, %r2, %r3
wgmma.fence.sync.aligned
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d1}, {%d1}, {%d1, %d2}
movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r1
st.bulk.weak.shared::cta [cell], 16, 0
tensormap.replace.tile.global_address.global.b1024.b64 [%l1], %l2
cvt.rs.f16x2.f32 %r4, %f1, %f2, %r1
nosuch.b32 %r1, %r2
add.foo.f32 %f1, %f2, %f1
""".strip().splitlines()
APPROXIMATIONS = """
ex2.approx.f32 %f3, %f1
ex2.approx.ftz.bf16x2 %r4, %r1
lg2.approx.ftz.f32 %f3, %f1
sin.approx.f32 %f3, %f1
cos.approx.f32 %f3, %f1
tanh.approx.f32 %f3, %f1
rsqrt.approx.f32 %f3, %f1
rsqrt.approx.ftz.f64 %d2, %d1
rcp.approx.ftz.f32 %f3, %f1
rcp.approx.ftz.f64 %d2, %d1
sqrt.approx.f32 %f3, %f1
div.approx.f32 %f3, %f1, %f2
div.full.ftz.f32 %f3, %f1, %f2
""".strip().splitlines()


def run(instruction: str, take: bool) -> int:
    out = np.zeros(1, np.uint32)
    launch(f"{HEAD}{instruction};{TAIL}", "k", 1, 32, [out, np.uint32(take)])
    return int(out[0])


@pytest.mark.parametrize("instruction", REFUSED + APPROXIMATIONS)
def test_it_is_refused_by_name_and_line(instruction: str) -> None:
    with pytest.raises(UnsupportedPtx, match=rf"PTX line {LINE}\.") as caught:
        run(instruction, True)
    if ".b128" not in instruction:
        assert f"got {instruction.split()[0]}" in str(caught.value)


@pytest.mark.parametrize("instruction", REFUSED + APPROXIMATIONS)
def test_code_that_no_thread_reaches_may_hold_it(instruction: str) -> None:
    assert run(instruction, False) == 7


@pytest.mark.parametrize("instruction", APPROXIMATIONS)
def test_an_approximation_says_that_its_bits_are_open_and_what_to_do(instruction: str) -> None:
    with pytest.raises(UnsupportedPtx, match="bounds only the error, and bits are never") as caught:
        run(instruction, True)
    opcode = instruction.split(".")[0]
    is_rounded = opcode in ("div", "rcp", "sqrt")
    assert (f"Use {opcode}.rn" in str(caught.value)) == is_rounded
    assert "on a GPU" in str(caught.value)


def test_pairs_of_floats_are_arithmetic_like_any_other() -> None:
    body = """mov.b64 %l2, {0f3FC00000, 0fC0000000}; mov.b64 %l3, {0f3E800000, 0f40400000};
  fma.rn.f32x2 %l4, %l2, %l3, %l3; mov.b64 {%r2, %r3}, %l4; st.global.u32 [%l1+4], %r2;
  st.global.u32 [%l1+8], %r3;"""
    out = np.zeros(3, np.float32)
    launch(f"{HEAD}{body}{TAIL}", "k", 1, 1, [out, np.uint32(1)])
    assert out[1:].tolist() == [1.5 * 0.25 + 0.25, -2.0 * 3.0 + 3.0]
