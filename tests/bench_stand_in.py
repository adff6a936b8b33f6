"""A GPU that is none: launches become nothing, times come from a simple model of bandwidth.

`measured(...)` runs the real measurement over it, so that its plans, maps, bookkeeping and
pictures can be had on every machine. No number in it means anything.
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lesson import tensor_map
from lesson.bench import device, live, measure, peers, timing, tools, variants
from lesson.bench.contenders import GIB
from lesson.tensor_map import TensorMap

PEERS = (
    "cudaMemcpy", "torch.add", "torch copy_", "cupy.add", "CuPy kernel", "CuPy kernel, float4",
    "Triton", "Triton, descriptors",
)  # fmt: skip
BYTES_A_NS = 4300.0


class StandInBench(device.Bench):
    """Plans are real and their maps are checked; nothing is launched."""

    def __init__(self, floats: int, builder: object) -> None:
        # Never touched, so that the system never gives the pages.
        self.x, self.y = np.empty(floats, np.float32), np.empty(floats, np.float32)
        self.multiprocessors, self.builder, self.cupy = 132, builder, SimpleNamespace()
        self.properties = {
            "name": b"a stand-in", "major": 9, "minor": 0, "multiProcessorCount": 132,
            "l2CacheSize": 60 << 20, "totalGlobalMem": 140 << 30,
        }  # fmt: skip
        self.wrong_families: set[str] = set()

    def bind(self, v: variants.Variant, width: int, height: int, start: int = 0) -> Any:
        stop = start + width * height
        p = variants.plan(v, self.x[start:stop], self.y[start:stop], width, height, 132)
        assert p.grid[0] < 2**31
        assert all(size < 65536 for size in p.grid[1:])
        for arg in p.args:
            assert not isinstance(arg, TensorMap) or tensor_map.check(arg) == []
        return Call(width * height * 4, v)

    def wrong(self, call: Any, floats: int, plus: float = 1.0) -> int:
        return 7 if call.v is not None and call.v.family in self.wrong_families else 0

    def wrong_transposed(self, call: Any, width: int, height: int) -> int:
        return 0

    def registers(self, v: variants.Variant) -> dict[str, int]:
        return {"registers": 32, "static_shared_bytes": 0, "local_bytes": 0}

    def release(self) -> None:
        self.x = self.y = None


class Call:
    """What would be launched."""

    def __init__(self, nbytes: int, v: variants.Variant | None = None) -> None:
        self.nbytes, self.v = nbytes, v

    def __call__(self) -> None:
        """Nothing."""

    def nanoseconds(self) -> float:
        """Persistent plain kernels need threads, transposes a swizzle, narrow boxes suffer."""
        share, v = 1.0, self.v
        if v is not None and v.blocks_per_sm:
            full = v.threads * v.blocks_per_sm / 2048
            share = 0.9 + 0.05 * full if "plain" not in v.file else 0.94 * full**0.4
        elif v is not None and v.file.startswith("transpose"):
            share = 0.95 if v.get("SWIZZLE", 0) else 0.75
        elif v is not None and v.get("WIDTH", 0):
            share = min(0.996, v["WIDTH"] / 32)
        return 2 * self.nbytes / (BYTES_A_NS * share) + 2500


class StandInBuilder:
    """Compiles nothing; insists on variants."""

    def __init__(self, arch: str) -> None:
        self.arch = arch

    def build(self, wanted: Any) -> None:
        assert all(isinstance(v, variants.Variant) for v in wanted)

    def close(self) -> None:
        """Nothing to end."""


def measured(
    monkeypatch: pytest.MonkeyPatch, *, tune_seconds: float = 0, bench: type = StandInBench
) -> dict[str, Any]:
    """The record of a whole run."""
    choose = random.Random(1)

    def alone(cupy: object, call: Call, repeats: int, warm_up: int = 2) -> list[int]:
        return [round(call.nanoseconds() * choose.uniform(0.998, 1.004)) for _ in range(repeats)]

    def graph(cupy: object, calls: list[Call], replays: int, warm_up: int = 2) -> list[int]:
        return alone(cupy, calls[0], replays)

    def rounds(cupy: object, calls: dict[str, Call], *_: object, **__: object) -> dict:
        return {name: alone(cupy, call, 40) for name, call in calls.items()}

    def peer(x: np.ndarray, y: np.ndarray) -> Call:
        assert x.nbytes == y.nbytes
        return Call(x.nbytes)

    def counters(every: dict) -> dict:
        kernels = {n: dict.fromkeys(tools.COUNTERS, 1e6 * (i + 1)) for i, n in enumerate(every)}
        return {"nbytes": GIB // 4, "kernels": kernels}

    def sanitizers(every: dict) -> dict:
        clean = {"exit_status": 0, "summary": "ERROR SUMMARY: 0 errors", "output": ""}
        return {tool: clean | {"right": len(every)} for tool in tools.SANITIZERS}

    gpu = SimpleNamespace(require=lambda _: SimpleNamespace(capability=(9, 0)))
    for module, name, value in (
        (timing, "alone", alone), (timing, "graph", graph), (timing, "rounds", rounds),
        (tools, "counters", counters), (tools, "sanitizers", sanitizers),
        (peers, "find", lambda: (dict.fromkeys(PEERS, peer), {"nothing": "a reason"})),
        (live, "Bench", bench), (live, "Builder", StandInBuilder), (live, "gpu", gpu),
        (live, "_room", lambda: None), (measure, "SIZES", measure.SIZES[::5]),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    return live.run(lambda line: None, tune_seconds=tune_seconds)
