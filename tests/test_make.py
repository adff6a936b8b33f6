"""The make targets, run for real in a copy of the project whose path has spaces in it.

Nothing is downloaded: the set-up's pip builds with the hatchling that the tests have already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

ROOT = Path(__file__).resolve().parent.parent
ROUND_TRIP = "round trip: PASS. In a path with spaces."
COPIED = ["Makefile", "LICENSE", "README.md", "pyproject.toml", "constraints.txt"]
COPIED += ["scripts", "lesson", "notebooks"]
# What an outer make hands down, and would change what an inner one does.
OUTER = ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHON", "NO_INSTALL", "VENV_ARGS"]
OUTER += ["CUDA", "CONSTRAINTS", "NOTEBOOK", "OUT", "PYTEST_ARGS", "LAB_ARGS"]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the targets need, with a notebook of one cell in place of the lesson."""
    root = tmp_path / "a path with spaces" / "day 76 (it's here)"
    root.mkdir(parents=True)
    for name in COPIED:
        ignore = shutil.ignore_patterns("__pycache__")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, root / name)
    cell = new_code_cell(f"import lesson\nprint({ROUND_TRIP!r})\nprint(lesson.__file__)")
    nbformat.write(new_notebook(cells=[cell]), root / "notebooks" / "day76_tma_tile.ipynb")
    return root


def make(project: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in OUTER}
    return subprocess.run(
        ["make", *arguments],
        cwd=project,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def executed_text(project: Path, out: str = "out") -> str:
    notebook = nbformat.read(project / out / "day76_tma_tile.ipynb", as_version=4)
    return notebook.cells[0].outputs[0].text


def test_make_alone_lists_the_commands(project):
    said = make(project).stdout
    for target in ("lesson", "lab", "slides", "test", "gpu-test", "format", "clean"):
        assert f"make {target} " in said


def test_make_lesson_sets_up_in_a_path_with_spaces_and_is_quick_the_second_time(project):
    offline = {
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads the negation: this switches isolation off
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "JUPYTER_PATH": str(Path(sys.prefix) / "share" / "jupyter"),
    }
    arguments = ["lesson", f"PYTHON={sys.executable}", "CUDA=none"]
    first = make(project, *arguments, **offline)
    assert first.returncode == 0, first.stderr
    assert "setting up .venv (notebook)" in first.stdout
    assert f"{ROUND_TRIP}\nexecuted notebook: out/day76_tma_tile.ipynb\n" in first.stdout
    assert (project / "out" / "day76_tma_tile.html").is_file()
    assert executed_text(project).splitlines()[1] == str(project / "lesson" / "__init__.py")

    start = time.monotonic()
    second = make(project, *arguments, **offline)
    assert second.returncode == 0, second.stderr
    assert "setting up" not in second.stdout
    assert time.monotonic() - start < 25


def test_nothing_is_installed_when_told_so(project):
    ran = make(project, "lesson", "NO_INSTALL=1", f"PYTHON={sys.executable}", "OUT=out of the way")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"{ROUND_TRIP}\n")
    assert executed_text(project, "out of the way").splitlines()[1].startswith(str(project))
    assert not (project / ".venv").exists()


def test_a_failing_notebook_fails_the_command(project):
    cell = new_code_cell("1 / 0")
    nbformat.write(new_notebook(cells=[cell]), project / "broken lesson.ipynb")
    ran = make(
        project,
        "lesson",
        "NO_INSTALL=1",
        f"PYTHON={sys.executable}",
        "NOTEBOOK=broken lesson.ipynb",
    )
    assert ran.returncode != 0
    assert "Code cell 1 (1 / 0) failed: ZeroDivisionError: division by zero" in ran.stderr


def test_a_python_that_is_not_there_is_named(project):
    ran = make(project, "lesson", "PYTHON=python9.99")
    assert ran.returncode != 0
    assert "set-up: no command python9.99 here. Install Python 3.11 or newer" in ran.stderr


def test_a_python_without_venv_is_told_what_to_install(project, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['ensurepip'] = None\n")
    ran = make(project, "lesson", f"PYTHON={sys.executable}", PYTHONPATH=str(tmp_path))
    assert ran.returncode != 0
    assert "has no module ensurepip" in ran.stderr
    assert "sudo apt install python3-venv" in ran.stderr
    assert not (project / ".venv").exists()


def test_clean_keeps_the_environment_and_the_sources(project):
    for name in ("out", ".venv", "lesson/__pycache__"):
        (project / name).mkdir(parents=True)
    assert make(project, "clean").returncode == 0
    assert not (project / "out").exists()
    assert not (project / "lesson" / "__pycache__").exists()
    assert (project / ".venv").is_dir()
    assert (project / "lesson" / "errors.py").is_file()


@pytest.mark.parametrize(
    "target,steps",
    [
        ("lab", ["--extras notebook", "-m jupyterlab"]),
        ("slides", ["--extras notebook", "-m lesson slides"]),
        ("test", ["--extras notebook,test", "ruff check", "ruff format --check", "--nbval"]),
        ("gpu-test", ["--extras notebook,test", "info --require gpu", "pytest -m gpu", "--nbval"]),
    ],
)
def test_a_target_takes_these_steps_in_this_order(project, target, steps):
    said = make(project, "-n", target, "LAB_ARGS=--no-browser").stdout
    places = [said.find(step) for step in steps]
    assert -1 not in places
    assert places == sorted(places)


def test_continuous_integration_is_make_test():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == "make test"
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
