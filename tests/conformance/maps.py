"""encode.json: does `lesson.tensor_map` foresee what the driver says of a map?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lesson.tensor_map import TensorMap, check
from tests.conformance.outcome import Outcome, Run, judge

BASE_ADDRESS = 1 << 30  # the recorded offsets count from an address aligned to 1024 bytes


def map_of(row: dict[str, Any], base: Any = None) -> TensorMap:
    """The map of a recorded row."""
    return TensorMap(
        dtype=row["dtype"],
        dims=tuple(row["dims"]),
        strides_bytes=tuple(row["strides"]),
        box=tuple(row["box"]),
        element_strides=tuple(row["estrides"]),
        interleave=row["interleave"],
        swizzle=row["swizzle"],
        l2_promotion=row["l2"],
        oob_fill=row["oob"],
        base=base,
        base_offset_bytes=row["offset"],
        given_rank=row["rank"] if row["rank"] != len(row["dims"]) else None,
    )


def replay_encodes(folder: Path, _: Run) -> Iterator[Outcome]:
    """Accepted or refused; a refusal must name a rule."""
    for number, row in enumerate(json.loads((folder / "encode.json").read_text())):
        yield judge(f"encode {number}", difference, row)


def difference(row: dict[str, Any]) -> str | None:
    """What differs in one answer; None where nothing does."""
    broken = check(map_of(row, BASE_ADDRESS))
    if (not broken) == (row["result"] == "CUDA_SUCCESS"):
        return None
    shown = {key: value for key, value in row.items() if key != "opaque"}
    said = "; ".join(map(str, broken)) or "no broken rule"
    return f"{shown}\n  the emulator says: {said}"
