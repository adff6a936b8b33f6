"""What the driver answered to maps at the edges of its rules: each answer is predicted."""

from __future__ import annotations

import json
import math
import operator

import pytest

from lesson.tensor_map import TensorMap, _driver_arguments, accepts, check
from lesson.tensor_map_rules import RULES
from tests.recorded_edges import EDGES
from tests.recorded_maps import recorded_map

ENCODES = json.loads((EDGES / "edges_encode.json").read_text())
ANSWERS = [case for case in ENCODES if not case.get("null_strides")]


def test_every_answer_at_the_edges_is_predicted():
    wrong = [c for c in ANSWERS if accepts(recorded_map(c)) != (c["result"] == "CUDA_SUCCESS")]
    assert wrong == []


def test_a_box_that_counts_as_nothing_is_encoded_whatever_its_size():
    large = [case for case in ANSWERS if math.prod(case["box"]) > 228 << 10]
    short = [c for c in large if any(map(operator.lt, c["box"], c["estrides"]))]
    assert [case["result"] for case in short] == ["CUDA_SUCCESS"] * 4


# No recorded map has arrays of the wrong length or parts of numbers, and this chip refuses packed
# types before all else.
UNASKED = ("arguments_are_whole_numbers", "every_dimension_has_its_entries")
DECIDING = [r.__name__ for r in RULES if r.__name__ not in UNASKED and "packed" not in r.__name__]


@pytest.mark.parametrize("rule", DECIDING)
def test_a_rule_alone_decides_some_recorded_answer(rule):
    assert rule in {b[0].name for b in map(check, map(recorded_map, ENCODES)) if len(b) == 1}


def test_a_null_pointer_for_strides_is_refused_so_none_is_sent():
    asked = {c["null_strides"]: c["result"] for c in ENCODES if "null_strides" in c}
    assert asked == {0: "CUDA_SUCCESS", 1: "CUDA_ERROR_INVALID_VALUE"}

    class Driver:
        """Stands in for the bindings: enumerations without members, numbers as they are."""

        cuuint64_t = cuuint32_t = int

        def __getattr__(self, name: str) -> Driver:
            return self

    row = TensorMap("FLOAT32", (64,), (), (16,))
    strides = _driver_arguments(Driver(), row, 0)[4]
    assert len(strides) == 1
