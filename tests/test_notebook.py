"""The notebook as committed: complete, readable, with its outputs. nbval runs it (make test)."""

import ast
import configparser
import json
import os
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "notebooks" / "day76_tma_tile.ipynb"
SANITIZE = ROOT / "tests" / "nbval_sanitize.cfg"
TERMS = (
    "tensor map", "box", "tile", "issue", "arrive", "transaction count", "phase", "parity",
    "async proxy", "generic proxy", "swizzle span",
)  # fmt: skip
SECTIONS = [str(n) for n in range(13)]
MISCONCEPTIONS = (
    "the barrier counts threads", "Coordinates count tiles", "Strides are in elements",
    "The issuing thread copies", "After `__syncthreads()` the data is there",
    "The fence is decoration", "It passed, so it is right", "needs fewer bytes",
    "float tiles are rounded to TF32", "Any box can be swizzled",
)  # fmt: skip


@cache
def cells() -> list[dict]:
    return json.loads(PATH.read_text(encoding="utf-8"))["cells"]


def code_cells() -> list[dict]:
    return [cell for cell in cells() if cell["cell_type"] == "code"]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def text_of(cell: dict) -> str:
    """All text that a cell put out."""
    parts = []
    for output in cell["outputs"]:
        parts.append("".join(output.get("text", "")))
        parts.append("".join(output.get("data", {}).get("text/plain", "")))
    return "\n".join(parts)


def prose() -> str:
    return "\n".join(source(cell) for cell in cells() if cell["cell_type"] == "markdown")


def is_stripped(cell: dict) -> bool:
    """Whether a cell that should put something out was never run, or was cleared."""
    shows = re.search(r"print\(|^helpers\.\w+\(", source(cell), re.MULTILINE)
    return cell["execution_count"] is None or bool(shows and not cell["outputs"])


def test_the_committed_notebook_holds_the_outputs_of_one_run_from_start_to_end():
    assert [source(cell) for cell in code_cells() if is_stripped(cell)] == []
    counts = [cell["execution_count"] for cell in code_cells()]
    assert counts == list(range(1, len(counts) + 1))


def test_a_stripped_cell_is_noticed():
    cell = {"source": ["helpers.where_am_i()"], "execution_count": 3, "outputs": []}
    assert is_stripped(cell)
    assert is_stripped({**cell, "execution_count": None, "outputs": [{}]})
    assert not is_stripped({**cell, "source": ["x = 1"]})


def test_no_output_is_an_error_or_a_warning():
    kinds = [(o["output_type"], o.get("name")) for cell in code_cells() for o in cell["outputs"]]
    assert {kind for kind, _ in kinds} <= {"stream", "execute_result", "display_data"}
    assert {name for kind, name in kinds if kind == "stream"} == {"stdout"}


def test_the_first_output_is_one_line_on_where_the_lesson_runs_and_why():
    first = next(cell for cell in code_cells() if cell["outputs"])
    assert first is code_cells()[0]
    assert re.fullmatch(r"Runs on: .+\n\n?", text_of(first))


def test_the_round_trip_line_is_that_of_the_standalone_program():
    wanted = (
        "round trip: PASS. 65536 elements, 16 tiles of 64 x 64 floats,"
        " one cp.async.bulk.tensor per tile."
    )
    assert any(wanted in text_of(cell) for cell in code_cells())


def test_helpers_is_the_only_import_besides_numpy_and_matplotlib():
    imported = set()
    for cell in code_cells():
        for node in ast.walk(ast.parse(source(cell))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    assert imported <= {"numpy", "matplotlib", "lesson.helpers"}
    assert "lesson.helpers" in imported


def test_code_cells_are_tiny():
    long = [source(cell) for cell in code_cells() if len(source(cell).split("\n")) > 12]
    wide = [line for cell in code_cells() for line in source(cell).split("\n") if len(line) > 96]
    assert (long, wide) == ([], [])


def test_headings_come_in_order_and_the_contents_link_to_each_of_them():
    headings = re.findall(r"^(#+) (.+)$", prose(), re.MULTILINE)
    levels = [len(marks) for marks, _ in headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    numbered = [text for _, text in headings if text[0].isdigit()]
    assert [text.split(".")[0] for text in numbered] == SECTIONS
    links = re.findall(r"\[([^\]]+)\]\(#([^)]+)\)", prose())
    assert [text for text, _ in links] == numbered
    assert [link for _, link in links] == [text.replace(" ", "-") for text in numbered]


def test_the_reading_time_is_the_sum_of_the_sections():
    minutes = [int(m) for m in re.findall(r"\| (\d+) \|", prose())]
    assert sum(minutes) == int(re.search(r"about (\d+) minutes", prose())[1])


def test_the_minutes_of_a_section_leave_time_to_read_it_and_to_run_its_cells():
    """200 words a minute, and a quarter of a minute for each code cell."""
    minutes = dict(re.findall(r"\[(\d+)\. [^\]]+\]\([^)]+\) \| (\d+)", prose()))
    needed = dict.fromkeys(minutes, 0.0)
    section = ""
    for cell in cells():
        if heading := re.match(r"## (\d+)\. ", source(cell)):
            section = heading[1]
        if section and cell["cell_type"] == "code":
            needed[section] += 0.25
        elif section and cell["metadata"]["slideshow"]["slide_type"] != "notes":
            needed[section] += len(source(cell).split()) / 200
    assert {name: n for name, n in needed.items() if n > int(minutes[name])} == {}


@pytest.mark.parametrize("term", TERMS)
def test_each_term_is_explained_once_in_bold(term):
    bold = [b for b in re.findall(r"\*\*([^*]+)\*\*", prose()) if b.rstrip("s").lower() == term]
    assert len(bold) == 1


@pytest.mark.parametrize("belief", MISCONCEPTIONS)
def test_each_misconception_is_named(belief):
    assert belief.lower() in prose().lower()


def test_every_prediction_is_followed_by_a_folded_cell_that_answers_it():
    following = zip(cells(), [*cells()[1:], {"cell_type": "end"}], strict=True)
    predictions = 0
    for cell, after in following:
        if cell["cell_type"] == "markdown" and "redict" in source(cell).split("\n\n")[-1][:60]:
            predictions += 1
            nearby = cells()[cells().index(cell) + 1 :][:2]
            answers = [c for c in nearby if "answer" in c["metadata"].get("tags", [])]
            assert answers, source(cell)
            assert answers[0]["metadata"]["jupyter"] == {"outputs_hidden": True}
            assert after["cell_type"] == "code"
    assert predictions >= 12


def test_what_a_folded_output_shows_gives_no_answer_away():
    """JupyterLab shows the first line of an output that is folded."""
    for cell in code_cells():
        if "answer" in cell["metadata"].get("tags", []) and cell["outputs"]:
            data = cell["outputs"][0].get("data", {})
            shown = "".join(data.get("text/html", cell["outputs"][0].get("text", "")))
            first = shown.split("\n")[0]
            assert first == "<figure>" or first.endswith(":"), first


def test_every_picture_has_alt_text_and_the_same_words_for_a_terminal():
    pictures = 0
    for cell in code_cells():
        for output in cell["outputs"]:
            page = "".join(output.get("data", {}).get("text/html", ""))
            if "<img" in page:
                pictures += 1
                alt = re.search(r'alt="([^"]{40,})"', page)[1]
                assert alt == "".join(output["data"]["text/plain"])
    assert pictures >= 10


def test_every_cell_says_what_it_is_on_a_slide():
    kinds = {"slide", "subslide", "fragment", "skip", "notes", "-"}
    assert {cell["metadata"]["slideshow"]["slide_type"] for cell in cells()} <= kinds


def test_the_file_is_small_enough_to_open_quickly_on_github():
    assert PATH.stat().st_size < 2_500_000


def test_sanitised_are_only_the_machine_its_speed_the_pixels_and_the_register_numbers():
    rules = configparser.ConfigParser(interpolation=None)
    rules.read(SANITIZE)
    assert set(rules) == {"DEFAULT", "where-it-runs", "measured-here", "pixels", "registers"}
    for name in rules.sections():
        assert set(rules[name]) == {"regex", "replace"}
        re.compile(rules[name]["regex"])


# Stands in for a Hopper GPU: the notebook takes the GPU's way through `targets`, `edges` and
# `helpers`, and the kernels behind it run in the emulator.
PRETENDED_GPU = """
from lesson import emulator, gpu, tensor_map
from lesson.bench import quick
from lesson.gpu_status import Device, Facts, GpuStatus

DEVICE = Device(0, "NVIDIA H200", (9, 0))


def launch(ptx, kernel, grid, block, args):
    print_to_log(kernel)
    return gpu.GpuRun(emulator.launch(ptx.text, kernel, grid, block, args).seconds, DEVICE.name)


def print_to_log(kernel):
    with open("launched.txt", "a") as log:
        log.write(kernel + "\\n")


gpu.status = lambda: GpuStatus(True, "ok", "", Facts(), DEVICE)
gpu.launch = gpu.run_isolated = launch
gpu.driver_accepts = lambda tmap: not tensor_map.check(tmap)
quick.shares = lambda: {("TMA ring", 32): 0.9}
"""


def sanitised(cell: dict) -> str:
    rules = configparser.ConfigParser(interpolation=None)
    rules.read(SANITIZE)
    text = text_of(cell)
    for name in rules.sections():
        text = re.sub(rules[name]["regex"], rules[name]["replace"], text)
    return text


@pytest.mark.slow
def test_alone_in_an_empty_folder_and_on_a_gpu_the_notebook_prints_the_same_text(tmp_path):
    """As after `pip install`: no clone beside it, another working directory."""
    (tmp_path / PATH.name).write_bytes(PATH.read_bytes())
    (tmp_path / "sitecustomize.py").write_text(PRETENDED_GPU, encoding="utf-8")
    command = ["nbconvert", "--to", "notebook", "--execute", "--output", "ran.ipynb", PATH.name]
    # The root on the path is what an editable install amounts to.
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    subprocess.run(
        [sys.executable, "-m", "jupyter", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "LESSON_TARGET": "gpu"},
        check=True,
        capture_output=True,
        timeout=110,
    )
    ran = json.loads((tmp_path / "ran.ipynb").read_text(encoding="utf-8"))["cells"]
    fresh = [cell for cell in ran if cell["cell_type"] == "code"]
    assert text_of(fresh[0]).startswith("Runs on: NVIDIA H200 (compute capability 9.0), live")
    assert [sanitised(cell) for cell in fresh] == [sanitised(cell) for cell in code_cells()]
    launched = (tmp_path / "launched.txt").read_text(encoding="utf-8").split()
    assert set(launched) == {"loadTileTma", "recordTileWrites", "loadBox", "storeBox"}
