"""Every handed mistake is named by its kind at its line, and no correct kernel is accused."""

from __future__ import annotations

import pytest

from lesson.finding_kinds import KINDS
from tests import mistake_cases as cases

# name: kind, line. The line is that of the mistake, or the one that the cure belongs beside; for a
# map or a launch, the line of the head that describes it, or of the copy that uses it.
HANDED = {
    "arrive-before-init": ("barrier-not-initialised", 43),
    "bar-sync-divergent": ("different-barriers", 47),
    "barrier-memory-reused": ("barrier-overwritten", 61),
    "base-off-by-4": ("map-refused", 6),
    "box-dim-over-256": ("map-refused", 6),
    "box-overruns-barrier": ("copy-overruns-barrier", 57),
    "box-overruns-smem": ("copy-overruns-array", 55),
    "box-swapped": ("row-length-wrong", 6),
    "coords-in-tiles": ("misaligned-coordinate", 45),
    "coords-swapped": ("x-y-swapped", 45),
    "dtype-float16": ("too-many-bytes-expected", 47),
    "dynamic-smem-no-opt-in": ("shared-memory-opt-in", 7),
    "edge-store-unguarded": ("out-of-bounds", 58),
    "edge-tx-clipped": ("too-few-bytes-expected", 51),
    "empty-not-waited": ("buffer-reused-early", 75),
    "every-thread-issues": ("every-thread-issues", 45),
    "expect-tx-none": ("bytes-not-expected", 47),
    "expect-tx-too-large": ("too-many-bytes-expected", 47),
    "expect-tx-too-small": ("too-few-bytes-expected", 48),
    "grid-too-small": ("never-written", 7),
    "init-count-one-short": ("init-count-too-small", 38),
    "init-count-too-high": ("init-count-too-large", 37),
    "map-not-grid-constant": ("map-not-grid-constant", 26),
    "map-pointer-no-fence": ("map-pointer-unfenced", 54),
    "mbarrier-misaligned": ("misaligned-barrier", 37),
    "negative-coords": ("misaligned-coordinate", 45),
    "no-init": ("barrier-not-initialised", 46),
    "no-proxy-fence": ("barrier-not-published", 37),
    "no-sync-after-init": ("barrier-init-unsynced", 38),
    "no-wait": ("read-before-wait", 56),
    "parity-not-flipped": ("wait-wrong-parity", 54),
    "smem-align-16": ("misaligned-shared", 36),
    "smem-reuse-no-sync": ("buffer-reused-early", 56),
    "store-no-proxy-fence": ("store-unfenced", 36),
    "store-no-sync": ("store-unsynced", 36),
    "store-no-wait": ("store-not-committed", 44),
    "store-off-by-one": ("shared-out-of-bounds", 54),
    "store-wrong-row-stride": ("written-by-several-blocks", 54),
    "stride-not-16": ("map-refused", 5),
    "swizzle-read-linear": ("swizzle-not-undone", 57),
    "swizzle-row-too-wide": ("map-refused", 6),
    "uninit-tail": ("read-uninitialised", 54),
    "wait-wrong-parity": ("wait-wrong-parity", 53),
}
NEAR_LINES = 4


@pytest.mark.parametrize("name", cases.handed(broken=True))
def test_a_handed_mistake_is_named_once_by_its_kind_at_its_line(name: str) -> None:
    report = cases.report_on(name)
    assert [(found.kind, found.line) for found in report.findings] == [HANDED[name]]


@pytest.mark.parametrize("name", cases.handed(broken=True))
def test_the_line_is_near_the_mark_where_there_is_one(name: str) -> None:
    lines = cases.path_of(name).read_text().splitlines()
    marks = [n for n, line in enumerate(lines, 1) if "// MISTAKE" in line]
    (found,) = cases.report_on(name).findings
    places = [found.line, *(place.line for place in found.places)]
    assert not marks or min(abs(line - marks[0]) for line in places) <= NEAR_LINES


@pytest.mark.parametrize("name", cases.handed(broken=True))
def test_a_finding_says_what_proves_it_and_what_to_do(name: str) -> None:
    (found,) = cases.report_on(name).findings
    assert found.kind in KINDS
    assert found.says.endswith((".", "?"))
    assert found.cure
    assert found.source == cases.path_of(name).read_text().splitlines()[found.line - 1].strip()


@pytest.mark.parametrize("name", cases.handed(broken=False))
def test_a_correct_handed_kernel_has_no_finding_under_any_schedule(name: str) -> None:
    report = cases.report_on(name)
    assert report.findings == ()
    assert [each.outcome for each in report.outcomes] == ["ok"] * 3


@pytest.mark.parametrize("name", cases.own(broken=True))
def test_a_mistake_of_our_own_is_named_by_the_kind_in_its_head(name: str) -> None:
    text = cases.path_of(name).read_text()
    wanted = next(line[10:].strip() for line in text.splitlines() if line.startswith("// class:"))
    assert [found.kind for found in cases.report_on(name).findings] == [wanted]


@pytest.mark.parametrize("name", cases.own(broken=True))
def test_a_mistake_of_our_own_is_found_near_its_mark(name: str) -> None:
    lines = cases.path_of(name).read_text().splitlines()
    marks = [n for n, line in enumerate(lines, 1) if "// MISTAKE" in line]
    (found,) = cases.report_on(name).findings
    places = [found.line, *(place.line for place in found.places)]
    assert not marks or min(abs(line - marks[0]) for line in places) <= NEAR_LINES


@pytest.mark.parametrize("name", cases.own(broken=False))
def test_a_correct_twin_has_no_finding_under_any_schedule(name: str) -> None:
    report = cases.report_on(name)
    assert report.findings == ()
    assert [each.outcome for each in report.outcomes] == ["ok"] * 3
