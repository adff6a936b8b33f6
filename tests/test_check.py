"""The door of the check: any kernel, as text, path or PTX, with arguments or head comments."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lesson import check_command, diagnosis
from lesson.check import SCHEDULES, check, choose
from lesson.check_case import from_head, read_head
from lesson.errors import LaunchError
from lesson.finding_kinds import KINDS, OUTPUT
from lesson.findings import Finding, Report
from tests import mistake_cases as cases

DOUBLE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd3], %f2;
    ret;
}
"""


def ptx_run(n: int, **more: object) -> object:
    """A check of `twice` over 32 floats with n threads."""
    return check(DOUBLE, grid=1, block=n, args=[np.arange(32, dtype=np.float32)], **more)


def test_ptx_text_with_arrays_as_arguments_is_checked() -> None:
    report = ptx_run(32, expect=2 * np.arange(32, dtype=np.float32))
    assert report.ok
    assert [each.where for each in report.outcomes] == list(SCHEDULES)


def test_an_index_past_the_array_is_found_in_ptx_too() -> None:
    (found,) = ptx_run(33).findings
    assert found.kind == "out-of-bounds"
    assert found.thread == (32, 0, 0)


def test_elements_that_nobody_writes_are_found_if_the_answer_is_known() -> None:
    (found,) = ptx_run(16, expect=2 * np.arange(32, dtype=np.float32)).findings
    assert found.kind == "never-written"


def test_the_arrays_of_the_caller_stay_as_they_are() -> None:
    data = np.ones(32, np.float32)
    check(DOUBLE, grid=1, block=32, args=[data])
    assert (data == 1).all()


def test_a_file_is_found_by_its_path_and_by_a_path_object() -> None:
    path = cases.path_of("base-off-by-4")
    assert check(path).findings == check(str(path)).findings != ()


def test_a_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LaunchError, match="must be one that can be read"):
        check("nowhere.cu")


def test_an_unknown_key_of_the_head_is_named_with_its_line() -> None:
    with pytest.raises(LaunchError, match=r"'grids'.*line 2"):
        read_head("// map: {}\n// grids: 4\n")


def test_comments_that_are_no_head_are_no_head() -> None:
    assert read_head("// note: this kernel has no head\nint x;").values == {}


def test_an_unknown_key_inside_a_map_is_named() -> None:
    with pytest.raises(LaunchError, match="'boxes'"):
        from_head('// map: {"boxes": [64, 64]}\n', "a.cu", "")


def test_a_map_that_is_no_json_is_an_error() -> None:
    with pytest.raises(LaunchError, match="must be JSON"):
        from_head("// map: {box: 3}\n", "a.cu", "")


def test_every_kind_of_the_catalogue_has_one_name_and_a_meaning() -> None:
    assert all(name == kind.name and kind.says for name, kind in KINDS.items())


def test_a_cause_outdoes_its_consequence() -> None:
    effect = Finding("output-wrong", "Wrong.", "Mend it.", 9, schedules=("late",))
    cause = Finding("read-before-wait", "Early.", "Wait.", 5, schedules=("late",))
    findings, also = choose([effect, cause])
    assert KINDS["output-wrong"].rank == OUTPUT
    assert findings == (cause,)
    assert also == (effect,)


def test_what_is_proved_outdoes_what_was_seen_first() -> None:
    seen = Finding("read-before-wait", "Early.", "Wait.", 5, schedules=("late",))
    sums = Finding("init-count-too-small", "Few.", "More.", 3, schedules=("late",), is_proved=True)
    assert choose([seen, sums])[0] == (sums,)


def test_one_mistake_under_three_schedules_is_one_finding() -> None:
    found = [Finding("hang", "Hangs.", "Mend.", 3, schedules=(name,)) for name in SCHEDULES]
    (one,), _ = choose(found)
    assert one.schedules == SCHEDULES


def test_the_card_escapes_what_it_shows() -> None:
    found = Finding("hang", "<script>", "Mend.", 3, source="if (a < b && c)")
    card = diagnosis.as_html(Report("k.cu", (found,)))
    assert "<script" not in card
    assert "a &lt; b &amp;&amp; c" in card


def test_the_text_has_line_source_and_cure() -> None:
    text = str(cases.report_on("base-off-by-4"))
    assert "line 6: map-refused" in text
    assert "Cure:" in text


def run_command(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    from lesson.__main__ import main

    status = main(["check", "--no-gpu", *options])
    return status, capsys.readouterr().out


def test_the_command_prints_json_and_says_1_on_a_finding(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out = run_command(capsys, str(cases.path_of("stride-not-16")), "--json")
    (found,) = json.loads(out)["findings"]
    assert status == 1
    assert {"kind", "line", "says", "cure"} <= set(found)
    assert (found["kind"], found["line"]) == ("map-refused", 5)


def test_the_command_says_0_when_nothing_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nothing.ptx"
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry none()\n{ ret; }\n"
    file.write_text("// args: []\n" + text)
    status, _ = run_command(capsys, str(file), "--grid", "2,2", "--block", "64")
    assert status == 0


def test_the_command_says_2_when_it_cannot_run(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run_command(capsys, "nowhere.cu", "--json")
    assert status == 2
    assert "must be one that can be read" in json.loads(out)["error"]


def test_a_map_on_the_command_line_changes_the_map(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(cases.path_of("stride-not-16"))
    status, out = run_command(capsys, path, "--json", "--map", '{"box": [512, 8]}')
    assert status == 1
    assert json.loads(out)["findings"][0]["kind"] == "map-refused"


def test_sizes_that_are_none_are_refused() -> None:
    with pytest.raises(Exception, match="1 to 3 whole numbers"):
        check_command.sizes("4,x")
