"""The reference: the lesson's answer, who writes what, and values that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lesson import reference
from lesson.tensor_map import TensorMap


def test_the_round_trip_adds_one_and_keeps_the_type():
    matrix = np.arange(65536, dtype=np.float32).reshape(256, 256)
    out = reference.round_trip(matrix)
    assert out.dtype == np.float32
    assert np.array_equal(out, np.arange(1, 65537, dtype=np.float32).reshape(256, 256))
    assert matrix[0, 0] == 0


def test_the_lesson_s_writers_are_16_tiles_of_256_threads():
    who = reference.writers(256, 256, 64, 64, 256)
    assert who.block_x.shape == (256, 256)
    assert (who.block_x[70, 130], who.block_y[70, 130]) == (2, 1)
    assert (who.times == 1).all()
    blocks = who.block_y * 4 + who.block_x
    assert np.array_equal(np.bincount(blocks.ravel()), np.full(16, 4096))
    for block in range(16):
        assert np.array_equal(np.bincount(who.thread[blocks == block]), np.full(256, 16))


def test_consecutive_threads_write_consecutive_columns():
    who = reference.writers(256, 256, 64, 64, 256)
    assert who.thread[0, :64].tolist() == list(range(64))
    assert who.thread[:5, 0].tolist() == [0, 64, 128, 192, 0]


def test_tiles_at_the_edge_of_an_odd_matrix_are_cut():
    who = reference.writers(150, 200, 64, 64, 256)
    assert who.block_x.max() == 3
    assert who.block_y.max() == 2
    assert (who.block_x == 3).sum() == 150 * (200 - 192)


def test_a_load_of_two_rows_by_hand():
    tmap = TensorMap("UINT32", (5, 3), (32,), (4, 2))
    memory = np.arange(96, dtype=np.uint8)
    got = reference.load_box(tmap, (4, 1), memory)
    assert [got[i] for i in range(4)] == [48, 49, 50, 51]
    assert [got[i] for i in range(4, 16)] == [0] * 12
    assert [got[i] for i in range(16, 20)] == [80, 81, 82, 83]
    assert len(got) == 32


def test_a_store_is_cut_in_units_of_16_bytes():
    tmap = TensorMap("UINT32", (5, 2), (32,), (8, 1))
    after = reference.store_box(
        tmap, (0, 1), np.zeros(64, np.uint8), np.arange(1, 33, dtype=np.uint8)
    )
    assert after.tolist() == [0] * 32 + list(range(1, 33))


@pytest.mark.parametrize(
    "mode, offset, want",
    [
        ("NONE", 144, 144),
        ("32B", 128, 144), ("32B", 256, 256), ("32B", 128 + 37, 128 + 48 + 5),
        ("64B", 128 * 3, 128 * 3 + 48), ("64B", 128 * 4, 128 * 4),
        ("128B", 128 * 5 + 16, 128 * 5 + 64), ("128B", 128 * 8 + 7, 128 * 8 + 7),
    ],
)  # fmt: skip
def test_a_swizzle_exchanges_units_within_a_line(mode, offset, want):
    assert reference.swizzled(mode, offset) == want


@pytest.mark.parametrize("mode", ["NONE", "32B", "64B", "128B"])
def test_a_swizzle_is_its_own_inverse(mode):
    there = [reference.swizzled(mode, i) for i in range(2048)]
    assert sorted(there) == list(range(2048))
    assert [reference.swizzled(mode, i) for i in there] == list(range(2048))


@pytest.mark.parametrize(
    "word, want",
    [
        (0x3F800000, 0x3F800000), (0x3F800FFF, 0x3F800000), (0x3F801000, 0x3F800000),
        (0x3F803000, 0x3F804000), (0x3F801001, 0x3F802000), (0x7F7FFFFF, 0x7F800000),
        (0x7F800001, 0x7FFFE000), (0x7FC3084C, 0x7FFFE000), (0x4488CC, 0x448000),
    ],
)  # fmt: skip
def test_tf32_keeps_ten_bits_of_mantissa(word, want):
    assert reference.to_tf32(word) == want
