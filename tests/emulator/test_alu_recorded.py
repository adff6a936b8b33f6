"""Every ALU variant that an H200 ran agrees with it, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.mini_ptx import Registers, evaluate

RECORDING = Path(__file__).parents[1] / "data" / "alu.npz"
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}


def storage_bits(kind: str) -> int:
    if kind == "pred" or kind.endswith("x2"):
        return 32
    return int(kind.lstrip("usbf"))


def run_variant(variant: dict, columns: list[np.ndarray]) -> np.ndarray:
    """The result column of a variant for its input columns."""
    kinds = dict(zip(("%a", "%b", "%c"), variant["ins"], strict=False)) | {"%d": variant["out"]}
    registers = Registers({r: 1 if k == "pred" else storage_bits(k) for r, k in kinds.items()})
    for register, kind, column in zip(kinds, variant["ins"], columns, strict=False):
        registers.values[register] = column != 0 if kind == "pred" else column
    with np.errstate(all="ignore"):
        evaluate(variant["ptx"], registers)
    result = registers.values["%d"]
    return result.astype(np.uint32) if variant["out"] == "pred" else result


def without_payloads(bits: np.ndarray, kind: str) -> np.ndarray:
    """The lanes of float bits, every NaN made the same."""
    exponent, mantissa = FORMATS[kind.removesuffix("x2")]
    lanes = np.ascontiguousarray(bits).view(np.uint16) if kind.endswith("x2") else bits
    infinity = ((1 << exponent) - 1) << mantissa
    magnitude = lanes & lanes.dtype.type((1 << (exponent + mantissa)) - 1)
    return np.where(magnitude > infinity, lanes.dtype.type(infinity + 1), lanes)


def differing_rows(variant: dict, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    if variant["nan_payload"] == "ignore":
        got, want = (without_payloads(x, variant["out"]) for x in (got, want))
    return np.flatnonzero((got != want).reshape(512, -1).any(axis=1))


@pytest.fixture(scope="module")
def recording() -> dict[str, np.ndarray]:
    with np.load(RECORDING) as archive:
        return {key: archive[key] for key in archive.files}


def variants() -> list[dict]:
    if not RECORDING.exists():
        return []
    with np.load(RECORDING) as archive:
        return [json.loads(text) for text in archive["meta"]]


VARIANTS = variants()


@pytest.mark.parametrize("number", range(len(VARIANTS)), ids=[v["name"] for v in VARIANTS])
def test_a_recorded_variant_gives_the_bits_of_the_chip(
    number: int, recording: dict[str, np.ndarray]
) -> None:
    variant, want = VARIANTS[number], recording[f"{number}_out"]
    columns = [recording[f"{number}_{r}"] for r in "abc"[: len(variant["ins"])]]
    got = run_variant(variant, columns)
    bad = differing_rows(variant, got, want)
    shown = [[hex(c[row]) for c in (*columns, got, want)] for row in bad[:5]]
    assert not len(bad), (
        f"{variant['ptx']} differs in {len(bad)} rows; operands, got, want: {shown}"
    )


def test_the_recording_holds_all_855_variants() -> None:
    assert len(VARIANTS) == 855
