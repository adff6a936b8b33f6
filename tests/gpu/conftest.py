"""Tests here need a GPU with TMA; where there is none, each says why it is skipped."""

from __future__ import annotations

import pytest

from lesson import gpu


@pytest.fixture(autouse=True)
def _needs_tma(request: pytest.FixtureRequest) -> None:
    """The gate's own words are the reason."""
    if request.node.get_closest_marker("gpu") and not gpu.status().ok:
        pytest.skip(gpu.status().reason)
