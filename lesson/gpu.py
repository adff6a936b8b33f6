"""The GPU as a target: the gate, a launch in this process, a launch in a process of its own.

`launch` takes what `lesson.emulator.launch` takes and changes the same numpy arrays, so that one
call runs on either. `run_isolated` does the same in a child process with a time limit: after a
hang or an illegal instruction there, this process and its CUDA context work as before. Both run
what `lesson.compile.to_ptx` returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lesson import gpu_device
from lesson.compile import Ptx
from lesson.errors import LaunchError, TargetError
from lesson.gpu_args import Packed, pack, parameters
from lesson.gpu_child import Request, ask_child
from lesson.gpu_device import Launch, dim3
from lesson.gpu_status import Device, GpuStatus, status
from lesson.tensor_map import TensorMap

__all__ = [
    "GpuRun", "GpuStatus", "driver_accepts", "launch", "require", "run_isolated", "status",
]  # fmt: skip

DEFAULT_TIME_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class GpuRun:
    """What a launch took, from the launch to the kernel's end, and where it ran."""

    seconds: float
    device_name: str


def require(found: GpuStatus | None = None) -> Device:
    """The device to use; TargetError with the reason where there is none."""
    found = found or status()
    if not found.ok or found.device is None:
        raise TargetError(found.reason)
    return found.device


def driver_accepts(tmap: TensorMap) -> bool:
    """Whether this machine's driver encodes the map, over a device copy of its array.

    Raises TargetError where there is no GPU with TMA.
    """
    return gpu_device.encodes(tmap, require())


def launch(
    ptx: Ptx,
    kernel: str | None,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Sequence[Any],
    *,
    shared_bytes: int = 0,
    cluster: int | tuple[int, ...] | None = None,
    opt_in: bool = True,
) -> GpuRun:
    """Runs a kernel here and now. Only for code that is known to end: see `run_isolated`.

    `args` are numpy arrays (copied to the device and back), TensorMap records over such arrays
    (encoded by the driver over the device copy), numbers, bytes, or CuPy arrays (not copied).
    Raises TargetError, LaunchError, TensorMapError, or DeviceFault with CUDA's name for it.
    """
    prepared, packed = _prepare(ptx, kernel, grid, block, args, shared_bytes, cluster, opt_in)
    device = require()
    seconds = gpu_device.run(prepared, packed, device)
    return GpuRun(seconds, device.name)


def run_isolated(
    ptx: Ptx,
    kernel: str | None,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Sequence[Any],
    *,
    shared_bytes: int = 0,
    cluster: int | tuple[int, ...] | None = None,
    opt_in: bool = True,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
) -> GpuRun:
    """Like `launch`, in a child process that is ended when the kernel runs past `time_limit_s`.

    Raises Hang then, and DeviceFault for a fault; the arrays are then as they were. Either way
    this process can go on using the GPU. Takes a second or two to start the child.
    """
    prepared, packed = _prepare(ptx, kernel, grid, block, args, shared_bytes, cluster, opt_in)
    device = require()
    answer = ask_child(Request(prepared, packed, device, time_limit_s))
    if answer.error is not None or answer.packed is None:
        raise answer.error or TargetError("the child process must answer, got nothing. Run again.")
    for mine, its in zip(packed.buffers, answer.packed.buffers, strict=True):
        if mine.flags.writeable:
            mine[...] = its
    return GpuRun(answer.seconds, device.name)


def _prepare(
    ptx: Ptx,
    kernel: str | None,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Sequence[Any],
    shared_bytes: int,
    cluster: int | tuple[int, ...] | None,
    opt_in: bool,
) -> tuple[Launch, Packed]:
    """Everything that can be checked without a GPU."""
    if kernel is None:
        if len(ptx.kernels) != 1:
            raise LaunchError(
                f"kernel must be named where the source has several, got none of "
                f"{', '.join(ptx.kernels) or 'no kernel'}. Pass kernel=."
            )
        kernel = ptx.kernels[0]
    if shared_bytes < 0:
        raise LaunchError(f"shared_bytes must be 0 or more, got {shared_bytes}. Count bytes.")
    prepared = Launch(
        ptx,
        kernel,
        dim3(grid, "grid"),
        dim3(block, "block"),
        shared_bytes,
        None if cluster is None else dim3(cluster, "cluster"),
        opt_in,
    )
    return prepared, pack(args, parameters(ptx.text, kernel), kernel)
