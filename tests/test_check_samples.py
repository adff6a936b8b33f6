"""The check accuses no sample kernel: correct code of many authors and compilers, under every
schedule."""

from __future__ import annotations

import pytest

from lesson.check import SCHEDULES, is_mistake
from lesson.check_case import Case
from lesson.check_scene import Scene
from lesson.emulator.ordering import Ordering
from lesson.errors import UnsupportedPtx
from tests.kernels import pack, replay, samples

SAMPLES = {s.name: s for s in samples.all_samples()}
PACK = pack.load()


def texts() -> list[tuple[str, str]]:
    """One optimised and one debug text of each sample."""
    chosen = []
    for name, variants in PACK.items():
        debug = [variant for variant in variants if " G " in variant][:1]
        plain = [variant for variant in variants if " G " not in variant][:1]
        chosen += [(name, variant) for variant in plain + debug]
    return chosen


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name,variant", texts())
def test_a_correct_sample_is_not_accused(name: str, variant: str, schedule: str) -> None:
    sample = SAMPLES[name]
    observer = Ordering()
    try:
        replay.run(sample, PACK[name][variant], schedule, observers=(observer,))
    except UnsupportedPtx as error:
        pytest.skip(f"the emulator does not model it: {error}")
    case = Case(sample.path.name, sample.path.read_text(encoding="utf-8"))
    scene = Scene(case, observer, schedule)
    found = {note.kind for note in observer.notes if is_mistake(note, scene, False)}
    assert found == set()
