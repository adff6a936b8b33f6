"""alu.npz: every instruction variant, all rows in one launch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.outcome import Outcome, Run, answer_of, compare, judge

BLOCK = 128


def replay_instructions(folder: Path, run: Run) -> Iterator[Outcome]:
    """Bit for bit, but for the payloads of NaNs where the recording says so."""
    with np.load(folder / "alu.npz") as recording:
        for number, text in enumerate(recording["meta"]):
            meta = json.loads(str(text))
            inputs = [recording[f"{number}_{x}"] for x in "abc"[: len(meta["ins"])]]
            recorded = recording[f"{number}_out"]
            yield judge(meta["name"], difference, run, meta, inputs, recorded)


def difference(
    run: Run, meta: dict[str, Any], inputs: list[np.ndarray], recorded: np.ndarray
) -> str | None:
    """What differs in one variant; None where nothing does."""
    out = np.zeros_like(recorded)
    args = [*inputs, *[out] * (4 - len(inputs))]
    grid = (recorded.size // BLOCK, 1, 1)
    ending, why = answer_of(lambda: run(meta["module"], "k", grid, (BLOCK, 1, 1), args))
    if ending != "ok":
        return f"{meta['ptx']}\n  must run, got {ending}: {why}"
    wrong = compare(out, recorded, meta["out"], meta["nan_payload"] == "ignore")
    if wrong is None:
        return None
    row = int(wrong.split("word ")[1].split(":")[0]) * out.size // recorded.size
    operands = ", ".join(f"{x[min(row, x.size - 1)]:#x}" for x in inputs)
    return f"{meta['ptx']}\n  {wrong}\n  operands of the first: {operands}"
