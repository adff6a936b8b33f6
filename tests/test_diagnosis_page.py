"""docs/diagnosis.md says what the recordings and the check say."""

from __future__ import annotations

from tests import diagnosis_page
from tests import mistake_cases as cases


def test_the_page_is_made_of_the_recordings_and_of_what_the_check_says() -> None:
    assert diagnosis_page.PAGE.read_text(encoding="utf-8") == diagnosis_page.page()


def test_every_handed_kernel_has_a_recording() -> None:
    recorded = {row["case"] for row in diagnosis_page.results()["results"]}
    assert recorded == {*cases.handed(broken=True), *cases.handed(broken=False)}
