"""The few calls of the CUDA driver that recording a kernel needs, by ctypes.

Deliberately apart from `lesson.gpu` and `lesson.tensor_map`: a recording must not depend on what it
is to judge. Driver API sections: Module Management, Execution Control, Memory Management, Tensor
Map Object Management.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

DTYPES = (
    "UINT8",
    "UINT16",
    "UINT32",
    "INT32",
    "UINT64",
    "INT64",
    "FLOAT16",
    "FLOAT32",
    "FLOAT64",
    "BFLOAT16",
    "FLOAT32_FTZ",
    "TFLOAT32",
    "TFLOAT32_FTZ",
)
INTERLEAVES = ("NONE", "16B", "32B")
SWIZZLES = ("NONE", "32B", "64B", "128B")
PROMOTIONS = ("NONE", "L2_64B", "L2_128B", "L2_256B")
FILLS = ("NONE", "NAN_REQUEST_ZERO_FMA")
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
JIT_ERROR_LOG = 5  # CU_JIT_ERROR_LOG_BUFFER; the next one is its size


class CudaError(Exception):
    """A driver call that did not succeed."""


class TensorMapBytes(ctypes.Structure):
    """The 128 opaque bytes."""

    _fields_ = [("opaque", ctypes.c_uint64 * 16)]


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    ]


class Driver:
    """Device 0 through its primary context."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        self.device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self.device), 0)
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *args: Any) -> None:
        code = getattr(self.lib, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorName(code, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'?').decode()}")

    def about(self) -> dict[str, Any]:
        """Name, capability and driver of the GPU."""
        name = ctypes.create_string_buffer(256)
        version = ctypes.c_int()
        self._call("cuDeviceGetName", name, 256, self.device)
        self._call("cuDriverGetVersion", ctypes.byref(version))
        major, minor = (self._attribute(n) for n in (75, 76))
        return {
            "gpu": name.value.decode(),
            "driver_api": version.value,
            "capability": f"{major}.{minor}",
        }

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def upload(self, array: np.ndarray) -> int:
        """Device memory holding the array's bytes."""
        pointer = ctypes.c_uint64()
        size = ctypes.c_size_t(max(array.nbytes, 16))
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), size)
        self._write(pointer.value, np.ascontiguousarray(array))
        return pointer.value

    def _write(self, pointer: int, array: np.ndarray) -> None:
        at, size = ctypes.c_uint64(pointer), ctypes.c_size_t(array.nbytes)
        self._call("cuMemcpyHtoD_v2", at, ctypes.c_void_p(array.ctypes.data), size)

    def download(self, pointer: int, like: np.ndarray) -> np.ndarray:
        """The bytes at `pointer` as an array of the given form."""
        array = np.empty_like(like, order="C")
        at, size = ctypes.c_uint64(pointer), ctypes.c_size_t(array.nbytes)
        self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), at, size)
        return array

    def free(self, pointer: int) -> None:
        """Gives memory back."""
        self._call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def encode(self, spec: Any, pointer: int) -> TensorMapBytes:
        """cuTensorMapEncodeTiled for a `samples.MapSpec`."""
        rank = len(spec.dims)
        # One stride also for rank 1: the driver refuses a null pointer though it reads no stride.
        strides = list(spec.strides) or [16]
        room = ctypes.create_string_buffer(128 + 64)
        aligned = (ctypes.addressof(room) + 63) // 64 * 64
        self._call(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(aligned),
            DTYPES.index(spec.dtype),
            ctypes.c_uint32(rank),
            ctypes.c_void_p(pointer),
            (ctypes.c_uint64 * rank)(*spec.dims),
            (ctypes.c_uint64 * len(strides))(*strides),
            (ctypes.c_uint32 * rank)(*spec.box),
            (ctypes.c_uint32 * rank)(*spec.elements),
            INTERLEAVES.index(spec.interleave),
            SWIZZLES.index(spec.swizzle),
            PROMOTIONS.index(spec.l2),
            FILLS.index(spec.oob),
        )
        return TensorMapBytes.from_buffer_copy(ctypes.string_at(aligned, 128))

    def load(self, text: str) -> int:
        """A module from PTX; the error carries the compiler's log."""
        log = ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(JIT_ERROR_LOG, JIT_ERROR_LOG + 1)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 4096)
        module = ctypes.c_void_p()
        image = ctypes.create_string_buffer(text.encode())
        try:
            self._call("cuModuleLoadDataEx", ctypes.byref(module), image, 2, options, values)
        except CudaError as error:
            raise CudaError(f"{error}: {log.value.decode(errors='replace')[:300]}") from None
        return module.value or 0

    def unload(self, module: int) -> None:
        """Forgets a module."""
        self._call("cuModuleUnload", ctypes.c_void_p(module))

    def function(self, module: int, name: str, dynamic_smem: int) -> int:
        """An entry, with leave to use that much dynamic shared memory."""
        function = ctypes.c_void_p()
        handle = ctypes.c_void_p(module)
        self._call("cuModuleGetFunction", ctypes.byref(function), handle, name.encode())
        if dynamic_smem > 48 * 1024:
            self._call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, dynamic_smem)
        return function.value or 0

    def write_symbol(self, module: int, name: str, content: bytes) -> None:
        """Fills a variable of the module."""
        pointer, size = ctypes.c_uint64(), ctypes.c_size_t()
        handle = ctypes.c_void_p(module)
        self._call(
            "cuModuleGetGlobal_v2", ctypes.byref(pointer), ctypes.byref(size), handle, name.encode()
        )
        self._write(pointer.value, np.frombuffer(content, np.uint8))

    def launch(
        self,
        function: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        cluster: tuple[int, int, int] | None,
        args: list[Any],
    ) -> None:
        """cuLaunchKernelEx on the default stream; `args` are ctypes values, in order."""
        attribute = _Attribute(CLUSTER_DIMENSION)
        if cluster:
            attribute.value[0], attribute.value[1], attribute.value[2] = cluster
        config = _Config(
            (ctypes.c_uint * 3)(*grid),
            (ctypes.c_uint * 3)(*block),
            shared,
            None,
            ctypes.pointer(attribute),
            1 if cluster else 0,
        )
        pointers = (ctypes.c_void_p * max(1, len(args)))(*[ctypes.addressof(a) for a in args])
        self._call(
            "cuLaunchKernelEx", ctypes.byref(config), ctypes.c_void_p(function), pointers, None
        )

    def synchronize(self) -> None:
        """Waits for the kernel; raises what went wrong in it."""
        self._call("cuCtxSynchronize")
