"""Thins what `record_tma_edges` wrote to what is kept under `tests/data/edges`.

    python -m tests.gpu.thin_tma_edges DIR... [--out OUT]

The answers of several folders, such as of both rounds, are joined in that order. All copies are
kept, with as much of the memory before them as any touches. Of the encodes all that were asked for
by hand are, and of the random ones a few for each combination of rules that they break, by what
`lesson.tensor_map` says; a map whose answer it does not foresee is kept anyway.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np

from lesson.tensor_map import check
from tests.gpu.tma_memory import memory_before
from tests.gpu.tma_questions import Case
from tests.recorded_edges import EDGES, Arrays, pack, unpack
from tests.recorded_maps import recorded_map

KEPT_OF_A_KIND = 2
TENSOR_NBYTES = 65536
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


def joined(sources: list[Path]) -> tuple[list[Case], list[Case], Arrays]:
    """The encodes, the copies and the arrays of all folders, as those of one."""
    encodes, copies, arrays = [], [], {}
    for source in sources:
        encodes += json.loads((source / "edges_encode.json").read_text())
        for name, array in unpack(source / "edges.npz").items():
            kind, number = name.split("_")
            arrays[f"{kind}_{int(number) + len(copies)}"] = array
        copies += json.loads((source / "edges_copy.json").read_text())
    return encodes, copies, arrays


def cut(name: str, array: np.ndarray) -> np.ndarray:
    """An array as small as it can be kept."""
    if name.startswith("changed"):
        return array.astype(np.uint32)
    if name.startswith("shared"):
        assert (array[SHARED_NBYTES:] == 0xA5).all()
        return array[:SHARED_NBYTES]
    return array


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=EDGES)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    encodes, copies, arrays = joined(options.sources)
    encodes = thinned(encodes)
    for name, rows in (("edges_encode", encodes), ("edges_copy", copies)):
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        (options.out / f"{name}.json").write_text(f"[{lines}]\n")
    arrays = {name: cut(name, array) for name, array in arrays.items()}
    for kind in sorted({case.get("data", "bytes") for case in copies}):
        tensor, shared = memory_before(dict(op="store", data=kind))
        arrays[f"tensor_of_{kind}"] = tensor[:TENSOR_NBYTES]
        arrays[f"shared_of_{kind}"] = shared[:SHARED_NBYTES]
    pack(arrays, options.out / "edges.npz")
    print(len(encodes), "encodes,", len(copies), "copies")


if __name__ == "__main__":
    main()
