"""Exercises and broken kernels on a real GPU: solutions hold there, and what fails is contained."""

import pytest

from lesson import compile as nvrtc
from lesson import gpu, helpers, mistakes, targets
from lesson.errors import DeviceFault
from lesson.exercises import NAMES, find
from lesson.exercises.judge import MOST_POINTS
from tests.test_mistakes import EDITS

pytestmark = pytest.mark.gpu
FAULTS = ("every-thread-issues", "no-sync-after-init", "map-not-grid-constant")


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_holds_on_the_gpu_as_in_the_emulator(name, monkeypatch):
    monkeypatch.setenv(targets.VARIABLE, "gpu")
    launched = []
    real = gpu.run_isolated
    monkeypatch.setattr(gpu, "run_isolated", lambda *a, **k: launched.append(a[1]) or real(*a, **k))
    assert find(name).check(*find(name).solution_parts()).points == MOST_POINTS
    assert launched == [find(name).piece.kernel]


@pytest.mark.parametrize("like", FAULTS)
def test_a_broken_kernel_of_the_notebook_fails_here_as_it_was_recorded(like):
    source = helpers.edit(*EDITS[like]).source()
    tmap = targets.lesson_map()
    args = [tmap, tmap.base.copy()]
    with pytest.raises(DeviceFault) as caught:
        gpu.run_isolated(
            nvrtc.to_ptx(source.text, name=source.name), source.kernel, targets.full_grid(),
            (targets.threads_per_block(),), args,
        )  # fmt: skip
    assert caught.value.cuda_error == mistakes.recorded()[like].error


def test_after_the_broken_kernels_the_lesson_still_runs(monkeypatch):
    monkeypatch.setenv(targets.VARIABLE, "gpu")
    assert helpers.run_tile_kernel().verdict.startswith("round trip: PASS.")
