"""The exercises: solutions are right, wrong answers are told why, hints wait to be asked."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from lesson import check_gpu, helpers, targets
from lesson.errors import LessonError, SnippetError
from lesson.exercises import NAMES, exercise, find, gap
from lesson.exercises.hints import HINTS
from lesson.findings import Outcome
from lesson.targets import Name, Target

STARTER_MAPS = {
    "edges": {"dims": (256, 256), "strides_bytes": (1024,)},
    "swizzle": {"swizzle": "NONE"},
}
PLAIN_STORE = "out[(tileY + row) * kWidth + tileX + column]"
NO_OVERLAP = """
for (int n = 0; n < kTiles; ++n) {
    if (threadIdx.x == 0) fetch(n % kStages, n);
    waitFor(n % kStages, n / kStages % 2);
    store(n % kStages, n);
    __syncthreads();
}
"""


@pytest.fixture(autouse=True)
def _on_emulator(monkeypatch):
    monkeypatch.setattr(targets, "choose", lambda: Target(Name.EMULATOR, "A test asks for it."))


@cache
def answer(name, code, fields="{}"):
    return find(name).check(code, json.loads(fields))


def solved(name):
    code, fields = find(name).solution_parts()
    return code, fields


def attempt(name, *edits, **fields):
    """The check's answer on the solution with something changed."""
    code, given = solved(name)
    for old, new in edits:
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    return answer(name, code, json.dumps(fields or given))


def row(given, name):
    return next(row for row in given.card.rows if row.name == name)


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_gets_all_points(name):
    given = attempt(name)
    assert given.ok
    assert str(given.card).startswith(f"{name}: solved, 3 of 3 points:")


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_that_a_gap_starts_with_get_no_point_and_are_told_what_is_missing(name):
    given = find(name).check(find(name).starter(), STARTER_MAPS.get(name))
    assert given.points == 0
    assert row(given, "asked").says.startswith("not yet. ")
    assert str(given.card).endswith(f'helpers.exercise("{name}").hint(1)')


@pytest.mark.parametrize("name", NAMES)
def test_a_gap_fits_a_cell(name):
    for code in (find(name).starter(), solved(name)[0]):
        assert len(code.strip("\n").split("\n")) <= 10


# What is wrong with a solution, the finding, the line of the reader's, and a piece of its words.
WRONG = {
    "edges: no guard": (
        "edges", [("if (tileX + column < kWidth && tileY + row < kHeight) ", "")],
        "out-of-bounds", "line 7 of yours", "past the end of out",
    ),
    "edges: rows unguarded": (
        "edges", [(" && tileY + row < kHeight", "")],
        "out-of-bounds", "line 7 of yours", "past the end of out",
    ),
    "edges: the bytes inside": (
        "edges", [("sizeof(tile)", "min(kTile, kWidth - tileX) * min(kTile, kHeight - tileY) * 4")],
        "too-few-bytes-expected", "line 1 of yours", "hangs over the edge",
    ),
    "edges: the width of the tile": (
        "edges", [("* kWidth + (tileX", "* kTile + (tileX")],
        "written-by-several-blocks", "line 7 of yours", "both write element",
    ),
    "ring: no barrier before the refill": (
        "ring", [("    __syncthreads();", "")],
        "buffer-reused-early", "line 7 of yours", "may still read what was there",
    ),
    "ring: parity of the tile": (
        "ring", [("n / kStages % 2", "n % 2")],
        "wait-wrong-parity", "line 4 of yours", "full[1] asks for parity 1",
    ),
    "ring: parity 0": (
        "ring", [("n / kStages % 2", "0")],
        "wait-wrong-parity", "line 4 of yours", "full[0] asks for parity 0",
    ),
    "ring: no end": (
        "ring", [(" && n + kStages < kTiles", "")],
        "copy-never-waited", "line 7 of yours", "exits without having waited",
    ),
    "ring: no refill": (
        "ring", [("fetch(stage, n + kStages)", "(void)stage")],
        "phase-never-ends", "line 4 of yours", "Nobody arrives at the barrier full[0]",
    ),
    "store: no fence": (
        "store", [("ptx::fence_proxy_async(ptx::space_shared);", "")],
        "store-unfenced", "line 2 of yours", "no proxy fence between",
    ),
    "store: no barrier": (
        "store", [("__syncthreads();", "")],
        "store-unsynced", "line 2 of yours", "without waiting for the threads",
    ),
    "store: no group": (
        "store", [("    ptx::cp_async_bulk_commit_group();\n", "")],
        "store-not-committed", "line 7 of yours", "never committed",
    ),
    "store: no wait": (
        "store", [("    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});", "")],
        "store-not-waited", "line 7 of yours", "without waiting for its bulk store",
    ),
    "store: the number of the tile": (
        "store", [("{tileX, tileY}", "{(int)blockIdx.x, (int)blockIdx.y}")],
        "misaligned-coordinate", "line 7 of yours", "not tiles",
    ),
    "store: nothing added": (
        "store", [("+= 1.0f", "+= 0.0f")],
        "output-wrong", "line 7 of yours", "Each of them is off by -1.",
    ),
    "swizzle: only in the map": (
        "swizzle", [("piece * 4 + column % 4", "column")],
        "swizzle-not-undone", "line 4 of yours", "reads the tile as if it did not",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_is_told_why_at_its_line(wrong):
    name, edits, kind, where, piece = WRONG[wrong]
    given = attempt(name, *edits)
    assert not given.ok
    found = row(given, "findings")
    assert found.says == f"{kind}, {where}"
    assert piece in found.finding.says


@pytest.mark.parametrize(
    "fields,kind,piece",
    [
        ({"swizzle": "NONE"}, "swizzle-not-undone", "undoes a swizzle that the map does not do"),
        ({"swizzle": "64B"}, "map-refused", "at most 64 bytes under swizzle 64B"),
    ],
)
def test_a_wrong_map_of_the_swizzled_tile_is_told_why(fields, kind, piece):
    found = row(attempt("swizzle", **fields), "findings")
    assert found.says.startswith(kind)
    assert piece in found.finding.says


def test_a_map_with_rows_first_is_told_why_and_stands_in_no_line_of_the_kernel():
    given = attempt("edges", dims=[120, 200], strides_bytes=[480])
    found = row(given, "findings")
    assert (found.says, found.finding.source) == ("map-x-y-swapped, your map", "")
    assert "got 120 x 200 elements (x first), 480 bytes" in row(given, "asked").says


@pytest.mark.parametrize(
    "name,edits,piece",
    [
        pytest.param(
            "store", [("if (threadIdx.x == 0) {", "{")],
            "stored by the engine once, got 2048 copies", marks=pytest.mark.slow,
        ),
        ("store", [("tile[row][column] += 1.0f", f"{PLAIN_STORE} = tile[row][column] += 1.0f")],
         "No thread may store to global memory itself, got 32768"),
        ("ring", [("fetch(stage, n + kStages)", "fetch(stage, n + 1)")],
         "fetched once, got 32 copies of 28"),
        ("swizzle", [("row % 8", "row % 4")], "4 passes at most, got 8"),
    ],
)  # fmt: skip
def test_what_was_asked_is_counted(name, edits, piece):
    given = attempt(name, *edits)
    assert given.points < 3
    assert piece in row(given, "asked").says


def test_a_ring_without_overlap_is_right_and_not_what_was_asked():
    given = answer("ring", NO_OVERLAP)
    assert row(given, "bits").says == "all bits right, whenever the copies land"
    assert row(given, "findings").says == "none"
    assert "got 0 of 32 copies that were asked for while another was in flight" in str(
        row(given, "asked").says
    )
    assert given.points == 0


def test_points_are_one_each_for_what_was_asked_the_bits_and_the_findings():
    fence = attempt("store", ("ptx::fence_proxy_async(ptx::space_shared);", ""))
    assert fence.points == 2  # right bits by luck
    assert attempt("store", ("+= 1.0f", "+= 0.0f")).points == 1


def test_a_line_that_does_not_compile_is_quoted_as_the_readers_own():
    given = attempt("edges", ("const int column", "const int colum"))
    (only,) = given.card.rows
    assert only.name == "compiles"
    assert only.says.startswith('not yet. Line 6 of yours: identifier "column" is undefined.')


@pytest.mark.parametrize("fields", [{"swizle": "128B"}, {"swizzle": "129B"}, {"box": [64]}])
def test_a_map_that_is_none_is_an_answer_and_no_traceback(fields):
    given = attempt("swizzle", **fields)
    assert (given.points, given.card.is_good) == (0, False)


@pytest.mark.parametrize("code", ["", "// nothing", "return;", "for (;;) {}", "}"])
def test_lines_of_any_kind_get_an_answer(code):
    assert find("ring").check(code).points == 0


def test_lines_that_are_no_text_are_refused():
    with pytest.raises(SnippetError, match=r"the lines for ring\.cu must be text, got int"):
        find("ring").check(3)


def test_lines_of_the_file_keep_their_numbers_however_long_the_gap_is():
    source = find("ring").source
    filled = gap.fill(source, "a;\nb;\n" * 10)
    region = source.snippet("yours")
    assert filled.where(region.first_line - 1) == f"ring.cu line {region.first_line - 1}"
    assert filled.where(region.first_line) == "line 1 of yours"
    assert filled.where(region.first_line + 19) == "line 20 of yours"
    behind = filled.text.split("\n").index("    // end snippet") + 1
    assert filled.where(behind) == f"ring.cu line {region.last_line + 1}"
    assert filled.where(0) == "the launch"


def test_hints_come_one_by_one_and_only_when_asked(capsys):
    assert "Hint" not in str(find("ring"))
    find("ring").hint()
    assert capsys.readouterr().out == ("There are 3 hints. The first gives least away: hint(1).\n")
    find("ring").hint(2)
    said = capsys.readouterr().out
    assert said.startswith("Hint 2 of 3: Each stage has a barrier")
    assert "__syncthreads" not in said
    with pytest.raises(LessonError, match="a hint must be 1 to 3, got 4"):
        find("ring").hint(4)


def test_every_exercise_has_three_hints():
    assert {name: len(hints) for name, hints in HINTS.items()} == dict.fromkeys(NAMES, 3)


def test_no_check_looks_at_a_solution():
    folder = Path(gap.__file__).parent
    users = [path.stem for path in folder.glob("*.py") if "solution" in ast_names(path)]
    assert users == ["exercise"]  # which shows it on demand


def ast_names(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {re.sub("_.*", "", name) for name in found}


def test_a_solution_is_shown_on_demand():
    shown = str(find("swizzle").solution())
    assert '// map: {"swizzle": "128B"}' in shown
    assert "^ (row % 8)" in shown


def test_a_class_may_take_the_solutions_away(monkeypatch, tmp_path):
    monkeypatch.setattr(exercise, "FOLDER", tmp_path)
    with pytest.raises(LessonError, match="the solution of ring must be in the package, got none"):
        find("ring").solution()


def test_an_exercise_shows_its_kernel_with_the_marks_of_the_gap():
    shown = str(helpers.exercise("edges"))
    assert shown.startswith("edges.cu, lines ")
    assert shown.index("yours, from here") < shown.index("bar.wait(") < shown.index("to here")
    assert "constexpr int kWidth = 200;" in shown


def test_an_exercise_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(LessonError, match="must be one of edges, ring, store, swizzle, got 'rign'"):
        helpers.exercise("rign")


def test_in_plain_text_an_answer_is_its_points_for_nbgrader():
    given = attempt("ring")
    assert float(repr(given)) == 3.0
    assert given._repr_html_() == "<small>3 of 3 points</small>"


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr(targets, "choose", lambda: Target(Name.GPU, "NVIDIA H200"))
    launched = []

    def says(outcome):
        def on_the_gpu(case, ptx, outcomes):
            launched.append(case.kernel)
            return outcome

        monkeypatch.setattr(check_gpu, "on_the_gpu", on_the_gpu)
        return launched

    return says


def test_on_a_gpu_what_holds_in_the_emulator_runs_there_too_and_says_the_same(on_gpu):
    launched = on_gpu(Outcome("GPU", "ok"))
    code, fields = solved("ring")
    given = find("ring").check(code, fields)
    assert launched == ["ringOfStages"]
    assert str(given.card) == str(attempt("ring").card)


def test_on_a_gpu_what_is_wrong_in_the_emulator_is_not_launched(on_gpu):
    launched = on_gpu(Outcome("GPU", "ok"))
    find("ring").check(find("ring").starter())
    assert launched == []


def test_a_gpu_that_disagrees_is_told(on_gpu):
    on_gpu(Outcome("GPU", "wrong", "", 7))
    code, fields = solved("ring")
    given = find("ring").check(code, fields)
    assert given.points == 2
    assert row(given, "this GPU").says == "7 of 32768 elements wrong, no error"
