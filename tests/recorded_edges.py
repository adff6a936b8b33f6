"""The copies that a GPU was asked for at the edges: how their answers are packed and read.

`edges_copy.json` holds the questions of `tests/gpu/tma_questions.py` with their outcomes, a row
each. `edges.npz` holds `shared_i`, shared memory after load i, and `changed_i` and `values_i`, the
global bytes that copy i changed; as the recorder writes it, or packed: all arrays end to end, which
compresses better, with the memory before the copies.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np

from tests.gpu.tma_memory import memory_before
from tests.gpu.tma_questions import Case

EDGES = Path(__file__).parent / "data" / "edges"
Arrays = dict[str, np.ndarray]


def pack(arrays: Arrays, path: Path) -> None:
    """Writes arrays end to end, as bytes."""
    names = sorted(arrays)
    parts = [np.ascontiguousarray(arrays[name]).view(np.uint8).ravel() for name in names]
    packed = {
        "names": np.array(names),
        "types": np.array([arrays[name].dtype.str for name in names]),
        "ends": np.cumsum([part.size for part in parts]),
        "data": np.concatenate(parts),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in packed.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            # A date of its own would make every packing another file.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getvalue(), zipfile.ZIP_LZMA)


def unpack(path: Path) -> Arrays:
    """The arrays of an archive, packed or not."""
    with np.load(path) as archive:
        if "names" not in archive.files:
            return {name: archive[name] for name in archive.files}
        names, types = archive["names"].tolist(), archive["types"].tolist()
        parts = np.split(archive["data"], archive["ends"][:-1])
    return {n: part.view(t) for n, t, part in zip(names, types, parts, strict=True)}


class Edges:
    """The recorded copies of a folder."""

    def __init__(self, folder: Path = EDGES) -> None:
        self.cases: list[Case] = json.loads((folder / "edges_copy.json").read_text())
        self.arrays = unpack(folder / "edges.npz")

    def before(self, case: Case) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of the tensor and of shared memory before a copy."""
        kind = case.get("data", "bytes")
        if f"tensor_of_{kind}" not in self.arrays:
            return memory_before(case)
        tensor, shared = self.arrays[f"tensor_of_{kind}"], self.arrays[f"shared_of_{kind}"]
        if case["op"] == "load":
            shared = np.full(shared.size, 0xA5, np.uint8)
        return tensor.copy(), shared.copy()

    def after(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of the tensor and of shared memory after a copy that came through."""
        tensor, shared = self.before(self.cases[index])
        tensor[self.arrays[f"changed_{index}"]] = self.arrays[f"values_{index}"]
        if self.cases[index]["op"] == "load":
            shared = self.arrays[f"shared_{index}"]
        return tensor, shared
