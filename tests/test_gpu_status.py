"""The gate: every reason for no GPU is told apart, in one sentence, without a GPU to try it on."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import pytest

from lesson import gpu, gpu_status
from lesson.errors import TargetError
from lesson.gpu_status import Device, Facts, judge


def device(name: str, major: int, minor: int, index: int = 0) -> Device:
    return Device(index, name, (major, minor))


def facts(*devices: Device, cupy_cuda: int = 13000, driver_cuda: int = 13000) -> Facts:
    return Facts("14.2.0", "", cupy_cuda, driver_cuda, devices)


H200 = device("NVIDIA H200", 9, 0)


def test_a_hopper_gpu_will_do_and_is_named_as_the_program_names_it():
    found = judge(facts(H200))
    assert found.ok
    assert found.device == H200
    assert found.says == "NVIDIA H200 (compute capability 9.0)"


@pytest.mark.parametrize(
    "newer", [device("NVIDIA B200", 10, 0), device("NVIDIA GeForce RTX 5090", 12, 0)]
)
def test_newer_gpus_will_do(newer: Device):
    assert judge(facts(newer)).device == newer


def test_the_first_gpu_that_will_do_is_taken():
    second = device("NVIDIA H100 PCIe", 9, 0, index=1)
    assert judge(facts(device("Tesla T4", 7, 5), second)).device == second


@pytest.mark.parametrize(
    "old, spelled",
    [
        (device("Tesla T4", 7, 5), "Tesla T4 (compute capability 7.5)"),
        (device("NVIDIA L4", 8, 9), "NVIDIA L4 (compute capability 8.9)"),
        (device("NVIDIA A100-SXM4-40GB", 8, 0), "NVIDIA A100-SXM4-40GB (compute capability 8.0)"),
    ],
)
def test_a_gpu_without_tma_is_named(old: Device, spelled: str):
    found = judge(facts(old))
    assert (found.ok, found.kind, found.device) == (False, "old-device", None)
    assert found.says == (
        "the GPU must have compute capability 9.0 or higher, for its TMA engine, got "
        f"{spelled}. An H100, H200, B200 or RTX 50 series GPU has one."
    )


def test_every_other_reason_has_a_kind_and_a_sentence_of_its_own():
    cases = {
        "no-cupy": Facts(cupy_problem="No module named 'cupy'"),
        "no-driver": Facts("14.2.0", "", 12090, 0, (), "cudaErrorInsufficientDriver"),
        "no-device": Facts("14.2.0", "", 13000, 13000, (), "cudaErrorNoDevice: no device"),
        "old-driver": facts(H200, cupy_cuda=13000, driver_cuda=12080),
    }
    found = {kind: judge(case) for kind, case in cases.items()}
    assert {kind: each.kind for kind, each in found.items()} == {kind: kind for kind in cases}
    assert found["no-cupy"].reason == (
        "CuPy must be installed to use a GPU, got: No module named 'cupy'. "
        'pip install "tma-lesson[cu13]", or [cu12] for a driver of CUDA 12.'
    )
    assert found["no-driver"].reason == (
        "an NVIDIA driver must be installed to use a GPU, got none. Install one, or start the "
        "container with GPU access."
    )
    assert found["no-device"].reason == (
        "a GPU must be visible to CUDA, got: cudaErrorNoDevice: no device. Check nvidia-smi and "
        "the variable CUDA_VISIBLE_DEVICES."
    )
    assert found["old-driver"].reason == (
        "the driver must know CUDA 13, which CuPy was built for, got a driver of CUDA 12.8. "
        "Update the driver, or install CuPy for CUDA 12."
    )


def test_an_old_driver_is_named_even_when_it_hides_the_device():
    hidden = Facts("14.2.0", "", 13000, 12040, (), "cudaErrorInsufficientDriver: ...")
    assert judge(hidden).kind == "old-driver"


def test_within_a_major_version_an_older_driver_will_do():
    assert judge(facts(H200, cupy_cuda=12090, driver_cuda=12020)).ok


def test_requiring_a_gpu_raises_the_reason():
    with pytest.raises(TargetError, match="CuPy must be installed"):
        gpu.require(judge(Facts(cupy_problem="none")))
    assert gpu.require(judge(facts(H200))) == H200


class RuntimeProblem(RuntimeError):
    """Stands in for CuPy's CUDARuntimeError."""


def fake_cupy(**calls: object) -> SimpleNamespace:
    runtime = SimpleNamespace(
        CUDARuntimeError=RuntimeProblem,
        runtimeGetVersion=lambda: 12090,
        driverGetVersion=lambda: 13000,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda i: {"name": b"NVIDIA H200", "major": 9, "minor": 0},
    )
    vars(runtime).update(calls)
    return SimpleNamespace(__version__="14.2.0", cuda=SimpleNamespace(runtime=runtime))


def look_with(monkeypatch: pytest.MonkeyPatch, cupy: object) -> Facts:
    def import_module(name: str) -> object:
        if isinstance(cupy, Exception):
            raise cupy
        return cupy

    monkeypatch.setattr(gpu_status, "importlib", SimpleNamespace(import_module=import_module))
    return gpu_status.look()


def raising(text: str) -> object:
    def call(*_: object) -> None:
        raise RuntimeProblem(text)

    return call


def test_looking_reads_devices_through_cupy(monkeypatch: pytest.MonkeyPatch):
    found = look_with(monkeypatch, fake_cupy())
    assert found == Facts("14.2.0", "", 12090, 13000, (H200,))


def test_whatever_goes_wrong_while_looking_is_a_fact(monkeypatch: pytest.MonkeyPatch):
    broken = ImportError("\n=====\nFailed to import CuPy.\nlibnvrtc.so.12 not found")
    assert look_with(monkeypatch, broken).cupy_problem == "Failed to import CuPy."
    assert look_with(monkeypatch, SimpleNamespace()).cupy_problem  # a folder named cupy, say
    no_driver = fake_cupy(driverGetVersion=raising("cudaErrorUnknown: x"))
    assert look_with(monkeypatch, no_driver).driver_cuda == 0
    no_device = fake_cupy(getDeviceCount=raising("cudaErrorNoDevice: none"))
    assert look_with(monkeypatch, no_device).device_problem == "cudaErrorNoDevice: none"


def test_looking_at_this_machine_never_raises():
    found = judge(Facts()) if importlib.util.find_spec("cupy") is None else gpu_status.status()
    assert found.ok == (found.kind == "ok")
    assert found.reason.endswith(".")
