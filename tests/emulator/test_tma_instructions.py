"""The instructions of tensor copies: what they refuse, by line, and where a copy may reach."""

from __future__ import annotations

import numpy as np
import pytest

from lesson.emulator import launch
from lesson.errors import IllegalAddress, TensorMapError, UnsupportedPtx
from lesson.tensor_map import TensorMap

HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u32 skip)
{
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %l<4>;
  .shared .align 1024 .b8 tile[8192];
  .shared .align 8 .b64 bar;
  mov.b64 %l0, map; cvta.param.u64 %l0, %l0; mov.u32 %r0, 0;
  ld.param.u32 %r1, [skip]; setp.ne.u32 %p, %r1, 0; @%p bra OVER;
  mbarrier.init.shared::cta.b64 [bar], 1;
"""
LINE = HEAD.count("\n") + 1
TAIL = "\nOVER: ret;\n}\n"
OTHER_MODES = [
    (
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[tile], [%l0, {%r0, %r0, %r0, %r0}], [bar], {0, 0};"
    ),
    (
        "cp.async.bulk.tensor.3d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes "
        "[tile], [%l0, {%r0, %r0, %r0}], [bar], {0, 0};"
    ),
    (
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
        "[tile], [%l0, {%r0, %r0, %r0, %r0, %r0}], [bar];"
    ),
    (
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
        "[%l0, {%r0, %r0, %r0, %r0, %r0}], [tile];"
    ),
    (
        "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
        "[%l0, {%r0, %r0, %r0, %r0}], [tile];"
    ),
    (
        "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group "
        "[%l0, {%r0, %r0, %r0, %r0}], [tile];"
    ),
    (
        "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col "
        "[%l0, {%r0, %r0, %r0, %r0}], {0, 0};"
    ),
]  # fmt: skip
UNDEFINED = 0xA5A5A5A5  # what the emulator's shared memory holds before it is written
STORE = "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%l0, {%r0}], [tile];"
LOAD = (
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64; "
    "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
    "[tile], [%l0, {%r0}], [bar];"
)


def run(instruction: str, tmap: TensorMap, skip: int = 0) -> None:
    launch(HEAD + "  " + instruction + TAIL, "k", 1, 1, [tmap, np.uint32(skip)])


def row(count: int, array: np.ndarray, box: int = 16) -> TensorMap:
    return TensorMap("UINT32", (count,), (), (box,), base=array)


@pytest.mark.parametrize("instruction", OTHER_MODES)
def test_another_mode_than_tile_is_refused_with_its_line(instruction):
    with pytest.raises(UnsupportedPtx) as caught:
        run(instruction, row(16, np.zeros(16, np.uint32)))
    name = instruction.split(" ")[0]
    mode = next(m for m in name.split(".") if m.startswith(("im2col", "tile::")))
    assert f"the mode of a tensor copy must be tile, not {mode} (" in str(caught.value)
    assert f"got {name}" in str(caught.value)
    assert f"PTX line {LINE}." in str(caught.value)


@pytest.mark.parametrize("instruction", OTHER_MODES)
def test_a_mode_that_no_thread_reaches_is_no_error(instruction):
    run(instruction, row(16, np.zeros(16, np.uint32)), skip=1)


@pytest.mark.parametrize("instruction", [LOAD, STORE])
def test_a_map_larger_than_its_array_is_an_illegal_address(instruction):
    array = np.arange(9, dtype=np.uint32)
    with pytest.raises(IllegalAddress, match="must lie in the 48 bytes of its array, got bytes 0"):
        run(instruction, row(16, array))
    assert array.tolist() == list(range(9))


def test_a_store_may_fill_the_last_unit_behind_its_array():
    array = np.arange(9, dtype=np.uint32)
    run(STORE, row(9, array))
    assert array.tolist() == [UNDEFINED] * 9


def test_a_view_may_be_stored_to_where_the_array_around_it_ends():
    whole = np.arange(32, dtype=np.uint32)
    run(STORE, row(13, whole[16:]))
    assert whole.tolist() == [*range(16), *[UNDEFINED] * 16]


def test_a_map_that_the_driver_refuses_never_reaches_the_kernel():
    with pytest.raises(TensorMapError, match="must be a multiple of 16 bytes, got 12"):
        run(STORE, row(16, np.zeros(16, np.uint32), box=3))
