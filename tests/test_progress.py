"""The bar for what takes long: there when it should be, gone afterwards, silent for quick runs."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
import time

import pytest

from lesson import helpers, progress
from lesson.emulator.limits import Limits
from lesson.errors import LimitExceeded

ENDLESS = "for (volatile float* p = &tile[0][0]; threadIdx.x < 999; ) *p += 1.0f;"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr(progress, "DELAY_S", 0.05)
    monkeypatch.setattr(progress, "TICK_S", 0.02)


def test_what_takes_long_shows_a_bar_with_the_limit_that_goes_away(impatient, capsys):
    with progress.shown("thinking", 120):
        time.sleep(0.5)
    said = capsys.readouterr().err
    assert "thinking: 0 s of at most 120 s |" in said
    assert said.endswith("\r")  # cleared


def test_what_is_quick_shows_nothing(capsys):
    with progress.shown("thinking", 120):
        pass
    assert capsys.readouterr().err == ""


def test_an_interrupt_passes_through_and_leaves_no_thread(impatient):
    before = threading.active_count()

    def interrupted():
        with progress.shown("thinking", 120):
            time.sleep(0.1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert progress_threads() == []
    assert threading.active_count() <= before + 1  # tqdm keeps one monitor


def progress_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if getattr(t, "_target", None) is progress._tick]


def test_a_machine_without_tqdm_runs_without_a_bar(impatient, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with progress.shown("thinking", 120):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_tqdm_s_own_switch_turns_it_off(impatient, monkeypatch, capfd):
    code = (
        "import time; from lesson import progress; progress.DELAY_S = 0.01\n"
        "with progress.shown('thinking', 1): time.sleep(0.6)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "thinking" in capfd.readouterr().err
    monkeypatch.setenv("TQDM_DISABLE", "1")
    subprocess.run([sys.executable, "-c", code], check=True)
    assert capfd.readouterr().err == ""


def test_a_kernel_that_does_not_end_shows_the_bar(impatient, monkeypatch, capsys):
    launching = importlib.import_module("lesson.emulator.launch")
    monkeypatch.setattr(launching, "Limits", lambda: Limits(seconds=2.5))
    endless = helpers.edit("kernel", "bar.wait(cuda::std::move(token));", ENDLESS)
    with pytest.raises(LimitExceeded):
        helpers.what_happens(endless)
    assert "the emulator runs a kernel: 1 s of at most 120 s" in capsys.readouterr().err
