"""Malformed input in a small dose: a result or a LessonError, and nothing else.

The large dose is `python -m tests.fuzz --count 100000`; docs/emulator.md records it.
"""

from __future__ import annotations

import warnings
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lesson.emulator import launch
from tests.fuzz.cases import judged, run_case, run_module
from tests.fuzz.modules import STARTS, Start
from tests.fuzz.mutate import tokens_of

CASES = settings(deadline=None, max_examples=120, derandomize=True)
SEED = 20261129


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.name)
def test_what_the_fuzzer_starts_from_runs(start: Start) -> None:
    run_module(Random(0), start, start.ptx)
    assert "".join(tokens_of(start.ptx)) == start.ptx


@pytest.mark.parametrize("hundred", range(12))
def test_malformed_input_gives_a_result_or_a_lesson_error(hundred: int) -> None:
    for number in range(100 * hundred, 100 * hundred + 100):
        outcome = run_case(SEED, number)
        assert not outcome.failure, f"case {number} of seed {SEED}: {outcome.failure}"


@CASES
@given(st.text(max_size=200))
def test_any_text_at_all_is_a_module_or_a_lesson_error(text: str) -> None:
    outcome = judged("text", lambda: launch(text, None, 1, 32, []))
    assert not outcome.failure, outcome.failure


@CASES
@given(st.sampled_from(STARTS), st.integers(0), st.integers(0, 40), st.text(max_size=12))
def test_a_hole_in_a_module_filled_with_any_text_is_a_result_or_a_lesson_error(
    start: Start, at: int, length: int, text: str
) -> None:
    at %= len(start.ptx)
    ptx = start.ptx[:at] + text + start.ptx[at + length :]
    outcome = judged("hole", lambda: run_module(Random(0), start, ptx))
    assert not outcome.failure, outcome.failure


def test_another_exception_and_a_warning_are_failures() -> None:
    def warn() -> None:
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)

    assert "RuntimeWarning" in judged("warning", warn).failure
    assert "ZeroDivisionError" in judged("error", lambda: print(1 // 0)).failure
    assert judged("nothing", lambda: None).result == "result"
