"""The set-up behind the make targets: which extras, when to install, what it says if it cannot."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent

SMI_HEAD = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
"""


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


setup_env = load("setup_env")
check_python = load("check_python")


@pytest.fixture
def plan(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "pins.txt").write_text("numpy==2.4.6\n")
    return setup_env.Plan(tmp_path, ("notebook",), tmp_path / "pins.txt")


def pretend_installed(plan) -> None:
    plan.python.parent.mkdir(parents=True)
    plan.python.touch()
    written = {"fingerprint": plan.fingerprint(), "extras": plan.extras}
    written["python"] = setup_env.THIS_PYTHON
    (plan.venv / setup_env.STAMP).write_text(json.dumps(written))


def test_the_cuda_version_is_read_from_what_nvidia_smi_prints():
    assert setup_env.parse_cuda_version(SMI_HEAD) == (13, 0)
    assert setup_env.parse_cuda_version("NVIDIA-SMI has failed") is None


@pytest.mark.parametrize(
    "choice,driver,extra",
    [
        ("auto", None, None),
        ("auto", (11, 8), None),
        ("auto", (12, 0), "cu12"),
        ("auto", (12, 9), "cu12"),
        ("auto", (13, 0), "cu13"),
        ("auto", (14, 1), "cu13"),
        ("none", (13, 0), None),
        ("cu12", (13, 0), "cu12"),
        ("cu13", None, "cu13"),
    ],
)
def test_cupy_is_chosen_after_the_driver_unless_told(choice, driver, extra):
    assert setup_env.cuda_extra(choice, driver) == extra


def test_a_machine_without_nvidia_smi_gets_no_cupy(monkeypatch):
    monkeypatch.setattr(setup_env.shutil, "which", lambda name: None)
    plan = setup_env.make_plan(setup_env.parse(["--extras", "notebook"]))
    assert plan.extras == ("notebook",)
    assert plan.constraints == ROOT / "constraints.txt"


def test_cuda_13_has_pins_of_its_own():
    plan = setup_env.make_plan(setup_env.parse(["--extras", "test,notebook", "--cuda", "cu13"]))
    assert plan.extras == ("cu13", "notebook", "test")
    assert plan.constraints == ROOT / "constraints-cu13.txt"


def test_an_environment_that_was_never_made_is_not_ready(plan):
    assert not setup_env.is_ready(plan)
    assert setup_env.must_start_over(plan)


def test_an_untouched_environment_is_ready(plan):
    pretend_installed(plan)
    assert setup_env.is_ready(plan)


def test_an_extra_that_is_not_there_yet_is_added_to_those_that_are(plan):
    pretend_installed(plan)
    wanted = replace(plan, extras=("test",))
    assert not setup_env.is_ready(wanted)
    assert not setup_env.must_start_over(wanted)
    assert setup_env.with_present(wanted).extras == ("notebook", "test")


@pytest.mark.parametrize("name", ["pyproject.toml", "pins.txt"])
def test_a_changed_file_makes_the_environment_stale_but_keeps_it(plan, name):
    pretend_installed(plan)
    with (plan.root / name).open("a") as file:
        file.write("# changed\n")
    assert not setup_env.is_ready(plan)
    assert not setup_env.must_start_over(plan)


def test_a_clone_that_was_moved_makes_the_environment_stale(plan, tmp_path):
    pretend_installed(plan)
    moved = tmp_path / "moved here"
    moved.mkdir()
    for name in ("pyproject.toml", "pins.txt", ".venv"):
        shutil.move(tmp_path / name, moved / name)
    assert not setup_env.is_ready(replace(plan, root=moved, constraints=moved / "pins.txt"))


def test_an_interpreter_that_has_gone_starts_over(plan):
    pretend_installed(plan)
    plan.python.unlink()
    plan.python.symlink_to(plan.root / "no-such-python")
    assert not setup_env.is_ready(plan)
    assert setup_env.must_start_over(plan)


def test_another_version_of_python_starts_over(plan, monkeypatch):
    pretend_installed(plan)
    monkeypatch.setattr(setup_env, "THIS_PYTHON", "3.99")
    assert setup_env.must_start_over(plan)


def test_cupy_of_another_cuda_starts_over_since_two_of_them_break_each_other(plan):
    pretend_installed(replace(plan, extras=("cu12", "test")))
    assert not setup_env.must_start_over(replace(plan, extras=("notebook",)))
    assert not setup_env.must_start_over(replace(plan, extras=("cu12",)))
    other = replace(plan, extras=("cu13", "notebook"))
    assert setup_env.must_start_over(other)
    assert setup_env.with_present(other).extras == ("cu13", "notebook")


def test_a_python_without_venv_is_told_which_package_to_install(monkeypatch):
    monkeypatch.setattr(setup_env.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(setup_env.SetupError, match="sudo apt install python3-venv"):
        setup_env.check_venv_module()


def test_a_failing_install_is_one_sentence_and_leaves_no_stamp(plan, monkeypatch, capsys):
    pretend_installed(plan)
    (plan.root / "pyproject.toml").write_text("changed\n")
    monkeypatch.setattr(setup_env, "make_plan", lambda options: plan)
    plan.python.unlink()
    plan.python.symlink_to(shutil.which("false"))
    assert setup_env.main(["--extras", "notebook"]) == 1
    assert "pip install failed; its own words stand above. It was:" in capsys.readouterr().err
    assert not (plan.venv / setup_env.STAMP).exists()


def test_pins_that_are_not_there_are_refused(capsys):
    assert setup_env.main(["--constraints", "nowhere.txt"]) == 1
    assert "must be a file or 'none', got nowhere.txt" in capsys.readouterr().err


def test_a_python_that_is_too_old_is_told_which_one_would_do(tmp_path):
    for name in ("python3.11", "python3.9", "python3.13"):
        (tmp_path / name).touch(mode=0o755)
    said = check_python.complaint((3, 9, 2), "/usr/bin/python3", str(tmp_path))
    assert said == (
        "Python must be 3.11 or newer, got 3.9 (/usr/bin/python3). Say: make PYTHON=python3.13 ..."
    )


def test_a_python_that_is_too_old_and_alone_is_told_to_install_one(tmp_path):
    said = check_python.complaint((2, 7), "python", str(tmp_path))
    assert said.endswith("Install one, or name it: make PYTHON=...")


def test_a_python_that_is_new_enough_is_not_complained_of():
    assert check_python.complaint((3, 11, 0), "python3", "") is None
    assert check_python.complaint((4, 0, 0), "python4", "") is None


def test_the_python_check_itself_runs_on_python_2_syntax():
    text = (ROOT / "scripts" / "check_python.py").read_text()
    assert 'f"' not in text
    assert "->" not in text


def old_python() -> str | None:
    """A Python below 3.11 that runs, if this machine has one."""
    names = ["python2.7", "python3.6", "python3.7", "python3.8", "python3.9", "python3.10"]
    for name in filter(shutil.which, names):
        if subprocess.run([name, "-c", ""], check=False, capture_output=True).returncode == 0:
            return name
    return None


@pytest.mark.skipif(old_python() is None, reason="no Python older than 3.11 on this machine")
def test_an_old_python_prints_the_sentence_and_not_a_syntax_error():
    script = str(ROOT / "scripts" / "check_python.py")
    ran = subprocess.run([old_python(), script], check=False, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Python must be 3.11 or newer, got ")
