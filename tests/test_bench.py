"""The benchmark around the kernels: its record, its arithmetic, its words, its pictures."""

from __future__ import annotations

import json
import types
from pathlib import Path

import pytest

from lesson import __main__ as command_line
from lesson import figures_bench, gpu_status, measured
from lesson.bench import (
    contenders,
    evidence,
    measure,
    quick,
    report,
    summary,
    tools,
    tune,
    variants,
)
from lesson.bench.variants import variant
from lesson.errors import LessonError
from tests import bench_stand_in, benchmark_page

GIB = 1 << 30


@pytest.fixture(scope="module")
def record() -> dict:
    """What a whole run over the stand-in leaves."""
    with pytest.MonkeyPatch.context() as patch:
        return bench_stand_in.measured(patch)


def test_a_run_measures_every_section(record: dict):
    for section in (*measure.SECTIONS, "counters", "sanitizers"):
        assert report.has(record, section), record[section]
    assert record["sources"] == variants.source_hashes()
    assert record["gpu"]["name"] == "a stand-in"
    assert record["missing_peers"] == {"nothing": "a reason"}


def test_a_record_survives_its_file(record: dict, tmp_path: Path):
    path = tmp_path / "bench.json"
    evidence.save(record, path)
    assert evidence.load(path) == json.loads(json.dumps(record))
    assert evidence.stale(record) == []
    assert path.stat().st_size < 400_000


def test_a_source_that_changed_since_is_named(record: dict):
    old = record | {"sources": record["sources"] | {"tma_ring.cu": "0", "gone.cu": "1"}}
    assert evidence.stale(old) == ["gone.cu", "tma_ring.cu"]
    assert "are of older text: gone.cu, tma_ring.cu" in report.heading(old, live=False)


@pytest.mark.parametrize(
    "text, says",
    [("{", "must be JSON"), ("[1]", "of format 1, got 'list'"), ('{"format": 9}', "got 9")],
)
def test_a_file_that_is_no_evidence_is_refused(tmp_path: Path, text: str, says: str):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(LessonError, match=says):
        evidence.load(path)


def test_a_missing_file_is_refused_with_the_cure(tmp_path: Path):
    with pytest.raises(LessonError, match="python -m lesson bench"):
        evidence.load(tmp_path / "none.json")


def test_every_variant_survives_the_record():
    every = contenders.COPIES | contenders.TRANSPOSES
    for v in every.values():
        assert variants.from_json(json.loads(json.dumps(v.as_json()))) == v


def test_bandwidth_counts_every_byte_twice():
    s = summary.spread(1000, [10, 10, 10, 20])
    assert (s.median, s.high, s.samples) == (200, 200, 4)
    assert s.low < 200


def test_ratios_are_to_the_runtimes_copy():
    section = {"nbytes": 8, "samples_ns": {"cudaMemcpy": [10, 10], "a": [5, 5], "b": [20, 20]}}
    ranked = [(name, s.median) for name, s in summary.ranking(section)]
    assert ranked == [("a", 2), ("cudaMemcpy", 1), ("b", 0.5)]


def test_goals_tell_met_from_missed(record: dict):
    before = {g.says: g for g in summary.goals(record)}
    assert len(before) == 7
    slow = json.loads(json.dumps(record))
    for name, ns in slow["copies"]["samples_ns"].items():
        if summary.is_tma(name):
            slow["copies"]["samples_ns"][name] = [round(1.1 * each) for each in ns]
    after = {g.says: g for g in summary.goals(slow)}
    text = "the best TMA kernel is at least 0.995 of cudaMemcpy"
    assert before[text].met
    assert not after[text].met
    assert f"MISSED  {text}" in report.text(slow, live=True)


def test_a_kernel_that_is_wrong_is_told_and_not_timed(monkeypatch: pytest.MonkeyPatch):
    class Wrong(bench_stand_in.StandInBench):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            self.wrong_families = {"tma_ring"}

    wrong = bench_stand_in.measured(monkeypatch, bench=Wrong)
    assert wrong["copies"]["wrong"]["TMA ring"] == 7
    assert "TMA ring" not in wrong["copies"]["samples_ns"]
    assert wrong["sweep"]["families"]["TMA ring"]["points"] == []
    assert "WRONG: TMA ring: 7 elements" in report.text(wrong, live=True)


def test_a_section_that_fails_leaves_its_reason_and_the_others(monkeypatch: pytest.MonkeyPatch):
    def fails(session: object) -> dict:
        raise RuntimeError("no luck")

    monkeypatch.setitem(measure.SECTIONS, "sweep", fails)
    failed = bench_stand_in.measured(monkeypatch)
    assert failed["sweep"] == {"failed": "RuntimeError: no luck"}
    assert report.has(failed, "edges")
    assert "Not measured: sweep: RuntimeError: no luck" in report.text(failed, live=True)


def test_the_search_chooses_among_what_it_tried(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tune, "_SHAPES", ((256, 4), (64, 16)))
    found = bench_stand_in.measured(monkeypatch, tune_seconds=4)
    chosen = variants.from_json(found["contenders"]["TMA one tile"])
    assert chosen.file == "tma_one_tile.cu"
    assert {"FLAT", "TEAM", "LOAD_HINT"} <= dict(chosen.macros).keys()


def test_sweeps_cover_every_number_of_threads_and_fit_the_multiprocessor():
    for name in contenders.SWEEPS:
        every = contenders.sweep(name)
        assert {v.threads for v in every} == set(contenders.THREADS), name
        for v in every:
            assert v.threads * v.blocks_per_sm <= 2048
            room = (v.shared_bytes + 1024) * v.blocks_per_sm
            assert room <= contenders.SHARED_BYTES_PER_SM + 1024


@pytest.mark.parametrize("name", figures_bench.PICTURES)
def test_every_picture_says_where_its_numbers_come_from(record: dict, name: str):
    picture = figures_bench.PICTURES[name](record)
    assert "a stand-in" in picture.figure.get_supxlabel()
    assert len(picture.alt) > 40
    assert picture.png().startswith(b"\x89PNG")


def test_the_picture_of_threads_shows_the_sweep_itself(record: dict):
    left, right = figures_bench.threads(record).figure.axes
    for name, line in zip(record["sweep"]["families"], left.lines, strict=False):
        found = summary.points(record, name)
        assert line.get_label() == name
        assert list(line.get_ydata()) == [100 * found[int(t), 1].median for t in line.get_xdata()]
    assert right.get_xlabel() == "blocks of 32 threads on a multiprocessor"


def test_elsewhere_the_recorded_evidence_is_drawn_and_said_to_be_recorded(
    record: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    path = tmp_path / "evidence.json"
    evidence.save(record, path)
    monkeypatch.setattr(evidence, "RECORDED", path)
    none = gpu_status.judge(gpu_status.Facts(cupy_version="14", driver_cuda=0))
    monkeypatch.setattr(gpu_status, "status", lambda: none)
    assert command_line.main(["bench", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("RECORDED on a stand-in")
    assert "Nothing is measured here: an NVIDIA driver must be installed" in said.err
    assert sorted(p.name for p in tmp_path.glob("*.png")) == sorted(
        f"bench_recorded_{name}.png" for name in figures_bench.PICTURES
    )
    assert command_line.main(["bench", "--json", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(record))


def test_ncus_table_becomes_numbers_and_unknown_columns_are_left_out():
    text = (
        "==PROF== Connected\n0 wrong: x\n"
        '"ID","Kernel Name","smsp__inst_executed.sum","dram__bytes_read.sum"\n'
        '"","","inst","byte"\n'
        '"0","k","1,234.000000","5e+06"\n"1","k","n/a","7"\n'
    )
    assert tools.counter_rows(text) == [
        {"smsp__inst_executed.sum": 1234.0, "dram__bytes_read.sum": 5e6},
        {"dram__bytes_read.sum": 7.0},
    ]


def test_a_tool_that_is_not_installed_is_its_own_record(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    v = {"x": variant("plain_vector.cu", THREADS=128)}
    assert tools.counters(v) == {"failed": "ncu is not installed here"}
    assert tools.sanitizers(v) == {"failed": "compute-sanitizer is not installed here"}


def test_sizes_become_matrices_of_exactly_so_many_bytes():
    for nbytes in measure.SIZES:
        width, height = measure.side_of(nbytes)
        assert width * height * 4 == nbytes
        assert width in (height, 2 * height)


def test_the_page_tells_every_section_of_a_record(record: dict):
    page = benchmark_page.page(record)
    for name in (*record["contenders"], *record["transposers"], *bench_stand_in.PEERS):
        assert f"| {name} |" in page
    assert page.count("\n## ") == 9
    assert "a stand-in" in page


def test_the_committed_choice_is_what_was_measured():
    found = evidence.load()
    for kind, choice in (("contenders", contenders.COPIES), ("transposers", contenders.TRANSPOSES)):
        assert found[kind] == {name: v.as_json() for name, v in choice.items()}
    assert evidence.stale(found) == []
    assert not any(found["copies"]["wrong"].values())


def test_every_goal_was_met_on_the_h200():
    found = evidence.load()
    assert found["gpu"]["name"] == "NVIDIA H200"
    assert {g.says: g.met for g in summary.goals(found)} == {
        g.says: True for g in summary.goals(found)
    }
    assert len(summary.goals(found)) == 7


def test_the_page_is_what_the_evidence_says():
    assert benchmark_page.PAGE.read_text(encoding="utf-8") == benchmark_page.page(evidence.load())


def test_conflicts_are_multiples_of_the_fewest_passes():
    waves = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"
    extra = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"
    counted = {
        f"{waves}_ld.sum": 6,
        f"{waves}_st.sum": 6,
        f"{extra}_ld.sum": 0,
        f"{extra}_st.sum": 8,
    }
    assert summary.conflicts(counted) == 3
    assert summary.conflicts(None) == 0


def test_the_notebook_names_the_recorded_gpu_and_measures_nothing_without_one(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("LESSON_TARGET", "emulator")
    assert measured.copies().startswith("RECORDED on an NVIDIA H200, 2026-11-29, 4 GiB")
    assert measured.here() == (
        "Measured here: nothing, for that takes a Hopper GPU or a later one.",
        {},
    )
    with pytest.raises(LessonError, match=r"must be one of threads, sizes, .*, got 'thread'"):
        measured.draw("thread")


def test_points_measured_here_are_stars_over_the_recorded_lines(record: dict):
    points = {("TMA ring", 32): 0.9, ("plain 16-byte", 32): 0.3}
    picture = figures_bench.threads(record, points)
    stars = [line for line in picture.figure.axes[0].lines if line.get_marker() == "*"]
    assert [list(line.get_ydata()) for line in stars] == [[90, 30]]
    assert picture.alt == figures_bench.threads(record).alt == figures_bench.threads(record, {}).alt
    says = [text.get_text() for text in picture.figure.axes[0].texts]
    assert any("MEASURED HERE" in text for text in says)
    says = [text.get_text() for text in figures_bench.threads(record, {}).figure.axes[0].texts]
    assert any("nothing is measured here" in text for text in says)


def test_a_few_points_are_measured_in_the_settings_of_the_record(monkeypatch: pytest.MonkeyPatch):
    assert set(quick.settings()) == {(k, n) for k in quick.KERNELS for n in quick.THREADS}
    monkeypatch.setattr(quick, "Bench", bench_stand_in.StandInBench)
    monkeypatch.setattr(
        quick, "Builder", lambda arch, processes: bench_stand_in.StandInBuilder(arch)
    )
    monkeypatch.setattr(quick.gpu, "require", lambda _: types.SimpleNamespace(capability=(9, 0)))
    monkeypatch.setattr(quick.peers, "memcpy", lambda x, y: bench_stand_in.Call(x.nbytes))
    monkeypatch.setattr(quick.timing, "alone", lambda _, call, n: [call.nanoseconds()] * n)
    found = quick.shares()
    assert set(found) == set(quick.settings())
    assert found["TMA ring", 32] > 0.85 > found["plain 16-byte", 32]
