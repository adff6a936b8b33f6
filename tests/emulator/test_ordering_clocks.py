"""Vector clocks with shared rows: who knows what, and what is fenced."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lesson.emulator.ordering_clocks import Clocks

LANES = 64
DOMAIN = 32


def lanes(*numbers: int) -> np.ndarray:
    return np.array(numbers)


def knows(clocks: Clocks, reader: int, writer: int, stamp: int) -> bool:
    column = clocks.column[writer : writer + 1]
    return bool(clocks.knows(lanes(reader), column, np.array([stamp]))[0])


def test_a_thread_knows_itself_and_nobody_else_at_first() -> None:
    clocks = Clocks(LANES, DOMAIN)
    assert knows(clocks, 3, 3, 1)
    assert not knows(clocks, 3, 4, 1)


def test_threads_that_meet_know_what_each_did_before_and_not_what_comes_after() -> None:
    clocks = Clocks(LANES, DOMAIN)
    before = int(clocks.clock[4])
    clocks.meet(lanes(3, 4), np.zeros(2, np.int64), 1)
    assert knows(clocks, 3, 4, before)
    assert not knows(clocks, 3, 4, int(clocks.clock[4]))
    assert not knows(clocks, 5, 4, before)


def test_groups_that_meet_at_once_learn_nothing_of_each_other() -> None:
    clocks = Clocks(LANES, DOMAIN)
    clocks.meet(lanes(0, 1, 2, 3), np.array([0, 0, 1, 1]), 2)
    assert knows(clocks, 0, 1, 1)
    assert not knows(clocks, 0, 2, 1)


def test_knowledge_passes_through_a_barrier_and_on_to_third_parties() -> None:
    clocks = Clocks(LANES, DOMAIN)
    first = clocks.release(lanes(0), clocks.empty())
    clocks.acquire(lanes(1), first)
    second = clocks.release(lanes(1), clocks.empty())
    clocks.acquire(lanes(2), second)
    assert knows(clocks, 2, 0, 1)
    assert not knows(clocks, 0, 1, 1)


def test_a_fence_publishes_what_the_thread_wrote_and_what_it_knew() -> None:
    clocks = Clocks(LANES, DOMAIN)
    clocks.meet(lanes(0, 1), np.zeros(2, np.int64), 1)
    clocks.fence_async(lanes(1))
    assert clocks.lane_sees_fenced(1, clocks.column[[0]], np.array([1]))[0]
    assert not clocks.lane_sees_fenced(0, clocks.column[[0]], np.array([1]))[0]
    clocks.meet(lanes(0, 1), np.zeros(2, np.int64), 1)
    assert clocks.lane_sees_fenced(0, clocks.column[[1]], np.array([2]))[0]


def test_many_releases_at_once_are_as_many_single_ones() -> None:
    one, all_ = Clocks(LANES, DOMAIN), Clocks(LANES, DOMAIN)
    parts = [lanes(0, 1), lanes(32, 33, 34)]
    singles = [one.release(part, one.empty()) for part in parts]
    together = all_.release_all(parts, [all_.empty(), all_.empty()])
    for a, b in zip(singles, together, strict=True):
        assert np.array_equal(a.know, b.know)
        assert np.array_equal(a.fenced, b.fenced)


class Naive:
    """One full clock a lane, with Python loops."""

    def __init__(self) -> None:
        self.know = [{lane: 1} for lane in range(DOMAIN)]

    def meet(self, group: list[int]) -> None:
        union: dict[int, int] = {}
        for lane in group:
            for other, stamp in self.know[lane].items():
                union[other] = max(union.get(other, 0), stamp)
        for lane in group:
            self.know[lane] = {**union, lane: self.know[lane][lane] + 1}


@given(st.lists(st.sets(st.integers(0, DOMAIN - 1), min_size=1, max_size=6), max_size=40))
def test_any_order_of_meetings_gives_the_clocks_that_a_naive_model_gives(
    meetings: list[set[int]],
) -> None:
    clocks, naive = Clocks(LANES, DOMAIN), Naive()
    for each in meetings:
        group = sorted(each)
        clocks.meet(np.array(group), np.zeros(len(group), np.int64), 1)
        naive.meet(group)
    for reader in range(DOMAIN):
        row = clocks.know[clocks.row[reader]]
        for writer in range(DOMAIN):
            if writer != reader:
                assert row[writer] == naive.know[reader].get(writer, 0)
