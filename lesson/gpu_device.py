"""One launch on the GPU through CuPy: image, arguments, kernel, outputs back.

PTX goes to the driver as it is. A driver that is older than NVRTC cannot read that PTX; it then
gets machine code that NVRTC made from the same source. A tensor map passes by value as a numpy
structured scalar of sixteen uint64. A fault leaves this process without a usable CUDA context: code
that has not proved itself runs in a child process (`lesson.gpu.run_isolated`).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np

from lesson import compile as nvrtc
from lesson import tensor_map
from lesson.compile import Ptx
from lesson.errors import (
    DeviceFault,
    Hang,
    IllegalAddress,
    IllegalInstruction,
    LaunchError,
    LaunchFailure,
    MisalignedAddress,
    TensorMapError,
)
from lesson.gpu_args import MapOver, Packed, Pointer, Spec, address_of, owner_of
from lesson.gpu_status import Device
from lesson.tensor_map import TensorMap

Dim3 = tuple[int, int, int]

_MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
_MAX_BLOCK: Dim3 = (1024, 1024, 64)
_MAX_THREADS = 1024
_POLL_SECONDS = 0.0005
_NOT_READY = 600  # cudaErrorNotReady: any other answer, a fault too, means that it ended

# CUDA's numbers for errors that a kernel itself causes (CUDA Driver API, enum CUresult; the
# runtime API has the same numbers).
_FAULTS: dict[int, tuple[str, type[DeviceFault]]] = {
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", IllegalAddress),
    702: ("CUDA_ERROR_LAUNCH_TIMEOUT", DeviceFault),
    710: ("CUDA_ERROR_ASSERT", DeviceFault),
    714: ("CUDA_ERROR_HARDWARE_STACK_ERROR", DeviceFault),
    715: ("CUDA_ERROR_ILLEGAL_INSTRUCTION", IllegalInstruction),
    716: ("CUDA_ERROR_MISALIGNED_ADDRESS", MisalignedAddress),
    717: ("CUDA_ERROR_INVALID_ADDRESS_SPACE", DeviceFault),
    718: ("CUDA_ERROR_INVALID_PC", DeviceFault),
    719: ("CUDA_ERROR_LAUNCH_FAILED", LaunchFailure),
}


@dataclass(frozen=True, slots=True)
class Launch:
    """All of one launch but its arguments; can be pickled."""

    ptx: Ptx
    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int = 0
    cluster: Dim3 | None = None
    opt_in: bool = True  # raise the kernel's limit of 48 KiB dynamic shared memory


def dim3(value: int | tuple[int, ...], what: str) -> Dim3:
    """Three dimensions out of one to three, checked against what CUDA allows."""
    given = value if isinstance(value, tuple | list) else (value,)
    limits = {"grid": _MAX_GRID, "block": _MAX_BLOCK, "cluster": (8, 8, 8)}[what]
    whole = all(isinstance(n, int | np.integer) for n in given) and 1 <= len(given) <= 3
    dims = (*map(int, given), 1, 1)[:3] if whole else (0, 0, 0)
    if not all(1 <= n <= limit for n, limit in zip(dims, limits, strict=True)):
        raise LaunchError(
            f"{what} must be one to three whole numbers from 1 to {limits}, got {value}. "
            "Dimensions are x, y, z."
        )
    if what == "block" and dims[0] * dims[1] * dims[2] > _MAX_THREADS:
        raise LaunchError(
            f"block must have at most {_MAX_THREADS} threads, got {value}. Use more blocks instead."
        )
    return dims


def run(launch: Launch, packed: Packed, device: Device, time_limit_s: float | None = None) -> float:
    """Launches and waits; the buffers then hold what the device memory holds. Returns seconds.

    Raises DeviceFault for a kernel that faulted, Hang for one that ran past the limit: after
    either, CUDA cannot be used in this process any more.
    """
    import cupy

    before = cupy.cuda.Device()
    cupy.cuda.Device(device.index).use()  # restored below, unless CUDA is lost anyway
    memory = [cupy.asarray(buffer if buffer.size else _NOTHING) for buffer in packed.buffers]
    held: list[object] = []  # maps in device memory, alive until the kernel ends
    values = [_value(cupy, spec, memory, held) for spec in packed.specs]
    function = _function(cupy, launch, device)
    try:
        seconds = _launch_and_wait(cupy, launch, function, values, time_limit_s)
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        status = int(getattr(error, "status", 0))
        raise _fault(status, str(error).split(":")[0], launch) from None
    for buffer, on_device in zip(packed.buffers, memory, strict=True):
        if buffer.size and buffer.flags.writeable:
            buffer[...] = on_device.get()
    before.use()
    return seconds


def encodes(tmap: TensorMap, device: Device) -> bool:
    """Whether the driver encodes the map; numpy's memory is stood in for by the device's."""
    import cupy

    with cupy.cuda.Device(device.index):
        held = None  # alive while the driver looks at its address
        if tmap.base is None:
            held, start = cupy.zeros(1, np.uint8), 0
        elif isinstance(tmap.base, np.ndarray):
            owner = owner_of(tmap.base)
            held = cupy.zeros(max(owner.nbytes, 1), np.uint8)
            start = address_of(tmap.base) - address_of(owner)
        if held is not None:
            tmap = replace(tmap, base=held.data.ptr + start)
        try:
            tensor_map.encode(tmap)
        except TensorMapError:
            return False
    return True


_NOTHING = np.zeros(1, np.uint8)  # CuPy has no address for an array of no bytes


def _value(cupy: ModuleType, spec: Spec, memory: list, held: list[object]) -> np.generic:
    """What CuPy is given for one argument: always a scalar of exactly the parameter's size."""
    if isinstance(spec, Pointer):
        return np.uint64(memory[spec.buffer].data.ptr + spec.offset_bytes)
    if isinstance(spec, MapOver):
        tmap = spec.tmap
        if spec.buffer >= 0:
            address = memory[spec.buffer].data.ptr + spec.offset_bytes
            tmap = replace(tmap, base=address)
        words = tensor_map.encode(tmap)
        if spec.by_value:
            return _structured(words.tobytes())
        held.append(cupy.asarray(words))  # CuPy aligns to 512 bytes; a map needs 64
        return np.uint64(held[-1].data.ptr)
    data = spec.data
    if len(data) in (1, 2, 4, 8):
        return np.frombuffer(data, f"<u{len(data)}")[0]
    return _structured(data)


def _structured(data: bytes) -> np.void:
    """A struct by value. CuPy passes a numpy structured scalar so, an array it would refuse."""
    words, itemsize = (len(data) // 8, "<u8") if len(data) % 8 == 0 else (len(data), "u1")
    return np.frombuffer(data, np.dtype([("opaque", itemsize, (words,))]))[0]


def _function(cupy: ModuleType, launch: Launch, device: Device) -> object:
    """The loaded kernel, its limit on dynamic shared memory raised where asked for."""
    driver_cuda = cupy.cuda.runtime.driverGetVersion()
    built_with = 1000 * launch.ptx.nvrtc_version[0] + 10 * launch.ptx.nvrtc_version[1]
    if driver_cuda < built_with:
        image = nvrtc.to_cubin(launch.ptx, f"sm_{device.capability[0]}{device.capability[1]}")
    else:
        image = launch.ptx.text.encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image"
        path.write_bytes(image)
        try:
            function = cupy.RawModule(path=str(path)).get_function(launch.kernel)
            if launch.opt_in and launch.shared_bytes:
                function.max_dynamic_shared_size_bytes = launch.shared_bytes
        except cupy.cuda.driver.CUDADriverError as error:
            raise LaunchError(
                f"kernel {launch.kernel!r} with {launch.shared_bytes} bytes of dynamic shared "
                f"memory must be one that the driver loads, got {error}. Hopper has 227 KiB a "
                "block, static and dynamic together."
            ) from None
        # Loading is lazy: the file must be there until the kernel's handle is.
        function.kernel  # noqa: B018
    return function


def _launch_and_wait(
    cupy: ModuleType,
    launch: Launch,
    function: object,
    values: list[np.generic],
    time_limit_s: float | None,
) -> float:
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    if launch.cluster is None:
        function(launch.grid, launch.block, tuple(values), shared_mem=launch.shared_bytes)
    else:
        _launch_cluster(launch, function, values)
    stop.record()
    if time_limit_s is not None:
        query = cupy.cuda.runtime.eventQuery
        _wait(lambda: query(stop.ptr) != _NOT_READY, time_limit_s, launch.kernel)
    stop.synchronize()
    return cupy.cuda.get_elapsed_time(start, stop) / 1e3


def _wait(is_done: Callable[[], bool], time_limit_s: float, kernel: str) -> None:
    deadline = time.monotonic() + time_limit_s
    while not is_done():
        if time.monotonic() > deadline:
            raise Hang(
                f"kernel {kernel!r} must finish within {time_limit_s:g} s, got no end: it hangs on "
                "the GPU. Run it in the emulator, which says who waits for what."
            )
        time.sleep(_POLL_SECONDS)


def _launch_cluster(launch: Launch, function: object, values: list[np.generic]) -> None:
    """CuPy cannot ask for a cluster at launch; the driver's cuLaunchKernelEx can."""
    from cuda.bindings import driver

    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    dims = attribute.value.clusterDim
    dims.x, dims.y, dims.z = launch.cluster
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
    config.sharedMemBytes = launch.shared_bytes
    config.attrs, config.numAttrs = [attribute], 1
    storage = [np.frombuffer(value.tobytes(), np.uint8) for value in values]
    pointers = np.array([array.ctypes.data for array in storage], np.uint64)
    handle = driver.CUfunction(function.kernel.ptr)
    (result,) = driver.cuLaunchKernelEx(config, handle, int(pointers.ctypes.data), 0)
    if result != driver.CUresult.CUDA_SUCCESS:
        raise _fault(int(result), result.name, launch)


def _fault(status: int, name: str, launch: Launch) -> Exception:
    """A fault of the kernel as DeviceFault, a refusal of the launch as LaunchError."""
    if status not in _FAULTS:
        return LaunchError(
            f"the launch of {launch.kernel!r} must be one that the driver accepts, got {name} for "
            f"grid {launch.grid}, block {launch.block}, {launch.shared_bytes} bytes of dynamic "
            f"shared memory, cluster {launch.cluster}. Check these against the kernel."
        )
    cuda_error, kind = _FAULTS[status]
    fault = kind(
        f"kernel {launch.kernel!r} must run without a fault, got {cuda_error}. The GPU does not "
        "say where: run it in the emulator, which names the line."
    )
    fault.cuda_error = cuda_error
    return fault
