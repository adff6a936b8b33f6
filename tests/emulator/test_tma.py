"""The copy engine: faults, limits, footprints, and what is refused rather than guessed."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from lesson.emulator import tma
from lesson.emulator.tma_layout import geometry
from lesson.errors import IllegalAddress, UnsupportedPtx
from lesson.tensor_map import DType, TensorMap, check

MATRIX = np.arange(256 * 256, dtype=np.float32).reshape(256, 256)
GMEM = MATRIX.view(np.uint8).reshape(-1)
TILE = TensorMap.from_array(MATRIX, (64, 64))


def shared(nbytes: int = 20480) -> np.ndarray:
    return np.full(nbytes, 0xA5, np.uint8)


def test_the_lesson_s_tile_arrives_row_after_row():
    smem = shared()
    assert tma.load(TILE, (64, 128), GMEM, 0, smem, 1024, 1024) == 16384
    tile = smem[1024 : 1024 + 16384].view(np.float32).reshape(64, 64)
    assert np.array_equal(tile, MATRIX[128:192, 64:128])
    assert (smem[:1024] == 0xA5).all()
    assert (smem[1024 + 16384 :] == 0xA5).all()


def test_a_tile_that_is_stored_where_it_came_from_changes_nothing():
    smem, gmem = shared(), GMEM.copy()
    tma.load(TILE, (64, 128), GMEM, 0, smem, 1024, 1024)
    assert tma.store(TILE, (64, 128), gmem, 0, smem, 1024, 1024) == 16384
    assert np.array_equal(gmem, GMEM)


def test_the_base_shifts_the_tensor_in_global_memory():
    smem, arena = shared(), np.concatenate([np.zeros(4096, np.uint8), GMEM])
    tma.load(TILE, (0, 0), arena, 4096, smem, 0, 1024)
    assert np.array_equal(smem[:16384].view(np.float32).reshape(64, 64), MATRIX[:64, :64])


def test_an_edge_tile_counts_the_bytes_of_the_whole_box():
    smem = shared()
    assert tma.load(TILE, (224, 250), GMEM, 0, smem, 1024, 1024) == 16384
    tile = smem[1024 : 1024 + 16384].view(np.float32).reshape(64, 64)
    assert np.array_equal(tile[:6, :32], MATRIX[250:, 224:])
    assert not tile[6:].any()
    assert not tile[:, 32:].any()


def test_a_tile_outside_the_tensor_is_all_fill_and_touches_no_global_byte():
    smem = shared()
    assert tma.load(TILE, (256, -64), GMEM, 0, smem, 1024, 1024) == 16384
    assert not smem[1024 : 1024 + 16384].any()
    assert tma.global_extent(TILE, (256, -64)) is None
    assert tma.global_footprint(TILE, (256, -64)).size == 0


@pytest.mark.parametrize(
    "dtype, shape, box, fill",
    [("float16", (4, 8), (8, 4), 0x7FF7), ("float32", (4, 8), (4, 4), 0x7FF77FF7)],
)
def test_nan_fill_is_the_recorded_pattern(dtype, shape, box, fill):
    tmap = TensorMap.from_array(np.ones(shape, dtype), box, oob_fill="NAN_REQUEST_ZERO_FMA")
    smem = shared()
    tma.load(tmap, (0, 4), np.zeros(4096, np.uint8), 0, smem, 0, 1024)
    size = np.dtype(dtype).itemsize
    words = smem[: tma.box_nbytes(tmap)].view(f"u{size}")
    assert (words == fill).all()


@pytest.mark.parametrize(
    "coords, is_store, op, says",
    [
        ((1, 0), False, None, ("the innermost start coordinate * itemsize must be a multiple of 16 "
         "bytes, got 4 (1 x float32). Start at 0 and skip 1 elements in shared memory.")),
        ((-3, 0), False, None, "got -12 (-3 x float32). Start at -4 and skip 1 elements"),
        ((6, 0), True, "add", "got 24 (6 x float32). Start at 4 and skip 2 elements"),
        ((0, -1), True, None, "start coordinate 1 of a tensor store must be 0 or more, got -1."),
        ((-4, -1), True, "add", "start coordinate 0 of a tensor store must be 0 or more, got -4."),
        ((0, 0), True, "xor", ("the type of a reduction .xor must be one of UINT32, INT32, UINT64, "
         "got FLOAT32. Encode the map with one of these types.")),
        ((0,), False, None, ("the coordinates of a tensor copy must be 2, as many as the map has "
         "dimensions, got 1. Use the 2d form of the instruction.")),
    ],
)  # fmt: skip
def test_a_start_that_the_chip_calls_illegal_says_why(coords, is_store, op, says):
    assert says in tma.start_fault(TILE, coords, is_store, op)


@pytest.mark.parametrize("coords", [(0, 0), (-4, -1), (256, 256), (4, 255)])
def test_a_load_may_start_outside_the_tensor(coords):
    assert tma.start_fault(TILE, coords, False) is None


def test_bitwise_reductions_are_not_for_int64_but_for_uint64():
    signed = TensorMap("INT64", (64,), (), (4,))
    unsigned = TensorMap("UINT64", (64,), (), (4,))
    assert "Encode the map as UINT64" in tma.start_fault(signed, (0,), True, "and")
    assert tma.start_fault(unsigned, (0,), True, "and") is None
    assert tma.start_fault(signed, (0,), True, "min") is None


@pytest.mark.parametrize("copy", [tma.load, tma.store])
def test_a_box_that_leaves_shared_memory_is_an_illegal_address(copy):
    with pytest.raises(IllegalAddress, match=r"must end in the block's 17000 bytes of shared "
                       r"memory, got 1024 to 17408 \(64 rows of 256 bytes\)"):  # fmt: skip
        copy(TILE, (0, 0), GMEM.copy(), 0, shared(17000), 1024, 1024)


@pytest.mark.parametrize("copy", [tma.load, tma.store])
def test_a_map_that_reaches_out_of_global_memory_is_an_illegal_address(copy):
    short = GMEM[: 200 * 1024].copy()
    with pytest.raises(
        IllegalAddress, match="must lie in the 204800 bytes of its array, got bytes"
    ):
        copy(TILE, (0, 192), short, 0, shared(), 1024, 1024)


@pytest.mark.parametrize(
    "changes, says",
    [
        (dict(swizzle="128B_ATOM_64B", box=(32, 8)), "got 128B_ATOM_64B. Use 128B."),
        (dict(dtype="16U4_ALIGN8B", box=(128, 8)), "dtype must be a type of whole bytes"),
    ],
)  # fmt: skip
def test_a_layout_that_is_not_modelled_is_refused_by_name(changes, says):
    parameters = dict(dtype="FLOAT32", dims=(256, 256), strides_bytes=(1024,), box=(64, 64))
    with pytest.raises(UnsupportedPtx) as caught:
        tma.box_nbytes(TensorMap(**parameters | changes))
    assert says in str(caught.value)


@pytest.mark.parametrize("mode", ["im2col", "im2col::w", "tile::gather4", "tile::scatter4"])
def test_a_mode_that_is_not_modelled_is_named(mode):
    mods = ("async", "bulk", "tensor", "4d", "shared::cluster", "global", mode)
    assert f"the mode of a tensor copy must be tile, not {mode}" in tma.unmodelled_mode(mods)


def test_tile_mode_is_the_one_that_is_modelled():
    assert tma.unmodelled_mode(("bulk", "tensor", "2d", "shared::cluster", "global", "tile")) == ""
    assert tma.unmodelled_mode(("bulk", "tensor", "2d", "shared::cluster", "global")) == ""


def test_a_tensor_larger_than_its_coordinates_is_encoded_but_never_copied():
    tmap = TensorMap("FLOAT32", (256, 2**32), (1024,), (64, 64))
    assert not check(tmap)
    assert "global_dim[1] of a map that copies" in tma.start_fault(tmap, (0, 0), False)
    assert (
        tma.start_fault(TensorMap("FLOAT32", (256, 2**31), (1024,), (4, 1)), (0, 0), True) is None
    )


SLICED = TensorMap("FLOAT16", (6, 5, 4), (128, 640), (3, 2, 2), interleave="16B")


def test_under_interleave_dimension_0_counts_slices_and_one_slice_of_channels_comes():
    assert tma.box_nbytes(SLICED) == 3 * 1 * 2 * 16
    assert tma.start_fault(SLICED, (1, 0, 0), False) is None
    assert tma.global_extent(SLICED, (1, 2, 1)) == (640 + 256 + 16, 1280 + 256 + 64)
    gmem = np.random.default_rng(3).integers(0, 256, 4 * 640, np.uint8)
    smem = shared()
    assert tma.load(SLICED, (1, 2, 1), gmem, 0, smem, 1024, 1024) == 96
    rows = [gmem[n * 640 + 256 + 16 :][:48] for n in (1, 2)]
    assert np.array_equal(smem[1024 : 1024 + 96], np.concatenate(rows))
    assert (smem[1024 + 96 :] == 0xA5).all()


def test_the_shared_footprint_of_interleaved_rows_follows_the_swizzle():
    sliced = TensorMap(
        "FLOAT64", (4, 5, 20), (128, 640), (2, 1, 9), interleave="16B", swizzle="128B"
    )
    assert tma.smem_footprint(sliced, 0) == [(0, 256), (288, 320)]


def test_the_shared_footprint_of_a_full_row_is_one_range():
    assert tma.smem_footprint(TILE, 1024) == [(1024, 1024 + 16384)]
    swizzled = TensorMap.from_array(MATRIX, (32, 4), swizzle="128B")
    assert tma.smem_footprint(swizzled, 2048) == [(2048, 2048 + 512)]


def test_the_shared_footprint_of_a_narrow_swizzled_row_has_holes():
    narrow = TensorMap.from_array(MATRIX, (4, 3), swizzle="128B")
    assert tma.smem_footprint(narrow, 0) == [(0, 16), (144, 160), (288, 304)]


def test_the_global_footprint_of_a_store_runs_to_the_end_of_a_unit():
    tmap = TensorMap("FLOAT32", (101, 2), (416,), (8, 2))
    assert tma.global_footprint(tmap, (96, 1)).tolist() == list(range(416 + 384, 416 + 404))
    stored = tma.global_footprint(tmap, (96, 1), is_store=True)
    assert stored.tolist() == list(range(416 + 384, 416 + 416))
    assert tma.global_extent(tmap, (96, 1), is_store=True) == (416 + 384, 416 + 416)


def test_a_tensor_far_away_is_addressed_without_an_index_of_its_size():
    tmap = TensorMap("UINT8", (2**32, 2**32), (2**40 - 16,), (16, 256))
    assert geometry(tmap).nbytes == 4096
    start, stop = tma.global_extent(tmap, (2**31 - 16, 2**31 - 256))
    assert start == 2**31 - 16 + (2**31 - 256) * (2**40 - 16)
    assert stop - start == 255 * (2**40 - 16) + 16


def test_a_map_that_has_copied_lets_go_of_its_array():
    class Array(np.ndarray):
        """One that can be watched."""

    array = np.zeros((64, 64), np.float32).view(Array)
    watched = weakref.ref(array)
    tma.load(TensorMap.from_array(array, (4, 4)), (0, 0), GMEM, 0, shared(), 0, 1024)
    del array
    assert watched() is None


def test_a_reduction_over_overlapping_rows_takes_them_one_after_another():
    tmap = TensorMap("UINT32", (4, 8), (0,), (4, 8))
    smem, gmem = shared(), np.zeros(64, np.uint8)
    smem[:128] = np.arange(32, dtype=np.uint32).view(np.uint8)
    tma.reduce("add", tmap, (0, 0), gmem, 0, smem, 0, 1024)
    assert gmem.view(np.uint32)[:4].tolist() == [112, 120, 128, 136]


@pytest.mark.parametrize(
    "op, held, given, want",
    [
        ("add", [2**32 - 1, 5], [2, 7], [1, 12]),
        ("inc", [3, 7, 9], [7, 7, 7], [4, 0, 0]),
        ("dec", [3, 0, 9], [7, 7, 7], [2, 7, 7]),
        ("min", [3, 2**31], [7, 1], [3, 1]),
        ("xor", [0b1100, 1], [0b1010, 1], [0b0110, 0]),
    ],
)
def test_unsigned_reductions_wrap_as_ptx_says(op, held, given, want):
    tmap = TensorMap("UINT32", (4,), (), (4,))
    gmem, smem = np.zeros(16, np.uint8), shared()
    gmem.view(np.uint32)[: len(held)] = held
    smem[:16].view(np.uint32)[: len(given)] = given
    tma.reduce(op, tmap, (0,), gmem, 0, smem, 0, 1024)
    assert gmem.view(np.uint32)[: len(want)].tolist() == want


@pytest.mark.parametrize("dtype, want", [("INT64", [-1, -5]), ("UINT64", [1, 2])])
def test_64_bit_minima_know_their_sign(dtype, want):
    tmap = TensorMap(dtype, (2,), (), (2,))
    gmem, smem = np.zeros(16, np.uint8), shared()
    gmem.view(np.int64)[:] = [-1, -5]
    smem[:16].view(np.int64)[:] = [1, 2]
    tma.reduce("min", tmap, (0,), gmem, 0, smem, 0, 1024)
    assert gmem.view(np.int64).tolist() == want


def test_maps_that_differ_only_in_l2_promotion_copy_alike():
    parameters = dict(dtype=DType.FLOAT32, dims=(256, 256), strides_bytes=(1024,), box=(64, 64))
    first = shared()
    tma.load(TensorMap(**parameters), (0, 0), GMEM, 0, first, 0, 1024)
    second = shared()
    tma.load(TensorMap(**parameters, l2_promotion="L2_256B"), (0, 0), GMEM, 0, second, 0, 1024)
    assert np.array_equal(first, second)
