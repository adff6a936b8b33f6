"""The short ways of the checks: along a known pattern, a set of lanes at a time. They find what the
long ways find."""

from __future__ import annotations

import numpy as np
import pytest

from lesson.emulator.lanes import Mask
from lesson.emulator.observe import Observer
from lesson.emulator.ordering import Ordering
from lesson.emulator.ordering_clocks import Clocks, by_owner
from lesson.emulator.ordering_phases import Phase, Waits
from lesson.emulator.ptx import Instr
from tests.kernels import pack, replay, samples

LANES, DOMAIN = 64, 32
SAMPLES = {s.name: s for s in samples.all_samples()}
PACK = pack.load()
CHOSEN = ("store-ring", "stencil-3d", "persistent-warps", "byte-histogram", "big-shared")


class LongWay(Ordering):
    """Looks at the index of every lane."""

    access_along = Observer.access_along


class Counting(Ordering):
    """Counts the accesses that come along a known pattern."""

    count = 0

    def access_along(self, *args: object) -> None:
        self.count += 1
        super().access_along(*args)  # type: ignore[arg-type]


def state_of(observer: Ordering) -> dict[str, np.ndarray]:
    """All that the shadows hold at the end, the readers included."""
    observer.shadow.readers.flush()
    shadow, reads = observer.shadow, observer.shadow.readers
    found = {"writer": shadow.writer, "written": shadow.written, "barrier": shadow.barrier}
    found |= {"owner": observer.global_shadow.owner, "values": observer.global_shadow.values}
    if reads.is_made:
        found |= {"reader": reads.column, "read": reads.stamp}
    return found


@pytest.mark.parametrize("schedule", ["eager", "random"])
@pytest.mark.parametrize("name", CHOSEN)
def test_the_short_way_leaves_the_same_notes_and_shadows_as_the_long_one(
    name: str, schedule: str
) -> None:
    text = next(t for variant, t in sorted(PACK[name].items()) if "O3 sm_90" in variant)
    ways = []
    for observer in (Counting(), LongWay()):
        replay.run(SAMPLES[name], text, schedule, observers=(observer,))
        ways.append(observer)
    short, long = ways
    assert short.count > 0
    assert [note.kind for note in short.notes] == [note.kind for note in long.notes]
    states = state_of(short), state_of(long)
    assert states[0].keys() == states[1].keys()
    for key, value in states[0].items():
        np.testing.assert_array_equal(value, states[1][key], err_msg=key)


# ---------------------------------------------------------------------------- knowledge in sets
def test_the_rows_of_a_mask_are_looked_up_again_when_a_lane_has_learnt_something() -> None:
    clocks = Clocks(LANES, DOMAIN)
    everyone = Mask(np.ones(LANES, np.bool_))
    assert sorted(set(clocks.rows_of(everyone).tolist())) == [0, 1]
    clocks.learn(3, 5, 1)
    rows = set(clocks.rows_of(everyone).tolist())
    assert rows == {0, 1, int(clocks.row[3])}
    assert len(rows) == 3


def test_a_release_does_not_change_what_was_handed_over_before() -> None:
    clocks = Clocks(LANES, DOMAIN)
    first = clocks.release(np.array([0]))
    before = first.know.copy()
    second = clocks.release(np.array([1]), first)
    assert np.array_equal(first.know, before)
    assert second.know[:2].tolist() == [1, 1]


@pytest.mark.parametrize(
    "lanes,owners",
    [
        ([], []),
        ([5, 6], [(0, [5, 6])]),
        ([31, 32], [(0, [31]), (1, [32])]),
        ([1, 70, 95, 96], [(0, [1]), (2, [70, 95]), (3, [96])]),
    ],
)
def test_lanes_are_cut_at_the_borders_of_their_owners(
    lanes: list[int], owners: list[tuple[int, list[int]]]
) -> None:
    found = by_owner(np.array(lanes, np.int64), 32)
    assert [(owner, part.tolist()) for owner, part in found] == owners


# --------------------------------------------------------------------------- records of a barrier
def test_arrivals_are_counted_by_thread_however_they_came() -> None:
    phase = Phase()
    phase.who += [(np.array([32, 33]), 1), (np.array([33, 40]), np.array([2, 3]))]
    arrived = phase.arrived(DOMAIN)
    assert {int(k): int(arrived[k]) for k in arrived.nonzero()[0]} == {0: 1, 1: 3, 8: 3}


def test_the_last_wait_of_a_thread_is_kept_with_its_instruction() -> None:
    first, second = (Instr("mbarrier", ("try_wait",), (), None, False, n, None) for n in (1, 2))
    waits = Waits(DOMAIN)
    assert waits.get(33) is None
    assert not waits.have_seen(0, 0, DOMAIN)
    waits.add(np.array([32, 33, 34]), first, 1, 10, np.ones(3, np.int64))
    waits.add(np.array([32, 34]), second, 2, 20, np.ones(2, np.int64))
    assert waits.get(33) == (first, 1, 10)
    assert waits.get(34) == (second, 2, 20)
    assert waits.get(35) is None
    assert waits.have_seen(2, 0, 1)
    assert not waits.have_seen(2, 1, 2)
