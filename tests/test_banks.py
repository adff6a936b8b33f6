"""Bank conflicts: the rule on made-up accesses, and the counts of the kernel that reads columns."""

import numpy as np
import pytest

from lesson import banks, reference, targets
from lesson.banks import WarpRead


def passes(words: object) -> int:
    return WarpRead(1, np.asarray(words)).passes


def test_neighbouring_words_take_one_pass():
    assert passes(np.arange(32)) == 1


def test_a_word_that_all_threads_want_takes_one_pass():
    assert passes(np.full(32, 7)) == 1


def test_a_stride_of_two_words_takes_two_passes_and_of_32_words_32():
    assert passes(np.arange(32) * 2) == 2
    assert passes(np.arange(32) * 32) == 32


def test_a_stride_of_33_words_takes_one_pass():
    assert passes(np.arange(32) * 33) == 1


def test_two_threads_on_one_word_of_a_busy_bank_count_once():
    assert passes([0, 0, 32, 64]) == 3


@pytest.mark.parametrize("swizzle", ["NONE", "128B"])
def test_a_row_takes_one_pass_swizzled_or_not(swizzle):
    tile = banks.read_tile(swizzle, "rows")
    assert [read.passes for read in tile.reads] == [1] * 32


@pytest.mark.parametrize("swizzle,each", [("NONE", 32), ("128B", 4)])
def test_a_column_takes_32_passes_and_swizzled_four(swizzle, each):
    tile = banks.read_tile(swizzle, "columns")
    assert [read.passes for read in tile.reads] == [each] * 32
    assert tile.passes == 32 * each


@pytest.mark.parametrize("swizzle", ["NONE", "128B"])
@pytest.mark.parametrize("by,axis", [("columns", 1), ("rows", 0)])
def test_the_kernel_finds_every_element_of_the_tile_again(swizzle, by, axis):
    tile = targets.new_matrix()[:32, :32]
    np.testing.assert_array_equal(banks.read_tile(swizzle, by).sums, tile.sum(axis))


def test_the_kernel_looks_where_the_reference_says_that_the_swizzle_puts_things():
    read = banks.read_tile("128B", "columns").reads[5]
    plain = [row * 128 + 5 * 4 for row in range(32)]
    assert [word * 4 for word in read.words] == [reference.swizzled("128B", at) for at in plain]
