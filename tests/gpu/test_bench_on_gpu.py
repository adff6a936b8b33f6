"""The notebook's few points, measured on a real GPU."""

from __future__ import annotations

import pytest

from lesson import measured
from lesson.bench import quick

pytestmark = pytest.mark.gpu


def test_with_one_warp_on_a_multiprocessor_tma_is_well_ahead_of_plain_loads():
    says, points = measured.here()
    assert says.startswith("Measured here: plain 16-byte with 32: "), says
    assert points.keys() <= quick.settings().keys()
    assert points["TMA ring", 32] > 1.5 * points["plain 16-byte", 32]
