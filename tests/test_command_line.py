"""`python -m lesson`: its commands are found, and every bad command line gets a clear answer."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from lesson import __main__ as command_line
from lesson import __version__, info, targets
from lesson import compile as compiler
from lesson.errors import CompileError, TargetError

EMULATOR = targets.Target(targets.Name.EMULATOR, "no NVIDIA driver here")
H200 = targets.Target(targets.Name.GPU, "NVIDIA H200 (compute capability 9.0)")


def choose(monkeypatch, target: targets.Target) -> None:
    monkeypatch.setattr(targets, "choose", lambda: target)


def fails(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        command_line.main([*arguments])
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_no_command_at_all_is_answered_with_the_usage(capsys):
    said = fails(capsys)
    assert said.startswith("usage: python -m lesson ")
    assert "required: COMMAND" in said


def test_a_mistyped_command_is_answered_with_a_guess(capsys):
    assert "invalid choice: 'rnu'" in (said := fails(capsys, "rnu"))
    assert said.endswith("Did you mean run?\n")


def test_a_command_that_resembles_nothing_is_answered_with_the_choices(capsys):
    said = fails(capsys, "zzz")
    assert all(name in said for name in ("run", "notebook", "info"))
    assert "Did you mean" not in said


def test_an_option_that_is_not_there_is_named(capsys):
    assert "unrecognized arguments: --tmeout" in fails(capsys, "run", "--tmeout", "3")


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"tma-lesson {__version__}\n"


def test_every_command_explains_itself(capsys):
    with pytest.raises(SystemExit):
        command_line.main(["--help"])
    said = capsys.readouterr().out
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for module in command_line.COMMANDS:
        module.add_to(commands)
    assert set(commands.choices) >= {"run", "notebook", "info"}
    for name, command in commands.choices.items():
        assert f"\n    {name} " in said
        assert command.get_default("main") is not None
        assert len(command.description) > 100


def test_being_interrupted_is_no_traceback(monkeypatch, capsys):
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(info, "report", interrupt)
    assert command_line.main(["info"]) == 130
    assert capsys.readouterr().err == "\nlesson info: stopped\n"


def test_the_module_runs_as_a_program():
    ran = subprocess.run(
        [sys.executable, "-m", "lesson", "no-such-command"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert "invalid choice: 'no-such-command'" in ran.stderr


def test_info_says_what_was_found_and_which_target_and_why(monkeypatch, capsys):
    choose(monkeypatch, EMULATOR)
    assert command_line.main(["info"]) == 0
    said = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    expected = ["tma-lesson", "Python", "system", "processors", "numpy", "matplotlib"]
    expected += ["Jupyter", "CuPy", "cuda-bindings", "NVRTC", "headers", "GPU", "target"]
    assert list(said) == expected
    assert said["target"].strip() == "emulator: no NVIDIA driver here"
    assert said["Python"].strip().startswith(".".join(map(str, sys.version_info[:3])))


def test_info_as_json_is_one_object(monkeypatch, capsys):
    choose(monkeypatch, H200)
    assert command_line.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["target"] == "gpu: NVIDIA H200 (compute capability 9.0)"


@pytest.mark.parametrize("target,status", [(EMULATOR, 1), (H200, 0)])
def test_info_fails_when_a_gpu_is_required_and_there_is_none(monkeypatch, target, status):
    choose(monkeypatch, target)
    assert command_line.main(["info", "--require", "gpu"]) == status


def test_info_survives_what_is_broken_and_reports_it(monkeypatch, capsys):
    def no_target() -> targets.Target:
        raise TargetError("LESSON_TARGET must be gpu, emulator or auto, got 'tpu'.")

    def no_nvrtc() -> tuple[int, int]:
        raise CompileError("NVRTC must be installed, got none.")

    monkeypatch.setattr(targets, "choose", no_target)
    monkeypatch.setattr(compiler, "nvrtc_version", no_nvrtc)
    monkeypatch.setattr(info.metadata, "version", not_installed)
    monkeypatch.setattr(info.shutil, "which", lambda name: None)
    assert command_line.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["target"] == "none: LESSON_TARGET must be gpu, emulator or auto, got 'tpu'."
    assert facts["NVRTC"] == facts["headers"] == "NVRTC must be installed, got none."
    assert facts["CuPy"] == facts["numpy"] == "not installed"
    assert facts["GPU"] == "none: no nvidia-smi here, so no NVIDIA driver"


def not_installed(name: str) -> str:
    raise info.metadata.PackageNotFoundError(name)


def nvidia_smi(folder: Path, monkeypatch, script: str) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setattr(info.shutil, "which", lambda name: str(tool))


def test_info_lists_each_gpu(tmp_path, monkeypatch):
    line = "NVIDIA H200, 9.0, 143771 MiB, 580.159.04"
    nvidia_smi(tmp_path, monkeypatch, f"echo '{line}'; echo 'Tesla T4, 7.5, 15360 MiB, 580.159.04'")
    assert info.gpus() == (
        "NVIDIA H200 (compute capability 9.0, 143771 MiB, driver 580.159.04); "
        "Tesla T4 (compute capability 7.5, 15360 MiB, driver 580.159.04)"
    )


def test_info_quotes_an_nvidia_smi_that_fails(tmp_path, monkeypatch):
    nvidia_smi(tmp_path, monkeypatch, "echo NVIDIA-SMI has failed; exit 9")
    assert info.gpus() == "unknown: nvidia-smi failed (NVIDIA-SMI has failed)"


def test_two_cupys_at_once_are_both_named(monkeypatch):
    monkeypatch.setattr(info.metadata, "version", lambda name: "14.2.0")
    assert info.cupy() == "cupy-cuda12x 14.2.0 and cupy-cuda13x 14.2.0 and cupy 14.2.0"


def test_the_home_folder_is_shortened(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert info.tilde(tmp_path / "clone") == "~/clone"
    assert info.tilde(Path("/opt/clone")) == "/opt/clone"


def test_the_notebook_is_copied_once_and_never_over_an_edited_one(tmp_path, capsys):
    assert command_line.main(["notebook", str(tmp_path / "new folder")]) == 0
    copy = tmp_path / "new folder" / "day76_tma_tile.ipynb"
    assert capsys.readouterr().out.startswith(f"{copy}\nOpen it with: python -m jupyterlab ")
    copy.write_text("my own edits")
    assert command_line.main(["notebook", str(tmp_path / "new folder")]) == 2
    assert f"{copy} is there already. Move it away" in capsys.readouterr().err
    assert copy.read_text() == "my own edits"


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert command_line.main(["notebook", str(tmp_path / "file" / "below")]) == 2
    assert "FOLDER must be one to write to, got" in capsys.readouterr().err
