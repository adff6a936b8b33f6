"""The kernel whose bank conflicts are counted finds its elements on a real GPU, too."""

from __future__ import annotations

import numpy as np
import pytest

from lesson import banks, targets

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("swizzle", ["NONE", "128B"])
@pytest.mark.parametrize("by", ["rows", "columns"])
def test_a_tile_read_on_the_gpu_gives_the_sums_of_the_emulator(swizzle, by):
    kernel, args = banks.launch_of(swizzle, by)
    targets.isolate(kernel, (1,), (banks.tile_width(),), args)
    np.testing.assert_array_equal(args[-1], banks.read_tile(swizzle, by).sums)
