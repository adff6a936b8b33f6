"""The benchmark of the emulator runs, and says what it should; docs/emulator.md has its numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import emulator as benchmark
from benchmarks.emulator_child import class_of
from lesson import recorded
from lesson.kernel_source import TileKernel

FOLDER = Path(benchmark.__file__).parent


@pytest.fixture(scope="module")
def ptx_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = recorded.find(TileKernel().source().text, "compute_90")
    assert found is not None
    path = tmp_path_factory.mktemp("benchmark") / "lesson.ptx"
    path.write_text(found.text, encoding="utf-8")
    return path


def child(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, str(FOLDER / "emulator_child.py"), *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


def test_a_size_is_launched_measured_and_checked(ptx_path: Path) -> None:
    found = child("size", ptx_path, 256, 2)
    assert found["right"] is True
    assert (found["copies"], found["batches"], len(found["seconds"])) == (16, 1, 2)
    assert 0 < found["added_nbytes"] < found["peak_nbytes"] < 1 << 30


def test_classes_of_instructions_add_up_to_the_launch(ptx_path: Path) -> None:
    found = child("classes", ptx_path, 256, 3)
    assert {"tensor copies", "mbarriers", "loads", "stores"} <= set(found["classes"])
    assert sum(found["classes"].values()) == pytest.approx(found["total_seconds"], rel=0.5)


@pytest.mark.parametrize(
    "name,kind",
    [
        ("cp.async.bulk.tensor.2d.shared::cluster.global", "tensor copies"),
        ("ld.shared.f32", "loads"),
        ("st.global.f32", "stores"),
        ("ldmatrix.sync.aligned", "arithmetic and moves"),
        ("bar.sync", "barriers, warps, fences"),
    ],
)
def test_an_instruction_has_one_class(name: str, kind: str) -> None:
    assert class_of(name) == kind


def test_the_report_names_the_ratio_the_sizes_and_the_classes(ptx_path: Path) -> None:
    size = child("size", ptx_path, 256, 2)
    found = {
        "date": "2026-11-29",
        "machine": "a machine",
        "python": "3.11",
        "numpy": "2",
        "numba": {"seconds": [2.0, 1.5], "cpu_seconds": [1.0], "version": "0", "right": True},
        "sizes": {"256": {**size, "seconds": [0.002, 0.003], "cpu_seconds": [0.002]}},
        "parsing": child("parse", ptx_path, 1),
        "classes": {"total_seconds": 0.002, "classes": {"loads": 0.001}},
    }
    text = benchmark.report(found)
    assert "750 times as long (processor 500)" in text
    assert "256 x 256     2.0 ms     2.5 ms     2.0 ms       30.5" in text
    assert "loads                        1000 us   50%" in text
    assert "of a first run" in text
