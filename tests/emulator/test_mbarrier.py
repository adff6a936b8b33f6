"""The mbarrier functions against the state machine that the PTX ISA documents."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from lesson.emulator import mbarrier
from lesson.errors import LaunchFailure


@dataclass
class Documented:
    """The state that the PTX ISA describes, in plain integers."""

    pending: int
    expected: int
    tx: int = 0
    phase: int = 0

    def act(self, arrivals: int, tx: int, drop: bool) -> tuple[int, int]:
        """One operation; returns what a token of it says: the phase and the pending count."""
        token = self.phase & 1, self.pending
        self.pending -= arrivals
        self.expected -= arrivals * drop
        self.tx += tx
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected
        return token


def fresh(*counts: int) -> tuple[np.ndarray, np.ndarray]:
    """Shared memory with a barrier in every other word."""
    view = np.full(2 * len(counts), 0xA5A5A5A5A5A5A5A5, np.uint64)
    index = np.arange(len(counts)) * 2
    mbarrier.init(view, index, np.array(counts, np.uint32))
    return view, index


def random_step(rng: random.Random, models: list[Documented]) -> tuple[str, list[int], list[int]]:
    """An operation that the ISA defines: its name, the barrier of each lane, the bytes of each."""
    op = rng.choice(["arrive", "arrive", "drop", "arrive+tx", "expect", "complete"])
    room = rng.choice([1, 12])
    lanes = [n for n, m in enumerate(models) for _ in range(rng.randint(0, min(room, m.pending)))]
    if rng.random() < 0.4:
        rng.shuffle(lanes)
    if op == "drop":
        lanes = [n for n in lanes if models[n].expected > lanes.count(n)]
    if op == "complete":
        lanes = [n for n in dict.fromkeys(lanes) if models[n].tx > 0]
        return op, lanes, [models[n].tx for n in lanes]
    nbytes = [rng.choice([8, 16, 48]) if op in ("arrive+tx", "expect") else 0 for _ in lanes]
    return op, lanes, nbytes


def run_step(view: np.ndarray, at: np.ndarray, op: str, nbytes: list[int]) -> mbarrier.Arrival:
    """The same operation by the emulator."""
    amounts = np.array(nbytes, np.uint32)
    if op == "expect":
        return mbarrier.Arrival(np.empty(0, np.uint64), mbarrier.expect_tx(view, at, amounts))
    if op == "complete":
        return mbarrier.Arrival(np.empty(0, np.uint64), mbarrier.complete_tx(view, at, amounts))
    return mbarrier.arrive(view, at, 1, amounts if op == "arrive+tx" else 0, drop=op == "drop")


@pytest.mark.parametrize("seed", range(40))
def test_lanes_act_one_after_another_as_the_isa_documents(seed: int) -> None:
    rng = random.Random(seed)
    counts = [rng.randint(1, 12) for _ in range(4)]
    view, index = fresh(*counts)
    models = [Documented(count, count) for count in counts]
    for _ in range(60):
        op, lanes, nbytes = random_step(rng, models)
        if not lanes:
            continue
        arrivals, sign = op not in ("expect", "complete"), -1 if op == "complete" else 1
        phases = [m.phase for m in models]
        promised = [
            models[n].act(arrivals, sign * amount, op == "drop")
            for n, amount in zip(lanes, nbytes, strict=True)
        ]
        tokens, flipped = run_step(view, index[lanes], op, nbytes)
        if arrivals:
            assert (tokens >> np.uint64(63)).tolist() == [phase for phase, _ in promised]
            assert mbarrier.pending_count(tokens).tolist() == [count for _, count in promised]
            over = mbarrier.is_over(view, index[lanes], mbarrier.parity_of(tokens))
            assert over.tolist() == [
                models[n].phase & 1 != phase for n, (phase, _) in zip(lanes, promised, strict=True)
            ]
        assert set(flipped) == {index[n] for n in range(4) if models[n].phase != phases[n]}
        for number, model in enumerate(models):
            state = mbarrier.unpack(int(view[index[number]]))
            assert state == (model.phase & 1, model.pending, model.expected, model.tx)
    assert (view[index + 1] == 0xA5A5A5A5A5A5A5A5).all()


def test_256_arrivals_on_a_barrier_of_one_complete_256_phases() -> None:
    view, index = fresh(1)
    tokens, flipped = mbarrier.arrive(view, np.repeat(index, 256))
    assert (tokens >> np.uint64(63)).tolist() == [0, 1] * 128
    assert flipped.tolist() == [0] * 256
    assert mbarrier.is_over(view, index, 1).all()


def test_the_words_of_an_initialised_barrier_are_those_of_the_chip() -> None:
    view, index = fresh(32)
    assert view[index[0]] == 0x7FFF0000_001FFFC0


def test_a_fresh_barrier_passes_parity_1_and_not_parity_0() -> None:
    view, index = fresh(3)
    assert mbarrier.is_over(view, index, np.array([1, 0])).tolist() == [True, False]


def test_an_arrival_after_inval_still_counts() -> None:
    view, index = fresh(1)
    mbarrier.inval(view, index)
    mbarrier.arrive(view, index)
    assert mbarrier.is_over(view, index, 0).all()


def test_an_arrival_while_only_bytes_are_missing_is_one_too_many() -> None:
    view, index = fresh(1)
    mbarrier.arrive(view, index, 1, 16)
    with pytest.raises(LaunchFailure, match="the 1 expected, got 1 more while 16 bytes are"):
        mbarrier.arrive(view, index)


def test_the_bytes_of_a_phase_lie_in_the_token_as_on_the_chip() -> None:
    view, index = fresh(5)
    mbarrier.arrive(view, index, drop=True)
    mbarrier.arrive(view, index, 1, 16, drop=True)
    assert mbarrier.arrive(view, index).tokens.tolist() == [0x7FFFEBFF_00000000]


BROKEN = [0x7FFFFC00_001FFFFE, 2**64 - 1, 0x7FC0DEAD_7FC0DEAD, 0xA5A5A5A5_A5A5A5A5]
SPENT = [0, 1, 2, 1 << 20, 1 << 21, 1 << 41, 1 << 63, 0x00000001_00000000]
USABLE = [1 << 43, 1 << 62, 0x7FFFF800_001FFFFF, 0x3F800000_3F800000, 0x45801000_45800000]


@pytest.mark.parametrize("lanes", [1, 20])
@pytest.mark.parametrize("word", BROKEN + SPENT)
def test_an_arrival_faults_on_words_without_pending_arrivals_or_with_bit_42(word, lanes) -> None:
    view = np.array([word] * lanes, np.uint64)
    with pytest.raises(LaunchFailure):
        mbarrier.arrive(view, np.arange(lanes))


@pytest.mark.parametrize("lanes", [1, 20])
@pytest.mark.parametrize("word", USABLE)
def test_other_words_pass_for_barriers(word: int, lanes: int) -> None:
    view = np.array([word] * lanes, np.uint64)
    tokens = mbarrier.arrive(view, np.arange(lanes)).tokens
    assert tokens.tolist() == [word >> 32 << 32] * lanes


def test_runs_of_lanes_are_the_lanes_one_by_one() -> None:
    view, index = fresh(9, 30, 4)
    other, _ = fresh(9, 30, 4)
    runs = mbarrier.Runs(index, np.array([9, 20, 3]), 32)
    counts = np.ones(32, np.uint32)
    for count, nbytes in ((1, 0), (counts, np.arange(32, dtype=np.uint32))):
        got = mbarrier.arrive(view, runs, count, nbytes)
        for lane, at in enumerate(np.repeat(index, runs.lanes)):
            bytes_here = nbytes if isinstance(nbytes, int) else nbytes[lane : lane + 1]
            alone = mbarrier.arrive(other, np.array([at]), 1, bytes_here)
            assert alone.tokens[0] == got.tokens[lane]
        assert view.tolist() == other.tolist()
        mbarrier.init(view, index, np.array([9, 30, 4]))
        mbarrier.init(other, index, np.array([9, 30, 4]))


@pytest.mark.parametrize(
    "setup, operation, words",
    [
        (None, mbarrier.arrive, "initialised"),
        (None, lambda v, i: mbarrier.arrive(np.array([0x7FC0DEAD_7FC0DEAD]), i), "initialised"),
        (2, lambda v, i: mbarrier.arrive(v, i, 3), "must not exceed the 2 pending"),
        (2, lambda v, i: mbarrier.expect_tx(v, i, 2**20), "transaction count"),
        (2, lambda v, i: mbarrier.complete_tx(v, i, 2**20), "transaction count"),
    ],
)
def test_what_the_chip_faults_on_is_a_launch_failure(setup, operation, words) -> None:
    view, index = np.zeros(1, np.uint64), np.array([0])
    if setup:
        mbarrier.init(view, index, setup)
    with pytest.raises(LaunchFailure, match=words):
        operation(view, index)


def test_bytes_on_a_word_of_zeros_fault_nothing() -> None:
    view, index = np.zeros(1, np.uint64), np.array([0])
    assert mbarrier.complete_tx(view, index, 32768).size == 0
    assert mbarrier.unpack(int(view[0])) == (0, 0, 0, -32768)
    assert not mbarrier.is_over(view, index, 0).any()


def test_all_may_leave_a_barrier_for_good() -> None:
    view, index = fresh(2)
    mbarrier.arrive(view, np.repeat(index, 2), drop=True)
    assert mbarrier.unpack(int(view[0])) == (1, 0, 0, 0)
    with pytest.raises(LaunchFailure, match="initialised"):
        mbarrier.arrive(view, index)


def test_the_fault_names_the_first_lane_in_lane_order() -> None:
    view, index = fresh(5, 1)
    with pytest.raises(mbarrier.MbarrierFault) as caught:
        mbarrier.arrive(view, index[[0, 1, 0]], np.array([2, 1, 4]))
    assert caught.value.position == 2
