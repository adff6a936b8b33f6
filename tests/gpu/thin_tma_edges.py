"""Thins what `record_tma_edges` wrote to what is kept under `tests/data/edges`.

    python -m tests.gpu.thin_tma_edges DIR [OUT]

All copies are kept, with as much of the memory before them as any touches. Of the encodes all
that were asked for by hand are, and of the random ones a few for each combination of rules that
they break, by what `lesson.tensor_map` says; a map whose answer it does not foresee is kept anyway.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from lesson.tensor_map import check
from tests.gpu.tma_memory import memory_before
from tests.gpu.tma_questions import Case
from tests.recorded_edges import EDGES, pack, unpack
from tests.recorded_maps import recorded_map

KEPT_OF_A_KIND = 2
TENSOR_NBYTES = 20480
SHARED_NBYTES = 8192


def thinned(rows: list[Case]) -> list[Case]:
    """The encodes that are kept."""
    seen: Counter[tuple[object, ...]] = Counter()
    kept = []
    for row in rows:
        broken = tuple(rule.name for rule in check(recorded_map(row)))
        foreseen = (row["result"] == "CUDA_SUCCESS") == (not broken)
        kind = (
            *broken,
            *((row[k] for k in ("rank", "interleave", "swizzle")) if not broken else ()),
        )
        seen[kind] += 1
        if "seed" not in row or not foreseen or seen[kind] <= KEPT_OF_A_KIND:
            kept.append(row)
    return kept


def main(source: Path, out: Path = EDGES) -> None:
    out.mkdir(parents=True, exist_ok=True)
    encodes = thinned(json.loads((source / "edges_encode.json").read_text()))
    cases = json.loads((source / "edges_copy.json").read_text())
    for name, rows in (("edges_encode", encodes), ("edges_copy", cases)):
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        (out / f"{name}.json").write_text(f"[{lines}]\n")
    arrays = unpack(source / "edges.npz")
    for name, array in arrays.items():
        arrays[name] = array.astype(np.uint32) if name.startswith("changed") else array
        if name.startswith("shared"):
            assert (array[SHARED_NBYTES:] == 0xA5).all()
            arrays[name] = array[:SHARED_NBYTES]
    for kind in ("bytes", "words"):
        tensor, shared = memory_before(dict(op="store", data=kind))
        arrays[f"tensor_of_{kind}"] = tensor[:TENSOR_NBYTES]
        arrays[f"shared_of_{kind}"] = shared[:SHARED_NBYTES]
    pack(arrays, out / "edges.npz")
    print(len(encodes), "encodes,", len(cases), "copies")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
