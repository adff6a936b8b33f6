"""What the wheel holds and asks for, and that environment.yml and the pins keep in step with it."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import lesson

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CUDA_PACKAGE = re.compile(r"^(cuda|cupy|nvidia)-")
PINS = {"constraints.txt": "cu12", "constraints-cu13.txt": "cu13"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-q", "-w", folder, ROOT], check=True, timeout=100)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The wheel unpacked where nothing of the clone is in reach."""
    folder = tmp_path_factory.mktemp("an installed place")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def run_installed(installed: Path, folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(installed), "PATH": "", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(package): version for package, version in pairs}


def test_the_wheel_carries_every_file_of_the_kernels_room(wheel):
    room = ROOT / "lesson" / "kernels"
    files = {path.relative_to(ROOT).as_posix() for path in room.rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name}
    assert "lesson/kernels/tma_tile.cu" in files
    assert files - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_wheel_carries_what_slides_are_made_of(wheel):
    room = ROOT / "lesson" / "slides_template"
    files = {path.relative_to(ROOT).as_posix() for path in room.rglob("*") if path.is_file()}
    assert "lesson/slides_template/static/reveal/LICENSE" in files
    assert files - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_wheel_carries_the_notebook_and_no_tests(wheel):
    packed = zipfile.ZipFile(wheel).namelist()
    assert "lesson/notebooks/day76_tma_tile.ipynb" in packed
    assert {name.split("/")[0] for name in packed} == {"lesson", wheel_info(wheel)}


def wheel_info(wheel: Path) -> str:
    return f"tma_lesson-{lesson.__version__}.dist-info"


def test_the_wheel_says_its_licence_and_its_version(wheel):
    archive = zipfile.ZipFile(wheel)
    metadata = email.message_from_bytes(archive.read(f"{wheel_info(wheel)}/METADATA"))
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Version"] == lesson.__version__
    text = archive.read(f"{wheel_info(wheel)}/licenses/LICENSE").decode()
    assert text == (ROOT / "LICENSE").read_text()


def test_an_installed_package_puts_the_notebook_into_an_empty_folder(installed, tmp_path):
    said = run_installed(installed, tmp_path, "lesson", "notebook")
    assert said.startswith("day76_tma_tile.ipynb\nOpen it with: ")
    written = (tmp_path / "day76_tma_tile.ipynb").read_bytes()
    assert written == (ROOT / "notebooks" / "day76_tma_tile.ipynb").read_bytes()


@pytest.mark.slow
def test_the_lesson_runs_alone_in_an_empty_folder(installed, tmp_path):
    run_installed(installed, tmp_path, "lesson", "notebook")
    said = run_installed(installed, tmp_path, "lesson", "run", "day76_tma_tile.ipynb")
    assert said.startswith("round trip: PASS. 65536 elements, 16 tiles of 64 x 64 floats")
    assert (tmp_path / "out" / "day76_tma_tile.html").stat().st_size > 10_000


@pytest.mark.parametrize("platform,has_cuda", [("linux", True), ("win32", True), ("darwin", False)])
def test_the_base_install_carries_cuda_packages_where_nvidia_has_them(platform, has_cuda):
    wanted = [Requirement(line) for line in PROJECT["dependencies"]]
    here = {"sys_platform": platform}
    names = [r.name for r in wanted if r.marker is None or r.marker.evaluate(here)]
    assert {"numpy", "matplotlib"} <= set(names)
    assert any(map(CUDA_PACKAGE.match, names)) == has_cuda


@pytest.mark.parametrize("extra,major", [("cu12", 12), ("cu13", 13)])
def test_an_extra_takes_all_of_cuda_from_one_major_version(extra, major):
    by_name = {r.name: r for r in map(Requirement, EXTRAS[extra])}
    assert f"cupy-cuda{major}x" in by_name
    for name in ("cuda-python", "cuda-bindings", "cuda-toolkit"):
        allowed = by_name[name].specifier
        assert f"{major}.9.1" in allowed
        assert "11.9" not in allowed
        assert f"{25 - major}.1" not in allowed  # the other one
        assert "14.0" not in allowed
    assert {"cccl", "cudart", "nvrtc"} <= by_name["cuda-toolkit"].extras


def test_no_extra_contradicts_the_base():
    base = {r.name: r.specifier for r in map(Requirement, PROJECT["dependencies"])}
    for name, version in [("cuda-bindings", "12.9.10"), ("cuda-toolkit", "13.0.2")]:
        assert version in base[name]


@pytest.mark.parametrize("name", PINS)
def test_the_pins_meet_what_pyproject_asks_for(name):
    pinned = pins(name)
    lines = [*PROJECT["dependencies"], *EXTRAS["notebook"], *EXTRAS["test"], *EXTRAS[PINS[name]]]
    for requirement in map(Requirement, lines):
        version = pinned[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, requirement


@pytest.mark.parametrize("name", PINS)
def test_the_pins_are_names_and_versions_and_nothing_else(name):
    lines = (ROOT / name).read_text().splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert len(pins(name)) == len(pinned)
    assert [line for line in pinned if not re.fullmatch(r"[\w.-]+==[\w.!+]+", line)] == []


def test_the_pins_keep_nvrtc_and_its_headers_of_one_cuda():
    for name, suffix in [("constraints.txt", "-cu12"), ("constraints-cu13.txt", "")]:
        pinned = pins(name)
        parts = ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-cccl")
        versions = {pinned[part + suffix].rsplit(".", 1)[0] for part in parts}
        assert len(versions) == 1
        assert versions == {".".join(pinned["cuda-toolkit"].split(".")[:2])}


def test_the_conda_environment_installs_what_pyproject_says():
    text = (ROOT / "environment.yml").read_text()
    environment = yaml.safe_load(text)
    python, pip, section = environment["dependencies"]
    assert pip == "pip"
    assert python.removeprefix("python=") in SpecifierSet(PROJECT["requires-python"])
    constraint, target = section["pip"]
    assert (ROOT / constraint.removeprefix("-c ")).is_file()
    extras = Requirement(f"tma-lesson{target.removeprefix('-e .')}").extras
    assert extras == {"notebook"}
    assert extras <= EXTRAS.keys()


def test_the_command_of_the_package_is_there():
    assert PROJECT["scripts"] == {"tma-lesson": "lesson.__main__:main"}
