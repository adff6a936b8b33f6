"""Every recorded answer of the H200 under tests/data, and the replay itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conformance import FILES, SETS, replay
from tests.conformance.__main__ import main
from tests.conformance.outcome import compare, same_ending
from tests.conformance.threads import difference

DATA = Path(__file__).parent / "data"
CASES = {
    "encode": 751,
    "load": 300,
    "store": 300,
    "alu": 855,
    "mbarrier": 300,
    "mbarrier_errors": 13,
    "warp": 68,
    "atom": 279,
    "memory": 129,
    "control": 30,
}
EDGES = {
    ("edges_alu", "alu"): 331,
    ("edges_sync", "mbarrier_errors"): 92,
    ("edges_sync", "atom"): 40,
    ("edges_sync", "control"): 12,
}


def all_agree(name: str, schedule: str, folder: Path = DATA, count: int | None = None) -> None:
    outcomes = list(replay(folder, name, schedule))
    assert len(outcomes) == (CASES[name] if count is None else count)
    different = [f"{name}: {o.case}\n{o.difference}" for o in outcomes if o.difference is not None]
    assert not different, f"{len(different)} differ; the first:\n" + "\n\n".join(different[:3])


@pytest.mark.parametrize("name", SETS)
def test_the_emulator_answers_as_the_h200_did(name: str) -> None:
    all_agree(name, "eager")


@pytest.mark.parametrize("folder, name", EDGES)
def test_it_does_so_where_the_sets_leave_questions_open(folder: str, name: str) -> None:
    all_agree(name, "eager", DATA / folder, EDGES[folder, name])


@pytest.mark.parametrize("schedule", ["late", "random"])
@pytest.mark.parametrize("name", ["load", "store", "memory"])
def test_it_does_so_whenever_the_copies_land(name: str, schedule: str) -> None:
    all_agree(name, schedule)


def test_a_folder_without_recordings_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 2
    assert "got none of alu.npz, encode.json" in capsys.readouterr().out


def test_a_difference_is_printed_in_full_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = json.loads((DATA / "encode.json").read_text())[:2]
    rows[1]["result"] = "CUDA_SUCCESS"
    (tmp_path / "encode.json").write_text(json.dumps(rows))
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("encode: 1/2")
    assert "encode 1" in printed
    assert "'offset': 4" in printed


def test_only_the_files_that_are_there_are_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = json.loads((DATA / "encode.json").read_text())[:5]
    (tmp_path / "encode.json").write_text(json.dumps(rows))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("encode: 5/5")
    assert set(FILES) == set(SETS)


def test_a_case_that_breaks_the_emulator_counts_as_a_difference(tmp_path: Path) -> None:
    rows = json.loads((DATA / "encode.json").read_text())[:2]
    rows[0]["dims"] = 7
    (tmp_path / "encode.json").write_text(json.dumps(rows))
    first, second = replay(tmp_path, "encode")
    assert "TypeError" in str(first.difference)
    assert second.difference is None


@pytest.mark.parametrize(
    "recorded, got, same",
    [
        ("ok", "ok", True),
        ("cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", True),
        ("cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS", True),
        ("cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_INSTRUCTION", False),
        ("ok", "UnsupportedPtx", False),
        ("timeout", "hang", True),
        ("timeout", "ok", False),
    ],
)
def test_endings_are_compared_by_the_error_and_not_by_its_spelling(recorded, got, same) -> None:
    assert same_ending(recorded, got) is same


def test_only_the_bits_of_a_mask_are_compared() -> None:
    def run(module: str, kernel: str, grid: object, block: object, args: list) -> None:
        args[-1][:] = [0x1234, 0x5678]

    meta = {"set": "warp", "name": "x.b32", "module": "", "out": ["u4", 2], "outcome": "ok"}
    meta |= {"struct": "", "grid": [1, 1, 1], "block": [1, 1, 1]}
    recorded = np.array([0x1234, 0xFF78], np.uint32)
    assert "word 1" in str(difference(run, meta, [], recorded))
    assert difference(run, meta, [], recorded, np.array([2**32 - 1, 0xFF], np.uint32)) is None


def test_nans_are_equal_lane_by_lane_and_only_where_the_recording_allows() -> None:
    one, other = np.array([0x7FFF_3C00], np.uint32), np.array([0x7E01_3C00], np.uint32)
    assert compare(one, other, "f16x2", any_nan=True) is None
    assert compare(one, other, "f16x2") is not None
    assert compare(one, other ^ np.uint32(1), "f16x2", any_nan=True) is not None
