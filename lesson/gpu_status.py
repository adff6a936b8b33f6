"""Whether a GPU here can run TMA code, and why not: one sentence for each reason.

`look` gathers facts through CuPy; `judge` turns facts into a verdict and knows no CuPy, so that
every verdict can be had on every machine. A kernel needs CuPy, a driver, a device of compute
capability 9.0 or higher (the TMA engine came with Hopper), and a driver that knows CuPy's CUDA.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import lru_cache

Capability = tuple[int, int]

TMA_CAPABILITY: Capability = (9, 0)


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, as the driver names it."""

    index: int
    name: str
    capability: Capability


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found. Versions are CUDA's integers, 1000 * major + 10 * minor; 0 is none."""

    cupy_version: str = ""
    cupy_problem: str = ""
    cupy_cuda: int = 0  # the CUDA that CuPy was built for
    driver_cuda: int = 0  # the newest CUDA that the driver knows
    devices: tuple[Device, ...] = ()
    device_problem: str = ""


@dataclass(frozen=True, slots=True)
class GpuStatus:
    """The verdict. `kind` is a short stable name, `reason` one sentence for a reader."""

    ok: bool
    kind: str  # ok, no-cupy, no-driver, no-device, old-device, old-driver
    reason: str
    facts: Facts
    device: Device | None = None

    @property
    def says(self) -> str:
        """What a first line of output says: the device, or why there is none."""
        return describe(self.device) if self.ok and self.device else self.reason


def describe(device: Device) -> str:
    """`NVIDIA H200 (compute capability 9.0)`, as tma_tile.cu prints it."""
    return f"{device.name} (compute capability {_dotted(device.capability)})"


def judge(facts: Facts) -> GpuStatus:
    """The first thing that is missing, or the first device that will do."""

    def missing(kind: str, reason: str) -> GpuStatus:
        return GpuStatus(False, kind, reason, facts)

    if not facts.cupy_version:
        got = facts.cupy_problem or "none"
        return missing(
            "no-cupy",
            f"CuPy must be installed to use a GPU, got: {got}. "
            'pip install "tma-lesson[cu13]", or [cu12] for a driver of CUDA 12.',
        )
    if not facts.driver_cuda:
        return missing(
            "no-driver",
            "an NVIDIA driver must be installed to use a GPU, got none. Install one, or start the "
            "container with GPU access.",
        )
    if facts.driver_cuda // 1000 < facts.cupy_cuda // 1000:
        return missing(
            "old-driver",
            f"the driver must know CUDA {facts.cupy_cuda // 1000}, which CuPy was built for, got a "
            f"driver of CUDA {_version(facts.driver_cuda)}. Update the driver, or install CuPy for "
            f"CUDA {facts.driver_cuda // 1000}.",
        )
    if not facts.devices:
        got = facts.device_problem or "none"
        return missing(
            "no-device",
            f"a GPU must be visible to CUDA, got: {got}. Check nvidia-smi and the variable "
            "CUDA_VISIBLE_DEVICES.",
        )
    fitting = [device for device in facts.devices if device.capability >= TMA_CAPABILITY]
    if not fitting:
        found = ", ".join(map(describe, facts.devices))
        return missing(
            "old-device",
            f"the GPU must have compute capability 9.0 or higher, for its TMA engine, got {found}. "
            "An H100, H200, B200 or RTX 50 series GPU has one.",
        )
    return GpuStatus(True, "ok", f"{describe(fitting[0])} runs TMA code.", facts, fitting[0])


def look() -> Facts:
    """The facts of this machine. Never raises: what goes wrong is a fact too."""
    try:
        cupy = importlib.import_module("cupy")
        runtime = cupy.cuda.runtime
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        return Facts(cupy_problem=_first_line(error))
    version, built_for = cupy.__version__, int(runtime.runtimeGetVersion())
    try:
        driver = int(runtime.driverGetVersion())
    except runtime.CUDARuntimeError as error:
        return Facts(version, "", built_for, 0, (), _first_line(error))
    try:
        devices = tuple(_device(runtime, index) for index in range(runtime.getDeviceCount()))
    except runtime.CUDARuntimeError as error:
        return Facts(version, "", built_for, driver, (), _first_line(error))
    return Facts(version, "", built_for, driver, devices)


@lru_cache(maxsize=1)
def status() -> GpuStatus:
    """The verdict on this machine, looked up once."""
    return judge(look())


def _device(runtime: object, index: int) -> Device:
    properties = runtime.getDeviceProperties(index)
    name = properties["name"]
    return Device(
        index,
        name.decode() if isinstance(name, bytes) else str(name),
        (int(properties["major"]), int(properties["minor"])),
    )


def _first_line(error: Exception) -> str:
    lines = [line.strip(" =*") for line in str(error).split("\n") if line.strip(" =*")]
    return lines[0] if lines else type(error).__name__


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _dotted(capability: Capability) -> str:
    return f"{capability[0]}.{capability[1]}"
