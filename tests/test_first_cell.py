"""The notebook's first cell tells apart: no package, no GPU, an older GPU, a GPU with TMA."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import lesson
from lesson import gpu
from lesson.gpu_status import Device, Facts, judge

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = json.loads((ROOT / "notebooks" / "day76_tma_tile.ipynb").read_text(encoding="utf-8"))
CELL = next("".join(c["source"]) for c in NOTEBOOK["cells"] if c["cell_type"] == "code")


def run_cell() -> None:
    exec(compile(CELL, "first cell", "exec"), {})


def printed_with(facts: Facts, monkeypatch, capsys) -> str:
    monkeypatch.delenv("LESSON_TARGET", raising=False)
    monkeypatch.setattr(gpu, "status", lambda: judge(facts))
    run_cell()
    return capsys.readouterr().out


def machine(*devices: Device) -> Facts:
    return Facts("13.6.0", "", 12090, 12090, devices)


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lesson", None)
    with pytest.raises(ModuleNotFoundError) as missing:
        run_cell()
    said = str(missing.value)
    assert said == (
        "The lesson's package is not installed. "
        f"Put tma_lesson-{lesson.__version__}-py3-none-any.whl beside this notebook (on Colab:"
        " upload it) and run: %pip install tma_lesson-*.whl"
    )
    assert missing.value.__suppress_context__  # one error on the screen, not two


@pytest.mark.parametrize(
    "old",
    [
        Device(0, "Tesla T4", (7, 5)),
        Device(0, "NVIDIA L4", (8, 9)),
        Device(0, "NVIDIA A100-SXM4-40GB", (8, 0)),
    ],
)
def test_a_gpu_without_tma_is_named_and_the_emulator_takes_over(old, monkeypatch, capsys):
    said = printed_with(machine(old), monkeypatch, capsys)
    assert said.startswith("Runs on: the emulator, on the CPU. Why: ")
    assert f"{old.name} (compute capability {old.capability[0]}.{old.capability[1]})" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "facts,reason",
    [
        (Facts(cupy_problem="No module named 'cupy'"), "CuPy must be installed"),
        (Facts("13.6.0", "", 12090, 0), "an NVIDIA driver must be installed"),
        (Facts("13.6.0", "", 12090, 12090), "a GPU must be visible to CUDA"),
        (Facts("14.2.0", "", 13000, 12090), "the driver must know CUDA 13"),
    ],
)
def test_without_a_gpu_the_emulator_takes_over_and_the_reason_is_said(
    facts, reason, monkeypatch, capsys
):
    said = printed_with(facts, monkeypatch, capsys)
    assert said.startswith(f"Runs on: the emulator, on the CPU. Why: {reason}")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "new",
    [
        Device(0, "NVIDIA H100 80GB HBM3", (9, 0)),
        Device(0, "NVIDIA B200", (10, 0)),
        Device(0, "NVIDIA RTX PRO 6000 Blackwell Server Edition", (12, 0)),
    ],
)
def test_a_gpu_with_tma_runs_the_lesson(new, monkeypatch, capsys):
    capability = f"{new.capability[0]}.{new.capability[1]}"
    assert printed_with(machine(new), monkeypatch, capsys) == (
        f"Runs on: {new.name} (compute capability {capability}), live through CuPy.\n"
    )


def test_beside_an_older_gpu_the_one_with_tma_is_taken(monkeypatch, capsys):
    two = machine(Device(0, "Tesla T4", (7, 5)), Device(1, "NVIDIA H100 PCIe", (9, 0)))
    assert "Runs on: NVIDIA H100 PCIe" in printed_with(two, monkeypatch, capsys)
