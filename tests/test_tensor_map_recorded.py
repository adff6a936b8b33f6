"""The driver's recorded answers to tensor maps: each is predicted."""

from __future__ import annotations

import pytest

from lesson.errors import TensorMapError
from lesson.tensor_map import accepts, check, refuse
from tests.recorded_maps import cases, recorded_map

ENCODES = cases("encode")


def test_every_recorded_encode_is_predicted():
    wrong = [
        case
        for case in ENCODES
        if accepts(recorded_map(case)) != (case["result"] == "CUDA_SUCCESS")
    ]
    assert wrong == []


def test_the_recording_holds_both_answers():
    answers = [case["result"] for case in ENCODES]
    assert answers.count("CUDA_SUCCESS") > 400
    assert answers.count("CUDA_ERROR_INVALID_VALUE") > 200


@pytest.mark.parametrize("index", range(0, len(ENCODES), 25))
def test_a_refusal_is_raised_with_every_broken_rule(index):
    tmap = recorded_map(ENCODES[index])
    broken = check(tmap)
    if not broken:
        refuse(tmap)
        return
    with pytest.raises(TensorMapError) as caught:
        refuse(tmap)
    assert caught.value.broken == tuple(broken)
    assert str(caught.value).split("\n") == [str(rule) for rule in broken]
