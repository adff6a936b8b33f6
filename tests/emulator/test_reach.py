"""Accesses through an address register that has been looked up before: same bits, same faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lesson.emulator import Observer, launch
from lesson.emulator.reach import gap_of, strided
from lesson.errors import DeviceFault, IllegalAddress, MisalignedAddress

HEAD = """.version 8.1
.target sm_90
.address_size 64
.const .align 16 .b32 table[64];
.visible .entry k(.param .u64 pa, .param .u64 po)
{
  .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %l<16>;
  .shared .align 16 .b8 cell[1024]; .local .align 16 .b8 own[64];
  ld.param.u64 %l0, [pa]; cvta.to.global.u64 %l0, %l0;
  ld.param.u64 %l1, [po]; cvta.to.global.u64 %l1, %l1;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r15, 0;
  mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %l4, %r3, 4; add.u64 %l2, %l1, %l4;
"""
TAIL = "  st.global.u32 [%l2], %r15; ret;\n}\n"


def run(body: str, data: np.ndarray, grid: int = 2, block: int = 64, **options) -> list[int]:
    """What each thread leaves in %r15; %l0 points to `data`, which is changed in place."""
    out = np.zeros(grid * block, np.uint32)
    launch(HEAD + body + TAIL, "k", grid, block, [data, out], **options)
    return out.tolist()


# ----------------------------------------------------------------------------------- patterns
@given(
    st.lists(st.tuples(st.integers(2, 9), st.integers(-40, 40)), min_size=1, max_size=4),
    st.integers(0, 1000),
)
@settings(deadline=None, max_examples=60)
def test_a_pattern_gives_back_the_very_indices(dims: list[tuple[int, int]], first: int) -> None:
    index = np.array([first], np.int64)
    for count, stride in dims:
        index = (index[:, None] + np.arange(count) * stride).reshape(-1)
    found = strided(index)
    if found is not None:
        shape, strides = found
        grids = np.meshgrid(*[np.arange(n) for n in shape], indexing="ij")
        again = first + sum(g * s for g, s in zip(grids, strides, strict=True))
        assert again.reshape(-1).tolist() == index.tolist()
        apart = np.diff(np.sort(index))
        assert gap_of(shape, strides) <= apart.min(initial=1 << 62)


def test_rows_of_tiles_are_a_pattern_and_scattered_lanes_are_none() -> None:
    lane = np.arange(512)
    tiles = lane // 256 * 256 + lane % 256 // 64 * 1024 + lane % 64 * 4
    assert strided(tiles) == ((2, 4, 64), (256, 1024, 4))
    assert strided(lane * 2654435761 % 4096) is None


# ---------------------------------------------------------------------------- as the long way
PATTERNS = {
    "neighbours": "mul.wide.u32 %l5, %r3, 16;",
    "backwards": "sub.u32 %r4, 127, %r3; mul.wide.u32 %l5, %r4, 16;",
    "every-lane-one-place": "mov.u64 %l5, 32;",
    "pairs-share": "shr.u32 %r4, %r3, 1; mul.wide.u32 %l5, %r4, 32;",
    "scattered": "mul.lo.u32 %r4, %r3, 77; and.b32 %r4, %r4, 127; mul.wide.u32 %l5, %r4, 16;",
    "overlapping": "mul.wide.u32 %l5, %r3, 8;",
}


@pytest.mark.parametrize("guard", ["", "@%p1 ", "@!%p1 bra OVER;"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_later_accesses_leave_what_first_ones_would(pattern: str, guard: str) -> None:
    skip, guard = (guard, "") if "bra" in guard else ("", guard)
    body = (
        PATTERNS[pattern]
        + "mov.u32 %r6, 1; mov.u32 %r7, 2; mov.u16 %h1, 3;"
        + "add.u64 %l5, %l5, %l0; and.b32 %r5, %r0, 3; setp.ne.u32 %p1, %r5, 1; mov.u32 %r9, 0;"
        + skip
        + "LOOP:"
        + f"{guard}ld.global.u32 %r6, [%l5]; {guard}ld.global.v2.u32 {{%r7, %r8}}, [%l5+8];"
        + f"{guard}ld.global.u8 %h1, [%l5+3]; cvt.u32.u16 %r10, %h1; add.u32 %r15, %r15, %r10;"
        + "add.u32 %r15, %r15, %r6; xor.b32 %r15, %r15, %r7; add.u32 %r6, %r6, %r3;"
        + f"{guard}st.global.u32 [%l5+4], %r6; {guard}st.global.v2.u32 [%l5+8], {{%r3, %r6}};"
        + f"{guard}st.global.u16 [%l5], %h1;"
        + "add.u64 %l5, %l5, 16; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 5; @%p2 bra LOOP; OVER:"
    )
    data = np.arange(1024, dtype=np.uint32) * 2654435761
    plain, watched = data.copy(), data.copy()
    out = run(body, plain)
    assert out == run(body, watched, observers=(Observer(),))
    assert plain.tolist() == watched.tolist()
    assert plain.tolist() != data.tolist()


def test_a_stack_frame_of_each_thread_is_its_own() -> None:
    body = (
        "mov.u64 %l6, own; cvta.local.u64 %l7, %l6; add.u32 %r4, %r3, 5;"
        "st.u32 [%l7], %r3; st.u32 [%l7+4], %r4; st.u64 [%l7+8], %l4;"
        "ld.u32 %r5, [%l7]; ld.u32 %r6, [%l7+4]; ld.u32 %r7, [%l7+8];"
        "add.u32 %r15, %r5, %r6; add.u32 %r15, %r15, %r7;"
    )
    assert run(body, np.zeros(1, np.uint32)) == [2 * k + 5 + 4 * k for k in range(128)]


# ---------------------------------------------------------------------------------------- faults
NEAR = "mul.wide.u32 %l5, %r3, 16; add.u64 %l5, %l5, %l0;"


@pytest.mark.parametrize(
    "again,kind",
    [
        ("ld.global.u32 %r5, [%l5+2064];", IllegalAddress),
        ("ld.global.u32 %r5, [%l5+-4];", IllegalAddress),
        ("ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%l5+4];", MisalignedAddress),
        ("ld.global.u32 %r5, [%l5+2];", MisalignedAddress),
        ("st.global.u64 [%l5+2064], %l4;", IllegalAddress),
        ("add.u64 %l5, %l5, 4096; ld.global.u32 %r5, [%l5];", IllegalAddress),
        ("add.u64 %l5, %l5, 2; ld.global.u32 %r5, [%l5];", MisalignedAddress),
    ],
)
def test_a_later_access_faults_where_a_first_one_would(again: str, kind: type[DeviceFault]) -> None:
    twice = NEAR + "ld.global.u32 %r4, [%l5]; ld.global.u32 %r4, [%l5+4];"
    data = np.arange(1024, dtype=np.uint32)  # 4096 bytes; the last lane starts at 2032
    with pytest.raises(kind) as caught:
        run(twice + again, data)
    with pytest.raises(kind) as first:
        run(NEAR + again, data)
    assert str(caught.value) == str(first.value)


def test_a_store_to_constant_memory_faults_although_loads_went_well() -> None:
    body = (
        "mov.u64 %l6, table; cvta.const.u64 %l6, %l6; and.b32 %r4, %r0, 31;"
        "mul.wide.u32 %l5, %r4, 4; add.u64 %l5, %l5, %l6;"
        "ld.u32 %r5, [%l5]; ld.u32 %r5, [%l5+4]; st.u32 [%l5+8], %r5;"
    )
    with pytest.raises(IllegalAddress, match="writable"):
        run(body, np.zeros(1, np.uint32))


def test_a_loop_that_walks_out_of_its_array_faults_at_the_step_that_does() -> None:
    data = np.arange(1024, dtype=np.uint32)
    body = NEAR + "LOOP: ld.global.u32 %r5, [%l5]; add.u64 %l5, %l5, 64; bra LOOP;"
    with pytest.raises(IllegalAddress, match="0 bytes past the end of argument 0"):
        run(body, data)
