"""sync.npz: threads together, memory and control flow, one small module a case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.outcome import Outcome, Run, answer_of, compare, excerpt, judge, same_ending

THREAD_SETS = ("mbarrier", "mbarrier_errors", "warp", "atom", "memory", "control")
FILL = 0xA5


def replay_threads(folder: Path, run: Run, name: str) -> Iterator[Outcome]:
    """The cases of one set of the file."""
    with np.load(folder / "sync.npz") as recording:
        for number, text in enumerate(recording["meta"]):
            meta = json.loads(str(text))
            if meta["set"] == name:
                inputs = [recording[f"{number}_{x}"] for x in "abc"[: len(meta["ins"])]]
                out, mask = (recording.get(f"{number}_{key}") for key in ("out", "mask"))
                yield judge(meta["name"], difference, run, meta, inputs, out, mask)


def difference(
    run: Run,
    meta: dict[str, Any],
    inputs: list[np.ndarray],
    recorded: np.ndarray | None,
    mask: np.ndarray | None = None,
) -> str | None:
    """What differs in one case, of the bits of a mask if there is one; None where nothing does."""
    dtype, length = meta["out"]
    out = np.full(length * np.dtype(dtype).itemsize, FILL, np.uint8).view(dtype)
    args: list[Any] = [*inputs, *[out] * (4 - len(inputs))]
    if meta["struct"]:
        args.append(bytes.fromhex(meta["struct"]))
    grid, block = tuple(meta["grid"]), tuple(meta["block"])
    ending, why = answer_of(lambda: run(meta["module"], "k", grid, block, args))
    if not same_ending(meta["outcome"], ending):
        return f"must end with {meta['outcome']}, got {ending}: {why}\n{shown(meta)}"
    if recorded is None or ending != "ok":
        return None
    if mask is not None:
        out, recorded = out & mask, recorded & mask
    kind = meta["name"].split(".")[-1]
    wrong = compare(out, recorded, kind, meta.get("nan_payload") == "ignore")
    return None if wrong is None else f"{wrong}\n{shown(meta)}"


def shown(meta: dict[str, Any]) -> str:
    """The operations of a program, or its PTX."""
    operations = meta.get("ops")
    head = f"operations: {list(enumerate(operations))}\n" if operations else ""
    return f"{head}grid {meta['grid']} block {meta['block']}\n{excerpt(meta['module'])}"
