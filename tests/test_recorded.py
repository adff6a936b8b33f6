"""PTX recorded for machines without NVRTC: it is there, it is current, and an edit says why not."""

from __future__ import annotations

import builtins
import importlib
import re

import pytest

from lesson import compile as nvrtc
from lesson import harness, recorded
from lesson.errors import CompileError
from tests.record_ptx import SHIPPED, run_notebook


@pytest.fixture
def no_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine like a Mac: no wheel of cuda.bindings exists for it."""
    real = importlib.import_module

    def without_cuda(name: str, package: str | None = None) -> object:
        if name.startswith("cuda"):
            raise ModuleNotFoundError(f"No module named {name.split('.')[0]!r}")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without_cuda)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_recording_is_of_the_source_that_is_shipped(name: str):
    kernel = SHIPPED[name][1]
    found = recorded.find(kernel.text, nvrtc.DEFAULT_ARCH)
    assert found, "edited since: run `python -m tests.record_ptx`"
    assert nvrtc.kernel_names(found.text) == (kernel.kernel,)


def test_recorded_ptx_names_no_path_of_a_machine():
    for entry in recorded.index():
        text = recorded.text_of(entry)
        files = re.findall(r'^\s*\.file\s+\d+\s+"([^"]*)"', text, re.MULTILINE)
        assert files
        assert not [path for path in files if path.startswith(("/", ".")) or ":" in path]


def test_without_nvrtc_the_shipped_kernel_is_served_from_its_recording(no_nvrtc: None):
    kernel = harness.kernel_source()
    ptx = nvrtc.to_ptx(kernel.text, name=kernel.name)
    assert ptx.recorded
    assert ptx.kernels == ("loadTileTma",)
    assert ptx.source == kernel.text


def test_without_nvrtc_an_edited_kernel_is_told_why_and_what_to_do(no_nvrtc: None):
    kernel = harness.kernel_source(replace={"+ 1.0f;": "+ 2.0f;"})
    with pytest.raises(CompileError) as caught:
        nvrtc.to_ptx(kernel.text, name=kernel.name)
    assert str(caught.value) == (
        "tma_tile.cu must be source that PTX was recorded for, since nothing here can compile it, "
        "got another text: an edit needs NVRTC. cuda.bindings must be installed, got: No module "
        "named 'cuda'. Install both: pip install \"tma-lesson[cu13]\" (or [cu12]). NVIDIA has no "
        "NVRTC for macOS: there, edit on a Linux or Windows machine, in Colab or on Binder, or run "
        "the lesson unedited."
    )


@pytest.mark.parametrize(
    "options", [{"arch": "compute_100"}, {"macros": {"A": 1}}, {"std": "c++20"}, {"debug": True}]
)
def test_a_recording_serves_only_the_options_it_was_made_with(no_nvrtc: None, options: dict):
    kernel = harness.kernel_source()
    with pytest.raises(CompileError, match="an edit needs NVRTC"):
        nvrtc.to_ptx(kernel.text, name=kernel.name, **options)


def test_a_folder_without_an_index_has_no_recordings(tmp_path: object):
    assert recorded.index(tmp_path) == ()
    assert recorded.find("int x;", "compute_90", tmp_path) is None


def test_serving_a_recording_imports_nothing_of_cuda(no_nvrtc: None, monkeypatch):
    real = builtins.__import__

    def guarded(name: str, *args: object, **kwargs: object) -> object:
        assert name.split(".")[0] not in ("cuda", "cupy"), name
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guarded)
    kernel = harness.kernel_source()
    assert nvrtc.to_ptx(kernel.text, name=kernel.name).recorded


@pytest.mark.slow
def test_without_nvrtc_the_whole_notebook_runs_from_recordings(no_nvrtc: None, monkeypatch):
    """Fails after an edit of a kernel or a cell: run `python -m tests.record_ptx`."""
    monkeypatch.setenv("LESSON_TARGET", "emulator")
    assert "round trip: PASS. 65536 elements" in run_notebook()
