"""The recorded tensor maps and tensor copies as the tests and the replay use them.

Reads folders in the format of `tests/data`: `encode.json`, `load.json`, `store.json`, `tma.npz`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from lesson.tensor_map import TensorMap

DATA = Path(__file__).parent / "data"
SHARED_BASE = 1024
Case = dict[str, Any]


def cases(name: str, folder: Path = DATA) -> list[Case]:
    """The rows of `encode`, `load` or `store`."""
    return json.loads((folder / f"{name}.json").read_text())


def recorded_map(case: Case) -> TensorMap:
    """The map of a recorded case; `offset` bytes from an aligned address, or at `address`."""
    return TensorMap(
        dtype=case["dtype"],
        dims=case["dims"],
        strides_bytes=case["strides"],
        box=case["box"],
        element_strides=case["estrides"],
        interleave=case["interleave"],
        swizzle=case["swizzle"],
        l2_promotion=case["l2"],
        oob_fill=case["oob"],
        base=case.get("address"),
        base_offset_bytes=case["offset"],
        given_rank=case["rank"],
    )


def hashed_bytes(nbytes: int, salt: int) -> np.ndarray:
    """What lay in memory before a recorded copy: byte i hashes i + 7919 * salt."""
    i = np.arange(nbytes, dtype=np.uint64) + np.uint64(salt * 7919)
    return ((i * np.uint64(2654435761) >> np.uint64(13)) & np.uint64(255)).astype(np.uint8)


def store_inputs(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Global and shared bytes before a recorded store: hashed, or small floats for a float sum."""
    held = hashed_bytes(case["tensor_bytes"], case["salt"] + 100000)
    given = hashed_bytes(32768, case["salt"] + 200000)
    if case["op"] not in ("add", "min", "max") or "FLOAT" not in case["dtype"]:
        return held, given
    size = recorded_map(case).itemsize
    for memory in (held, given):
        count = memory.size // size
        small = (hashed_bytes(count, 7).astype(np.int32) - 128).astype(np.float32)
        if case["dtype"] == "FLOAT32":
            memory[: count * size] = small.view(np.uint8)
        elif case["dtype"] == "FLOAT16":
            memory[: count * size] = small.astype(np.float16).view(np.uint8)
        else:
            halves = (small.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
            memory[: count * size] = halves.view(np.uint8)
    return held, given
