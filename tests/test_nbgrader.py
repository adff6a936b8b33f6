"""The notebook's exercises as nbgrader has them: which cells students fill in, and which grade.

The rules are those of nbgrader's cell metadata, schema version 3; nbgrader itself is not needed.
"""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from lesson import helpers, targets
from lesson.exercises import NAMES, find
from lesson.exercises.judge import MOST_POINTS
from lesson.targets import Name, Target

PATH = Path(__file__).resolve().parent.parent / "notebooks" / "day76_tma_tile.ipynb"
KEYS = {"grade", "grade_id", "locked", "schema_version", "solution", "task"}


@cache
def cells():
    return json.loads(PATH.read_text(encoding="utf-8"))["cells"]


def marked():
    return [cell for cell in cells() if "nbgrader" in cell["metadata"]]


def of(name, part):
    return next(c for c in marked() if c["metadata"]["nbgrader"]["grade_id"] == f"{name}-{part}")


def source(cell):
    return "".join(cell["source"])


def variables(cell):
    names = {}
    exec(compile(source(cell), "cell", "exec"), names)
    del names["__builtins__"]
    return names


def broken_rules(metadata):
    """What nbgrader would complain of in a code cell."""
    broken = [] if set(metadata) - {"points"} == KEYS else ["keys"]
    broken += [] if metadata.get("schema_version") == 3 else ["schema_version"]
    flags = ("grade", "locked", "solution", "task")
    broken += [flag for flag in flags if not isinstance(metadata.get(flag), bool)]
    is_name = re.fullmatch(r"[A-Za-z0-9_-]+", metadata.get("grade_id", ""))
    broken += [] if is_name else ["grade_id"]
    points = metadata.get("points")
    has_points = isinstance(points, int | float) and points > 0
    broken += [] if has_points == metadata.get("grade") else ["points"]
    return broken + (["task"] if metadata.get("task") else [])


def test_the_metadata_keeps_the_rules_of_schema_version_3():
    assert [broken_rules(cell["metadata"]["nbgrader"]) for cell in marked()] == [[]] * 2 * len(
        NAMES
    )
    ids = [cell["metadata"]["nbgrader"]["grade_id"] for cell in marked()]
    assert len(set(ids)) == len(ids)


def test_metadata_that_nbgrader_refuses_is_noticed():
    good = of("ring", "check")["metadata"]["nbgrader"]
    assert broken_rules(good) == []
    assert broken_rules({**good, "schema_version": 2}) == ["schema_version"]
    assert broken_rules({**good, "grade_id": "a b"}) == ["grade_id"]
    assert broken_rules({**good, "locked": "yes"}) == ["locked"]
    assert broken_rules({k: v for k, v in good.items() if k != "points"}) == ["points"]
    assert broken_rules({**good, "cell": 1}) == ["keys"]


@pytest.mark.parametrize("name", NAMES)
def test_each_exercise_has_a_cell_to_fill_in_and_a_locked_one_behind_it_that_grades(name):
    fill, check = of(name, "code"), of(name, "check")
    assert cells().index(check) == cells().index(fill) + 1
    fills, checks = fill["metadata"]["nbgrader"], check["metadata"]["nbgrader"]
    assert (fills["solution"], fills["grade"], fills["locked"]) == (True, False, False)
    assert (checks["solution"], checks["grade"], checks["locked"]) == (False, True, True)
    assert checks["points"] == MOST_POINTS


@pytest.mark.parametrize("name", NAMES)
def test_the_cell_to_fill_in_starts_as_the_gap_does(name):
    assert variables(of(name, "code"))[f"{name}_code"].strip("\n") == find(name).starter().strip(
        "\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_answer_is_zero_points_in_a_form_that_nbgrader_reads(name):
    outputs = of(name, "check")["outputs"]
    assert [o["output_type"] for o in outputs] == ["display_data", "execute_result"]
    assert float("".join(outputs[1]["data"]["text/plain"])) == 0.0
    assert "".join(outputs[0]["data"]["text/plain"]).startswith(f"{name}: not solved yet, 0 of 3")


@pytest.mark.parametrize("name", NAMES)
def test_the_cell_that_grades_gives_all_points_for_the_solution(name, monkeypatch):
    monkeypatch.setattr(targets, "choose", lambda: Target(Name.EMULATOR, "A test asks for it."))
    code, fields = find(name).solution_parts()
    expression = ast.parse(source(of(name, "check")), mode="eval")
    names = {"helpers": helpers, f"{name}_code": code, f"{name}_map": fields}
    assert float(repr(eval(compile(expression, "cell", "eval"), names))) == MOST_POINTS
