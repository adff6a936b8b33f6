"""The notebook's door: what each helper prints, returns and refuses."""

import inspect
import re

import pytest

from lesson import gpu, helpers, helpers_pictures, targets
from lesson.errors import LessonError, SnippetError, TensorMapError
from lesson.figure_style import Picture
from lesson.targets import Name, Target


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr(
        targets, "choose", lambda: Target(Name.GPU, "NVIDIA H200 (compute capability 9.0)")
    )


@pytest.fixture
def on_emulator(monkeypatch):
    monkeypatch.setattr(targets, "choose", lambda: Target(Name.EMULATOR, "CuPy is missing."))


def test_one_line_says_where_the_lesson_runs_and_why_with_a_gpu(on_gpu, capsys):
    helpers.where_am_i()
    assert capsys.readouterr().out == (
        "Runs on: NVIDIA H200 (compute capability 9.0), live through CuPy.\n"
    )


def test_one_line_says_where_the_lesson_runs_and_why_without_one(on_emulator, capsys):
    helpers.where_am_i()
    assert capsys.readouterr().out == ("Runs on: the emulator, on the CPU. Why: CuPy is missing.\n")


@pytest.mark.parametrize("name", ["issue-tma", "plain-store", "encode-map"])
def test_each_snippet_is_shown_with_line_numbers(name):
    shown = str(helpers.snippet(name))
    assert re.match(r"tma_tile\.cu, lines \d+ to \d+\n +\d+  \S", shown)


def test_instructions_are_counted_in_the_lessons_kernel_or_in_other_source():
    assert helpers.count_instructions("cp.async.bulk.tensor") == {"cp.async.bulk.tensor": 1}
    source = 'extern "C" __global__ void k(int* p) { p[threadIdx.x] = p[threadIdx.x + 1]; }'
    counts = helpers.count_instructions("ld.global", "st.global", source=source)
    assert counts == {"ld.global": 1, "st.global": 1}


def test_the_lessons_map_is_accepted_and_a_changed_one_judged(on_emulator, capsys):
    assert helpers.verdict(helpers.tensor_map()) == "accepted"
    assert helpers.verdict(helpers.tensor_map(box=(257, 64))).startswith("refused: box_dim[0]")
    helpers.check_map(helpers.tensor_map())
    assert capsys.readouterr().out.endswith("The driver accepts this map.\n")


def test_on_a_gpu_the_driver_is_asked_and_must_agree(on_gpu, monkeypatch):
    monkeypatch.setattr(gpu, "driver_accepts", lambda tmap: True)
    assert helpers.verdict(helpers.tensor_map()) == "accepted"
    with pytest.raises(TensorMapError, match="must be that of the rules, got the opposite"):
        helpers.verdict(helpers.tensor_map(box=(257, 64)))


def test_the_instruction_of_a_snippet_is_shown_as_ptx_and_as_recorded_sass(capsys):
    helpers.show_instruction("issue-tma")
    ptx, sass = capsys.readouterr().out.strip().split("\n")
    assert ptx.startswith("PTX:  cp.async.bulk.tensor.2d.")
    assert sass.startswith("SASS: UTMALDG.2D [")


def test_edits_of_an_edited_kernel_add_up():
    first = helpers.edit("issue-tma", "sizeof(tile)", "1")
    second = helpers.edit("plain-store", "1.0f", "3.0f", first)
    assert set(second.regions) == {"issue-tma", "plain-store"}
    with pytest.raises(SnippetError, match="exactly once"):
        helpers.edit("issue-tma", "no such text", "1")


def test_runs_prove_themselves_and_recorded_ones_can_be_drawn(on_emulator):
    run = helpers.run_recorded()
    assert run.verdict.startswith("round trip: PASS.")
    for picture in (
        helpers.draw_tile_writers(run),
        helpers.draw_thread_writers(run, tile=(2, 1)),
        helpers.draw_write_counts(run),
        helpers.draw_before_after(run, tile=(2, 1)),
        helpers.draw_right_tiles(run, "All right."),
    ):
        assert isinstance(picture, Picture)


def test_writers_of_a_run_that_did_not_record_them_are_refused(on_emulator):
    run = helpers.run_tile_kernel()
    with pytest.raises(LessonError, match=r"must have recorded its writers.*run_recorded"):
        helpers.draw_tile_writers(run)


def test_what_happens_is_emulated_on_a_gpu_too_and_says_the_same(on_gpu, capsys, monkeypatch):
    monkeypatch.setattr(gpu, "launch", None)
    monkeypatch.setattr(gpu, "run_isolated", None)
    helpers.what_happens(helpers.edit("issue-tma", "{tileX, tileY}", "{tileY, tileX}"))
    assert capsys.readouterr().out == (
        "If copies land at once:\n    49152 of 65536 elements are wrong.\n"
    )


def test_edges_print_what_came_of_them_and_return_what_memory_holds(on_emulator, capsys):
    assert helpers.edge_load(0, -1).shape == (8, 8)
    after = helpers.edge_store(8, 0)
    assert after.shape == (8, 16)
    assert capsys.readouterr().out == (
        "load at x 0, y -1, waiting for 256 bytes:\n    done\nstore at x 8, y 0:\n    done\n"
    )
    assert isinstance(helpers.draw_edge_store(after), Picture)


def test_every_helper_has_a_docstring_and_type_hints():
    for name in helpers.__all__:
        helper = getattr(helpers, name)
        assert helper.__doc__, name
        assert "return" in helper.__annotations__, name


@pytest.mark.parametrize("name", helpers.__all__)
def test_shift_tab_on_a_helper_explains_each_of_its_parameters(name):
    helper = getattr(helpers, name)
    first, _, _ = inspect.getdoc(helper).partition("\n")
    assert first.endswith(".")
    parameters = inspect.signature(helper).parameters
    assert set(parameters) <= set(helper.__annotations__)
    explained = set(re.findall(r"`(\w+)`", helper.__doc__))
    # A parameter that says all by itself: a block, a run, a column.
    assert set(parameters) - explained <= {"block", "column", "run", "tile", "kernel"}


def test_every_public_function_is_offered():
    mine = {
        name
        for room in (helpers, helpers_pictures)
        for name, thing in vars(room).items()
        if inspect.isfunction(thing) and thing.__module__ == room.__name__
    }
    assert {name for name in mine if not name.startswith("_")} == set(helpers.__all__)
