"""The checks cost at most three times the run without them, under every schedule."""

from __future__ import annotations

import pytest

from benchmarks import checks
from lesson import compile as compiler
from lesson.check import SCHEDULES
from lesson.kernel_source import TileKernel

ROUNDS = 12


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_checks_of_the_lessons_kernel_stay_within_the_bar(schedule: str) -> None:
    source = TileKernel().source()
    ptx = compiler.to_ptx(source.text, name=source.name).text
    checks.seconds(ptx, source.kernel, schedule, True)
    plain, checked = (
        min(checks.seconds(ptx, source.kernel, schedule, is_checked) for _ in range(ROUNDS))
        for is_checked in (False, True)
    )
    assert checked <= checks.BAR * plain
