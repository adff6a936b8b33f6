"""Which headers NVRTC is given: of one place, of its version, never of another major one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

from lesson import cuda_headers
from lesson.cuda_headers import Headers, choose
from lesson.errors import CompileError


def place(origin: str, version: tuple[int, int] | None) -> Headers:
    return Headers(origin, (Path(origin),), version)


def make(include: Path, version: int | None, *, cccl: Path | None = None) -> None:
    """A folder that looks like CUDA's headers."""
    include.mkdir(parents=True, exist_ok=True)
    if version is not None:
        (include / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {version}\n")
    if cccl is not None:
        (cccl / "cuda").mkdir(parents=True)
        (cccl / "cuda" / "ptx").write_text("")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose only CUDA is what a test puts into this folder."""
    roots = {"nvidia": tmp_path / "site" / "nvidia", "cupy": tmp_path / "site" / "cupy"}

    def find_spec(name: str) -> object:
        there = roots[name].is_dir()
        return SimpleNamespace(submodule_search_locations=[str(roots[name])]) if there else None

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(cuda_headers, "SYSTEM_ROOTS", (tmp_path / "system",))
    for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "nvrtc, expected",
    [((12, 9), "wheels"), ((12, 6), "toolkit"), ((13, 0), "new"), ((12, 4), "cupy")],
)
def test_the_same_version_wins_then_cupys_copy(nvrtc: tuple[int, int], expected: str):
    candidates = [
        place("wheels", (12, 9)),
        place("toolkit", (12, 6)),
        place("new", (13, 0)),
        place("cupy", None),
    ]
    assert choose(nvrtc, candidates).origin == expected


def test_without_a_copy_of_its_own_version_the_nearest_of_the_same_major_version_serves():
    candidates = [place("far", (12, 0)), place("near", (12, 8)), place("other", (13, 9))]
    assert choose((12, 9), candidates).origin == "near"


def test_headers_of_another_major_version_are_refused_by_name():
    with pytest.raises(CompileError) as caught:
        choose((13, 1), [place("the CUDA 12 wheels", (12, 9))])
    assert str(caught.value) == (
        "CUDA headers must be of NVRTC's major version (13), got: the CUDA 12 wheels (12.9). "
        'Install them: pip install "cuda-toolkit[cccl,cudart]==13.1.*".'
    )


def test_no_headers_at_all_is_said():
    with pytest.raises(CompileError, match="got: none"):
        choose((12, 9), [])


def test_wheels_of_cuda_12_are_found_as_one_place(machine: Path):
    nvidia = machine / "site" / "nvidia"
    cccl = nvidia / "cuda_cccl" / "include"
    make(nvidia / "cuda_runtime" / "include", 12090, cccl=cccl)
    (found,) = cuda_headers.find_all()
    assert found.cuda_version == (12, 9)
    assert found.include_dirs == (cccl, nvidia / "cuda_runtime" / "include")


def test_wheels_of_cuda_13_keep_libcudacxx_in_a_folder_of_their_own(machine: Path):
    include = machine / "site" / "nvidia" / "cu13" / "include"
    make(include, 13050, cccl=include / "cccl")
    (found,) = cuda_headers.find_all()
    assert found.cuda_version == (13, 5)
    assert found.include_dirs == (include / "cccl", include)


def test_runtime_headers_without_libcudacxx_do_not_serve(machine: Path):
    make(machine / "site" / "nvidia" / "cu13" / "include", 13000)
    assert cuda_headers.find_all() == []


def test_a_toolkit_is_found_by_its_variable_and_by_its_usual_place(
    machine: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, version in (("system", 13000), ("mine", 12060)):
        include = machine / name / "include"
        make(include, version, cccl=include)
    monkeypatch.setenv("CUDA_PATH", str(machine / "mine"))
    assert [found.cuda_version for found in cuda_headers.find_all()] == [(12, 6), (13, 0)]


def test_one_toolkit_under_two_names_counts_once(machine: Path, monkeypatch: pytest.MonkeyPatch):
    include = machine / "system" / "include"
    make(include, 13000, cccl=include)
    (machine / "link").symlink_to(machine / "system")
    monkeypatch.setenv("CUDA_HOME", str(machine / "link"))
    assert len(cuda_headers.find_all()) == 1


def test_cupys_copy_is_found_and_fits_every_version(machine: Path):
    include = machine / "site" / "cupy" / "_core" / "include" / "cupy" / "_cccl" / "libcudacxx"
    make(include, None, cccl=include)
    (found,) = cuda_headers.find_all()
    assert found.cuda_version is None
    assert choose((13, 2), [found]) is found


def test_this_machine_has_headers_for_its_nvrtc():
    for headers in cuda_headers.find_all():
        assert all(folder.is_dir() for folder in headers.include_dirs)
