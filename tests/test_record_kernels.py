"""One sample can be recorded anew without the others: its outcome and arrays replace what was
there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.gpu import record_kernels

ABOUT = {"gpu": "NVIDIA H200", "driver_api": 13000}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A folder with the record of two samples."""
    outcomes = {"old": {"O3": {"outcome": "ok"}}, "again": {"O3": {"outcome": "wrong"}}}
    record = {"about": ABOUT, "date": "2026-11-01", "outcomes": outcomes}
    (tmp_path / "outcomes.json").write_text(json.dumps(record))
    arrays = {"old/out": np.arange(3), "again/out": np.zeros(3), "again/gone": np.zeros(1)}
    np.savez(tmp_path / "outputs.npz", **arrays)
    return tmp_path


def test_the_record_of_other_samples_stays_and_that_of_a_new_run_goes(recorded: Path) -> None:
    now = {"about": ABOUT, "date": "now", "outcomes": {"again": {"O3": {"outcome": "ok"}}}}
    kept = record_kernels.kept_arrays(recorded, now)
    assert list(kept) == ["old/out"]
    assert kept["old/out"].tolist() == [0, 1, 2]
    assert now["outcomes"] == {
        "old": {"O3": {"outcome": "ok"}},
        "again": {"O3": {"outcome": "ok"}},
    }


def test_a_record_of_another_machine_is_not_added_to(recorded: Path) -> None:
    other = {"about": {**ABOUT, "driver_api": 13010}, "outcomes": {}}
    with pytest.raises(ValueError, match=r"recorded on .*13000.*and this is .*13010"):
        record_kernels.kept_arrays(recorded, other)
