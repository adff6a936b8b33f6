"""The text under `check_map`: every argument, the verdict, and each broken rule with its cure."""

import numpy as np
import pytest

from lesson.map_report import ACCEPTED, REFUSED, report, verdict
from lesson.tensor_map import TensorMap, check
from tests.test_tensor_map_rules import BREAKS

ARRAY = np.zeros((256, 256), np.float32)
LEGAL = dict(dims=(256, 256), strides_bytes=(1024,), box=(64, 64), base=ARRAY)


def report_of(**changes: object) -> list[str]:
    return report(TensorMap(dtype="FLOAT32", **{**LEGAL, **changes})).split("\n")


def test_a_legal_map_is_accepted_argument_by_argument():
    lines = report_of()
    assert lines[-1] == ACCEPTED
    assert {line[:2] for line in lines[:-1]} == {"ok"}
    assert "ok  global_strides   1024 bytes" in lines
    assert "ok  box_dim          64 x 64 elements, 256 bytes a row" in lines


@pytest.mark.parametrize(
    "changes, argument, words",
    [
        (dict(dims=(257, 256), strides_bytes=(1028,)), "global_strides", "got 1028"),
        (dict(box=(257, 64)), "box_dim", "got 257"),
        (dict(swizzle="128B"), "box_dim", "128 bytes under swizzle 128B, got 256"),
        (dict(base_offset_bytes=4), "global_address", "got"),
        (dict(element_strides=(1, 9)), "element_strides", "got 9"),
    ],
)
def test_a_refused_map_names_the_argument_and_the_rule(changes, argument, words):
    lines = report_of(**changes)
    marked = [line.split()[1] for line in lines if line.startswith("no  ")]
    assert argument in marked
    broken = lines[lines.index(REFUSED) + 1 :]
    assert any(words in line for line in broken)


@pytest.mark.parametrize("name, parameters", [(name, given) for name, given, _ in BREAKS])
def test_every_rule_marks_the_row_of_its_argument(name, parameters):
    tmap = TensorMap(**parameters)
    (broken,) = (rule for rule in check(tmap) if rule.name == name)
    rows = [line.split()[:2] for line in report(tmap).split("\n")]
    assert ["no", broken.argument.split("[")[0]] in rows


def test_a_map_without_a_box_is_reported_too():
    lines = report_of(box=())
    assert "no  box_dim           elements" in lines


def test_strides_in_elements_are_accepted_which_is_the_trap():
    assert report_of(strides_bytes=(256,))[-1] == ACCEPTED


def test_a_verdict_is_one_line_with_the_first_broken_rule():
    assert verdict(TensorMap(dtype="FLOAT32", **LEGAL)) == "accepted"
    said = verdict(TensorMap(dtype="FLOAT32", **{**LEGAL, "box": (257, 64)}))
    assert said.startswith("refused: box_dim[0] must be 1 to 256, got 257.")
    assert said.endswith("(and 1 more)")
    assert "\n" not in said
