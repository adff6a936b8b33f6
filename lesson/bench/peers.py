"""What others have for the same bytes: the runtime's copy, CuPy, PyTorch, Triton.

Each is a function of two CuPy arrays of equal length that gives a call of no arguments. A peer that
is not installed here is left out, with its reason.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from lesson.bench.device import Call

Peer = Callable[[Any, Any], Call]
COPY_ONLY = ("cudaMemcpy", "torch copy_")  # copy, and add nothing
CEILING = "cudaMemcpy"

_FLOAT4 = """
float4 v = reinterpret_cast<const float4*>(&x[0])[i];
v.x += 1; v.y += 1; v.z += 1; v.w += 1;
reinterpret_cast<float4*>(&y[0])[i] = v;
"""
_DEVICE_TO_DEVICE = 3


def find() -> tuple[dict[str, Peer], dict[str, str]]:
    """(peers by name, why others are missing)."""
    found: dict[str, Peer] = {"cudaMemcpy": memcpy, **_cupy_peers()}
    missing: dict[str, str] = {}
    for name, make in (("PyTorch", _torch_peers), ("Triton", _triton_peers)):
        try:
            found |= make()
        except (ImportError, OSError, RuntimeError, AttributeError) as error:
            missing[name] = f"{type(error).__name__}: {error}"[:200]
    return found, missing


def memcpy(x: Any, y: Any) -> Call:
    """The runtime's copy, on the current stream."""
    import cupy

    runtime, current = cupy.cuda.runtime, cupy.cuda.get_current_stream
    to, source, nbytes = y.data.ptr, x.data.ptr, x.nbytes
    return lambda: runtime.memcpyAsync(to, source, nbytes, _DEVICE_TO_DEVICE, current().ptr)


def _cupy_peers() -> dict[str, Peer]:
    import cupy

    one = np.float32(1)
    simple = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x + 1.0f", "add_one")
    vector = cupy.ElementwiseKernel("raw T x", "raw T y", _FLOAT4, "add_one_float4")
    return {
        "cupy.add": lambda x, y: lambda: cupy.add(x, one, out=y),
        "CuPy kernel": lambda x, y: lambda: simple(x, y),
        "CuPy kernel, float4": lambda x, y: lambda: vector(x, y, size=x.size // 4),
    }


def _torch_peers() -> dict[str, Peer]:
    torch = importlib.import_module("torch")

    def add(x: Any, y: Any) -> Call:
        tx, ty = torch.from_dlpack(x), torch.from_dlpack(y)
        return lambda: torch.add(tx, 1.0, out=ty)

    def copy(x: Any, y: Any) -> Call:
        tx, ty = torch.from_dlpack(x), torch.from_dlpack(y)
        return lambda: ty.copy_(tx)

    return {"torch.add": add, "torch copy_": copy}


def _triton_peers() -> dict[str, Peer]:
    kernels = importlib.import_module("lesson.bench.triton_kernels")
    torch = importlib.import_module("torch")

    def pointers(x: Any, y: Any) -> Call:
        tx, ty = torch.from_dlpack(x), torch.from_dlpack(y)
        return lambda: kernels.add(tx, ty)

    def descriptors(x: Any, y: Any) -> Call:
        tx, ty = torch.from_dlpack(x), torch.from_dlpack(y)
        return kernels.with_descriptors(tx, ty)

    return {"Triton": pointers, "Triton, descriptors": descriptors}
