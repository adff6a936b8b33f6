"""Forty-three sample kernels, as nine compilers and Triton wrote them, against what an H200 did.

Each text of tests/data/kernels/ptx.json.gz runs under every schedule of the copy engine, and every
bit of every array is compared with the recording that `tests/gpu/record_kernels.py` made. A kernel
that the emulator refuses must be listed here with its reason.
"""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

from lesson.errors import UnsupportedPtx
from tests.kernels import pack, replay, samples

SAMPLES = {s.name: s for s in samples.all_samples()}
PACK = pack.load()
TEXTS = [(name, variant) for name, texts in PACK.items() for variant in texts]
SCHEDULES = ("eager", "late", "random")
REFUSED: dict[str, str] = {}


@functools.cache
def recorded() -> dict[str, np.ndarray]:
    """`sample/array` -> what the H200 left in it."""
    with np.load(pack.DATA / "outputs.npz") as file:
        return dict(file)


def bits(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, in order."""
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name,variant", TEXTS)
def test_a_sample_leaves_the_bits_that_the_h200_left(
    name: str, variant: str, schedule: str
) -> None:
    text = PACK[name][variant]
    if name in REFUSED:
        with pytest.raises(UnsupportedPtx):
            replay.run(SAMPLES[name], text, schedule)
        return
    for array, got in replay.run(SAMPLES[name], text, schedule).items():
        want = recorded()[f"{name}/{array}"]
        differs = np.flatnonzero(bits(got) != bits(want))
        assert differs.size == 0, f"{array}: {differs.size} bytes differ, first {differs[0]}"


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_h200_did_what_the_head_of_a_sample_promises(name: str) -> None:
    for array, want in SAMPLES[name].expected().items():
        assert np.array_equal(bits(recorded()[f"{name}/{array}"]), bits(want)), array


def test_every_compiler_gave_the_same_bits_on_the_h200() -> None:
    outcomes = json.loads((pack.DATA / "outcomes.json").read_text())["outcomes"]
    assert set(outcomes) == set(SAMPLES)
    results = [r for variants in outcomes.values() for r in variants.values()]
    assert [r for r in results if r["outcome"] != "ok" or not r["repeatable"]] == []
    assert [key for key in recorded() if "@" in key] == []
