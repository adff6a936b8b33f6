"""Named barriers and the barrier of a cluster, without a scheduler around them."""

from __future__ import annotations

import numpy as np

from lesson.emulator.barriers import ClusterBarriers, NamedBarriers, Unfinished

SIXTY_FOUR = np.array([64], np.uint32)


def lanes(n: int, *parts: int | range) -> np.ndarray:
    mask = np.zeros(n, np.bool_)
    for part in parts:
        mask[part if isinstance(part, int) else slice(part.start, part.stop)] = True
    return mask


def every(n: int) -> np.ndarray:
    return np.ones(n, np.bool_)


def test_a_barrier_that_all_threads_reach_at_once_holds_nobody() -> None:
    barriers = NamedBarriers(2, 64)
    assert barriers.arrive(0, every(128), every(128)).all()
    assert barriers.unfinished(every(128)) == []


def test_each_block_waits_for_its_own_threads() -> None:
    barriers = NamedBarriers(2, 64)
    first = lanes(128, range(64), range(64, 96))
    assert barriers.arrive(0, first, every(128)).tolist() == lanes(128, range(64)).tolist()
    assert barriers.unfinished(every(128)) == [Unfinished(1, 0, 32, 64, tuple(range(32)))]
    last = barriers.arrive(0, lanes(128, range(96, 128)), every(128))
    assert last.tolist() == lanes(128, range(64, 128)).tolist()


def test_lanes_of_one_warp_may_come_one_by_one() -> None:
    barriers = NamedBarriers(1, 32)
    assert not barriers.arrive(0, lanes(32, range(31)), every(32)).any()
    assert barriers.arrive(0, lanes(32, 31), every(32)).all()


def test_threads_that_exit_are_not_waited_for() -> None:
    barriers = NamedBarriers(1, 64)
    assert not barriers.arrive(0, lanes(64, range(40)), every(64)).any()
    assert barriers.exited(lanes(64, range(63))) == []
    [(number, released)] = barriers.exited(lanes(64, range(40)))
    assert (number, released.sum()) == (0, 40)


def test_threads_that_exited_before_are_not_waited_for() -> None:
    barriers = NamedBarriers(1, 64)
    assert barriers.arrive(0, lanes(64, range(32)), lanes(64, range(32))).sum() == 32


def test_a_count_releases_at_so_many_threads() -> None:
    barriers = NamedBarriers(1, 128)
    assert not barriers.arrive(1, lanes(128, range(32)), every(128), SIXTY_FOUR).any()
    released = barriers.arrive(1, lanes(128, range(96, 128)), every(128), SIXTY_FOUR)
    assert released.tolist() == lanes(128, range(32), range(96, 128)).tolist()


def test_those_who_only_arrive_are_counted_but_do_not_wait() -> None:
    barriers = NamedBarriers(1, 64)
    for _ in range(3):
        one, two = lanes(64, range(32)), lanes(64, range(32, 64))
        assert not barriers.arrive(3, one, every(64), SIXTY_FOUR, waits=False).any()
        assert barriers.arrive(3, two, every(64), SIXTY_FOUR).tolist() == two.tolist()


def test_arrivals_of_a_warp_that_has_exited_since_still_count() -> None:
    barriers = NamedBarriers(1, 64)
    barriers.arrive(3, lanes(64, range(32)), every(64), SIXTY_FOUR, waits=False)
    rest = lanes(64, range(32, 64))
    assert barriers.arrive(3, rest, rest, SIXTY_FOUR).sum() == 32


def test_a_partial_last_warp_counts_as_32_threads() -> None:
    barriers = NamedBarriers(1, 64)
    there = lanes(64, range(48))
    assert barriers.arrive(2, there, there, SIXTY_FOUR).sum() == 48


def test_barriers_of_other_numbers_are_apart() -> None:
    barriers = NamedBarriers(1, 128)
    assert not barriers.arrive(1, lanes(128, range(32)), every(128), SIXTY_FOUR).any()
    assert not barriers.arrive(2, lanes(128, range(64, 96)), every(128), SIXTY_FOUR).any()
    released = barriers.arrive(1, lanes(128, range(32, 64)), every(128), SIXTY_FOUR)
    assert released.tolist() == lanes(128, range(64)).tolist()
    assert [each.barrier for each in barriers.unfinished(every(128))] == [2]


def test_a_reduction_tells_every_thread_how_many_said_yes() -> None:
    barriers = NamedBarriers(2, 64)
    yes = lanes(128, 3, range(40, 50), 127)
    early = lanes(128, range(32), range(64, 128))
    released = barriers.arrive(0, early, every(128), None, yes)
    assert released.tolist() == lanes(128, range(64, 128)).tolist()
    barriers.arrive(0, lanes(128, range(32, 64)), every(128), None, yes)
    assert barriers.popc.tolist() == [[11] * 64, [1] * 64]
    assert (barriers.threads == 64).all()
    assert barriers.arrive(0, every(128), every(128), None, ~yes).all()
    assert barriers.popc[:, 0].tolist() == [53, 63]


def test_a_cluster_is_passed_when_all_of_its_blocks_have_arrived() -> None:
    cluster = ClusterBarriers(2, 64)
    assert not cluster.arrive(lanes(128, range(32)), every(128)).any()
    assert not cluster.may_pass(lanes(128, range(32))).any()
    assert cluster.arrive(lanes(128, range(32, 64)), every(128)).tolist() == [True, False]
    assert cluster.may_pass(every(128)).tolist() == lanes(128, range(64)).tolist()


def test_a_cluster_does_not_wait_for_threads_that_have_exited() -> None:
    cluster = ClusterBarriers(1, 64)
    cluster.arrive(lanes(64, range(32)), every(64))
    assert cluster.exited(lanes(64, range(32))).all()
    assert cluster.phase.tolist() == [1]
