"""Two large arrays on a GPU, and what is launched over them. CuPy is imported where it is used.

Launches nothing but kernels of kernels/bench/ and three helpers: fill, compare, compare transposed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lesson import tensor_map
from lesson.bench import variants
from lesson.bench.build import Builder, Key, key
from lesson.bench.variants import Plan, Variant
from lesson.tensor_map import TensorMap

Call = Callable[[], Any]

_HELPERS = r"""
typedef unsigned long long u64;
extern "C" __global__ void fill(float* x, u64 n) {
    for (u64 i = blockIdx.x * 1024ull + threadIdx.x; i < n; i += gridDim.x * 1024ull) {
        unsigned h = (unsigned)i * 2654435761u;
        h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
        x[i] = (float)(h >> 8);  // below 2^24: adding 1 is exact
    }
}
extern "C" __global__ void compare(const float* x, const float* y, u64 n, float plus, u64* wrong) {
    u64 w = 0;
    for (u64 i = blockIdx.x * 1024ull + threadIdx.x; i < n; i += gridDim.x * 1024ull)
        w += __float_as_uint(y[i]) != __float_as_uint(x[i] + plus);
    if (w) atomicAdd(wrong, w);
}
extern "C" __global__ void compare_transposed(
        const float* x, const float* y, u64 width, u64 height, u64* wrong) {
    u64 w = 0;
    for (u64 i = blockIdx.x * 1024ull + threadIdx.x; i < width * height; i += gridDim.x * 1024ull)
        w += __float_as_uint(y[i]) != __float_as_uint(x[i % height * width + i / height]);
    if (w) atomicAdd(wrong, w);
}
"""
_POISON = 0xFF  # a NaN in every float: whatever is not written is wrong


class Bench:
    """Arrays `x` (random whole numbers) and `y` of `floats` elements each."""

    def __init__(self, floats: int, builder: Builder, multiprocessors: int | None = None) -> None:
        import cupy

        self.cupy, self.builder = cupy, builder
        self.x, self.y = cupy.empty(floats, np.float32), cupy.empty(floats, np.float32)
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.multiprocessors = multiprocessors or int(properties["multiProcessorCount"])
        self.properties = properties
        self._helpers = cupy.RawModule(code=_HELPERS)
        self._functions: dict[Key, Any] = {}
        self._helpers.get_function("fill")((1056,), (1024,), (self.x, np.uint64(floats)))

    def function(self, v: Variant) -> Any:
        """The loaded kernel of a variant."""
        if key(v) not in self._functions:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "image"
                path.write_bytes(self.builder.image(v))
                function = self.cupy.RawModule(path=str(path)).get_function(variants.KERNEL)
                if v.shared_bytes:
                    function.max_dynamic_shared_size_bytes = v.shared_bytes
                function.kernel  # noqa: B018 - loading is lazy: the file must be there until now
            self._functions[key(v)] = function
        return self._functions[key(v)]

    def plan(self, v: Variant, width: int, height: int, start: int = 0) -> Plan:
        """The launch over `x` and `y` from element `start` on, with maps as structured scalars."""
        stop = start + width * height
        raw = variants.plan(
            v, self.x[start:stop], self.y[start:stop], width, height, self.multiprocessors
        )
        args = tuple(_encoded(a) if isinstance(a, TensorMap) else a for a in raw.args)
        return Plan(raw.grid, raw.block, args, raw.shared_bytes)

    def bind(self, v: Variant, width: int, height: int, start: int = 0) -> Call:
        """A function of no arguments that launches the variant on the current stream."""
        function, p = self.function(v), self.plan(v, width, height, start)
        return lambda: function(p.grid, (p.block,), p.args, shared_mem=p.shared_bytes)

    def wrong(self, call: Call, floats: int, plus: float = 1.0) -> int:
        """Elements that are not x + plus after a launch into poisoned memory."""
        count = self._poisoned(call, floats)
        self._helpers.get_function("compare")(
            (1056,), (1024,), (self.x, self.y, np.uint64(floats), np.float32(plus), count)
        )
        return int(count[0])

    def wrong_transposed(self, call: Call, width: int, height: int) -> int:
        """Elements that are not those of the width x height matrix `x` transposed."""
        count = self._poisoned(call, width * height)
        self._helpers.get_function("compare_transposed")(
            (1056,), (1024,), (self.x, self.y, np.uint64(width), np.uint64(height), count)
        )
        return int(count[0])

    def _poisoned(self, call: Call, floats: int) -> Any:
        self.cupy.cuda.runtime.memset(self.y.data.ptr, _POISON, floats * 4)
        call()
        return self.cupy.zeros(1, np.uint64)

    def registers(self, v: Variant) -> dict[str, int]:
        """Registers a thread, and bytes a block of shared and a thread of local memory."""
        attributes = self.function(v).attributes
        return {
            "registers": int(attributes["num_regs"]),
            "static_shared_bytes": int(attributes["shared_size_bytes"]),
            "local_bytes": int(attributes["local_size_bytes"]),
        }

    def release(self) -> None:
        """Gives the two arrays back, for other processes to use the memory."""
        self.x = self.y = None
        self.cupy.get_default_memory_pool().free_all_blocks()


def _encoded(tmap: TensorMap) -> np.void:
    """A tensor map by value, as CuPy passes a struct."""
    words = tensor_map.encode(tmap)
    return np.frombuffer(words.tobytes(), np.dtype([("opaque", "<u8", (16,))]))[0]
