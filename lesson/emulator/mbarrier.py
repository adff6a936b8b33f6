"""The mbarrier object: arrivals, bytes, phases, many lanes at a time.

Models PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier": init, inval,
arrive, arrive_drop (both with .noComplete and .expect_tx), expect_tx, complete_tx, test_wait and
try_wait by token and by parity, pending_count. Addresses, alignment and memory order are not its
business: every function takes the shared memory of a batch as 64-bit words and the index of the
word that each active lane names, in lane order, or `Runs` of lanes; lanes on one barrier act one
after another.

The words themselves, and which operations they refuse, are in `mbarrier_word`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lesson.emulator.mbarrier_word import (
    BAD,
    EXPECTED,
    EXPECTED_BITS,
    LIMIT,
    LOWER_HALF,
    MASK,
    MAX_TX_NBYTES,
    PENDING,
    PENDING_BITS,
    PHASE,
    TX_BITS,
    Index,
    MbarrierFault,
    State,
    advance,
    missing_nbytes,
    pack,
    tx_field,
    unpack,
)

__all__ = [
    "Arrival", "Index", "MbarrierFault", "Runs", "State", "arrive", "complete_tx", "expect_tx",
    "init", "inval", "is_over", "pack", "parity_of", "pending_count", "unpack",
]  # fmt: skip

Words = NDArray[np.uint64]
Count = NDArray[np.integer] | int

_FEW_LANES = 8  # so many are quicker one by one


class Runs(NamedTuple):
    """`n` lanes run by run: the word that each run names, none twice, and how many lanes it has."""

    words: Index
    lanes: Index
    n: int


class Arrival(NamedTuple):
    """What an arrive-on did: each lane's token, and the barriers whose phase it completed."""

    tokens: Words
    flipped: Index


def init(view: Words, index: Index, count: Count) -> None:
    """Phase 0, `count` arrivals pending and expected; of lanes on one barrier the last wins."""
    negated = -np.asarray(count, np.int64) & MASK
    view[index] = (negated << PENDING | negated << EXPECTED).view(np.uint64)


def inval(view: Words, index: Index) -> None:
    """Nothing that can be seen: an H200 still counts an arrival after `inval`."""


def is_over(view: Words, at: Index | Runs, parity: Count | NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the phase of that parity is over, lane by lane; parity 1 is over on a fresh barrier.

    Of a parity that is a number the lowest bit counts.
    """
    words = at.words if isinstance(at, Runs) else at
    phases = view[words].view(np.int64) < 0
    if isinstance(at, Runs):
        phases = np.repeat(phases, at.lanes)
    odd = np.asarray(parity)
    return phases ^ (odd if odd.dtype == np.bool_ else (odd & 1).astype(np.bool_))


def parity_of(token: Words) -> NDArray[np.bool_]:
    """Whether each token was taken in an odd phase: all that a wait by token asks for."""
    return token.view(np.int64) < 0


def pending_count(token: Words) -> NDArray[np.uint32]:
    """Arrivals that were pending just before the arrive-on that returned `token`."""
    negated = (token >> np.uint64(PENDING)).astype(np.uint32)
    return (~negated + np.uint32(1)) & np.uint32(MASK)


def expect_tx(view: Words, at: Index | Runs, nbytes: Count) -> Index:
    """Raise the transaction count; returns the barriers whose phase that completed."""
    return _apply(view, at, 0, nbytes, 1, drop=False, tokens=False).flipped


def complete_tx(view: Words, at: Index | Runs, nbytes: Count) -> Index:
    """Lower the transaction count, as a finished copy does; returns the barriers that flipped."""
    return _apply(view, at, 0, nbytes, -1, drop=False, tokens=False).flipped


def arrive(
    view: Words,
    at: Index | Runs,
    count: Count = 1,
    nbytes: Count = 0,
    *,
    drop: bool = False,
    tokens: bool = True,
) -> Arrival:
    """`count` arrivals of each lane, after expecting `nbytes` more bytes; `drop` leaves for good.

    .noComplete is the same operation: an H200 completes the phase also there. With `tokens` false
    (the result goes to `_`) the returned tokens may be empty. A token is the upper half of the word
    before, as on an H200; what that leaves in the lower half is for the compiler to say, here it is
    0.
    """
    return _apply(view, at, count, nbytes, 1, drop=drop, tokens=tokens)


def _apply(
    view: Words,
    at: Index | Runs,
    count: Count,
    nbytes: Count,
    sign: int,
    *,
    drop: bool,
    tokens: bool,
) -> Arrival:
    """One operation of all lanes, as if one after another."""
    count, nbytes = _plain(count), _plain(nbytes)
    runs = at if isinstance(at, Runs) else None
    if (at.n if runs else at.size) > _FEW_LANES:
        runs = runs or _runs(at)
        together = runs and _together(view, runs, count, nbytes, sign, drop, tokens)
        if together is not None:
            return together
    index = np.repeat(at.words, at.lanes) if isinstance(at, Runs) else at
    return _one_by_one(view, index, count, nbytes, sign, drop)


def _plain(values: Count) -> Count:
    """A Python integer where one value stands for all lanes."""
    return values if isinstance(values, int) or values.size > 1 else int(values.item())


def _together(
    view: Words,
    runs: Runs,
    count: Count,
    nbytes: Count,
    sign: int,
    drop: bool,
    tokens: bool,
) -> Arrival | None:
    """All lanes at once, where no barrier faults or completes before its last lane; else None.

    Arrivals are added to the negated pending count. That overflows into the phase when the last one
    has come, which is right unless bytes are missing.
    """
    before = view[runs.words].view(np.int64)
    total, missing = _sums(count, runs), before & TX_BITS
    reached = (before >> PENDING & MASK) + total
    has_idle = not isinstance(count, int) and not count.all()
    is_spent = np.minimum.reduce(before & PENDING_BITS) == 0
    is_bad = int(np.bitwise_or.reduce(before)) >> BAD & 1
    if has_idle or is_spent or is_bad or np.maximum.reduce(reached) > LIMIT:
        return None
    after = before
    if not isinstance(nbytes, int) or nbytes:
        more = sign * _sums(nbytes, runs)
        missing = missing_nbytes(before) + more if missing.any() else more
        if np.abs(missing).max() > MAX_TX_NBYTES:
            return None
        after = before & ~TX_BITS | tx_field(missing)
    if drop:
        after = after & ~EXPECTED_BITS | after + (total << EXPECTED) & EXPECTED_BITS
    after = after + (total << PENDING)
    full = reached == LIMIT
    done = full & (missing == 0)
    if full.any():
        next_pending = (after & EXPECTED_BITS) << (PENDING - EXPECTED)
        after = (after ^ (full ^ done) << PHASE) + np.where(done, next_pending, 0)
    view[runs.words] = after.view(np.uint64)
    taken = _tokens(before, runs, count, nbytes) if tokens else np.empty(0, np.uint64)
    return Arrival(taken, runs.words[done])


def _tokens(before: Index, runs: Runs, count: Count, nbytes: Count) -> Words:
    """Each lane's token, given the word before the first lane of each run."""
    upper = before & ~LOWER_HALF
    if runs.n > runs.words.size:
        starts = runs.lanes.cumsum() - runs.lanes
        arrived = _earlier(count, runs.n, PENDING)
        upper = np.repeat(upper - arrived[starts], runs.lanes) + arrived
        if not isinstance(nbytes, int) or nbytes:
            came = _earlier(nbytes, runs.n, 0)
            missing = np.repeat(missing_nbytes(before) - came[starts], runs.lanes) + came
            upper = upper & ~TX_BITS | tx_field(missing) & ~LOWER_HALF
    return upper.view(np.uint64)


def _earlier(values: Count, n: int, shift: int) -> Index:
    """The sums of the lanes before each one, shifted to the left."""
    if isinstance(values, int):
        return _multiples(n, values << shift)
    return np.cumsum(values, dtype=np.int64) - values << shift


@lru_cache(maxsize=8)
def _multiples(n: int, step: int) -> Index:
    return np.arange(n) * step


def _runs(index: Index) -> Runs | None:
    """Runs of lanes on one barrier, in the order of the barriers; None where they are not."""
    first = np.empty(index.size, np.bool_)
    first[0] = True
    np.not_equal(index[1:], index[:-1], out=first[1:])
    starts = first.nonzero()[0]
    words = index[starts]
    if (words[1:] <= words[:-1]).any():
        return None
    return Runs(words, np.diff(starts, append=index.size), index.size)


def _sums(values: Count, runs: Runs) -> Index:
    """The sum over each run of lanes; `values` has one element a lane or one for all."""
    if isinstance(values, int):
        return runs.lanes * values
    return np.add.reduceat(values, np.cumsum(runs.lanes) - runs.lanes, dtype=np.int64)


def _one_by_one(
    view: Words, index: Index, count: Count, nbytes: Count, sign: int, drop: bool
) -> Arrival:
    """The general case: what one lane does may complete a phase under the next lane's feet."""
    places = index.tolist()
    counts, amounts = _each(count, len(places)), _each(nbytes, len(places))
    tokens, flipped = [], []
    for position, at in enumerate(places):
        word = int(view[at])
        tokens.append(word & ~LOWER_HALF)
        after, flip = advance(word, counts[position], sign * amounts[position], drop, position)
        view[at] = after
        if flip:
            flipped.append(at)
    return Arrival(np.array(tokens, np.uint64), np.array(flipped, np.int64))


def _each(values: Count, n: int) -> list[int]:
    """One Python integer a lane."""
    return [values] * n if isinstance(values, int) else values.tolist()
