"""Forty-three sample kernels, as nine compilers and Triton wrote them, against what an H200 did.

Each text of tests/data/kernels/ptx.json.gz runs under every schedule of the copy engine, and every
bit of every array is compared with the recording that `tests/gpu/record_kernels.py` made. A kernel
that the emulator refuses is listed in `replay.REFUSED` with its reason.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from lesson.errors import UnsupportedPtx
from tests.kernels import pack, replay, samples

SAMPLES = {s.name: s for s in samples.all_samples()}
PACK = pack.load()
TEXTS = [(name, variant) for name, texts in PACK.items() for variant in texts]
RUN = [(name, variant) for name, variant in TEXTS if name not in replay.REFUSED]


@pytest.mark.parametrize("name,variant", RUN)
def test_a_sample_leaves_the_bits_that_the_h200_left_under_every_schedule(
    name: str, variant: str
) -> None:
    for schedule in replay.SCHEDULES:
        assert replay.difference(SAMPLES[name], PACK[name][variant], schedule) == "", schedule


@pytest.mark.parametrize("name", sorted(replay.REFUSED))
def test_a_sample_whose_bits_no_text_fixes_is_refused_by_its_instruction(name: str) -> None:
    opcode = replay.REFUSED[name].split(":")[0]
    for text in PACK[name].values():
        with pytest.raises(UnsupportedPtx, match=opcode):
            replay.run(SAMPLES[name], text)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_h200_did_what_the_head_of_a_sample_promises(name: str) -> None:
    for array, want in SAMPLES[name].expected().items():
        got = replay.recorded()[f"{name}/{array}"]
        assert np.array_equal(replay.bits(got), replay.bits(want)), array


def test_every_compiler_gave_the_same_bits_on_the_h200() -> None:
    outcomes = json.loads((pack.DATA / "outcomes.json").read_text())["outcomes"]
    assert set(outcomes) == set(SAMPLES)
    results = [r for variants in outcomes.values() for r in variants.values()]
    assert [r for r in results if r["outcome"] != "ok" or not r["repeatable"]] == []
    assert [key for key in replay.recorded() if "@" in key] == []
