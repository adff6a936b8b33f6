"""The mbarrier object: arrivals, bytes, phases, many lanes at a time.

Models PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier": init, inval,
arrive, arrive_drop (both with .noComplete and .expect_tx), expect_tx, complete_tx, test_wait and
try_wait by token and by parity, pending_count. Addresses, alignment and memory order are not its
business: every function takes the shared memory of a batch as 64-bit words and the index of the
word that each active lane names, in lane order; lanes on one barrier act one after another.

The whole state lies in those words, so data that a copy writes over a barrier destroys it as on the
chip:

    bit 63      the phase's parity
    62 to 43    pending arrivals, negated
    42 to 22    transaction count in bytes, signed
    21 to 1     2**20 less the expected arrivals of the next phase
    bit 0       0

The counts and the parity lie where `mbarrier.init` of an H200 puts them; the place of the
transaction count is what fits between, and what a copy over a barrier was seen to do. What the ISA
leaves undefined follows recorded answers of that chip: an arrival on a barrier that was never
initialised faults (all bits 0, or bit 0 set), and so do more arrivals than are pending; an arrival
while none is pending (the bytes are still missing) wraps to 2**20 - 1 pending and so hangs later
waits; a transaction count beyond 2**20 - 1 faults; `inval` leaves the word as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lesson.errors import LaunchFailure

Words = NDArray[np.uint64]
Index = NDArray[np.int64]
Count = NDArray[np.integer] | int

MAX_COUNT = 2**20 - 1
MAX_TX_NBYTES = 2**20 - 1
NEVER_EXPECTED = 2**20
"""What `expected` says of a word whose field is 0: no barrier that can be used."""
_PHASE, _PENDING, _TX, _EXPECTED = 63, 43, 22, 1
_COUNT_MASK, _WIDE_MASK, _TX_SIGN = 2**20 - 1, 2**21 - 1, 2**20
_FEW_LANES = 8  # so many are quicker one by one


class State(NamedTuple):
    """One barrier, field by field; or some, each field an int64 array."""

    phase: int | Index
    pending: int | Index
    expected: int | Index
    tx_nbytes: int | Index


class Arrival(NamedTuple):
    """What an arrive-on did: each lane's token, and the barriers whose phase it completed."""

    tokens: Words
    flipped: Index


class MbarrierFault(LaunchFailure):
    """An operation that the chip answers with "unspecified launch failure".

    `text` is what must be and what is, `cure` what to do. `position` counts the active lanes; the
    caller knows which thread that is.
    """

    def __init__(self, text: str, cure: str, position: int) -> None:
        super().__init__(f"{text}. {cure}")
        self.text, self.cure, self.position = text, cure, position


def unpack(word: int | Index) -> State:
    """The fields of a barrier word."""
    tx = word >> _TX & _WIDE_MASK
    return State(
        phase=word >> _PHASE & 1,
        pending=-(word >> _PENDING) & _COUNT_MASK,
        expected=NEVER_EXPECTED - (word >> _EXPECTED & _WIDE_MASK),
        tx_nbytes=(tx ^ _TX_SIGN) - _TX_SIGN,
    )


def pack(state: State) -> int | Index:
    """The barrier word with these fields, each cut to its bits."""
    phase, pending, expected, tx_nbytes = state
    left = (NEVER_EXPECTED - expected & _WIDE_MASK) << _EXPECTED
    bytes_missing = (tx_nbytes & _WIDE_MASK) << _TX
    return phase << _PHASE | (-pending & _COUNT_MASK) << _PENDING | bytes_missing | left


def init(view: Words, index: Index, count: Count) -> None:
    """Phase 0, `count` arrivals pending and expected; of lanes on one barrier the last wins."""
    negated = (-np.asarray(count, np.int64) & _COUNT_MASK).astype(np.uint64)
    view[index] = negated << np.uint64(_PENDING) | negated << np.uint64(_EXPECTED)


def inval(view: Words, index: Index) -> None:
    """Nothing that can be seen: an H200 still counts an arrival after `inval`."""


def is_over(view: Words, index: Index, parity: Count) -> NDArray[np.bool_]:
    """Whether the phase of that parity is over; parity 1 is over on a fresh barrier."""
    odd = (np.asarray(parity) & 1).astype(np.bool_)
    return (view[index] >> np.uint64(_PHASE)).astype(np.bool_) ^ odd


def parity_of(token: Words) -> Words:
    """The parity of the phase that each token was taken in: all that a wait by token asks for."""
    return token >> np.uint64(_PHASE)


def pending_count(token: Words) -> NDArray[np.uint32]:
    """Arrivals that were pending just before the arrive-on that returned `token`."""
    negated = (token >> np.uint64(_PENDING)).astype(np.uint32)
    return (~negated + np.uint32(1)) & np.uint32(_COUNT_MASK)


def expect_tx(view: Words, index: Index, nbytes: Count) -> Index:
    """Raise the transaction count; returns the barriers whose phase that completed."""
    return _apply(view, index, 0, nbytes, 1, drop=False, tokens=False).flipped


def complete_tx(view: Words, index: Index, nbytes: Count) -> Index:
    """Lower the transaction count, as a finished copy does; returns the barriers that flipped."""
    return _apply(view, index, 0, nbytes, -1, drop=False, tokens=False).flipped


def arrive(
    view: Words,
    index: Index,
    count: Count = 1,
    nbytes: Count = 0,
    *,
    drop: bool = False,
    tokens: bool = True,
) -> Arrival:
    """`count` arrivals of each lane, after expecting `nbytes` more bytes; `drop` leaves for good.

    .noComplete is the same operation: an H200 completes the phase also there. With `tokens` false
    (the result goes to `_`) the returned tokens may be empty.
    """
    return _apply(view, index, count, nbytes, 1, drop=drop, tokens=tokens)


def _apply(
    view: Words,
    index: Index,
    count: Count,
    nbytes: Count,
    sign: int,
    *,
    drop: bool,
    tokens: bool,
) -> Arrival:
    """One operation of all lanes, as if one after another."""
    if index.size > _FEW_LANES:
        amounts = sign * np.asarray(nbytes, np.int64)
        together = _together(view, index, np.asarray(count, np.int64), amounts, drop, tokens)
        if together is not None:
            return together
    return _one_by_one(view, index, count, nbytes, sign, drop)


def _together(
    view: Words, index: Index, count: Index, tx_nbytes: Index, drop: bool, tokens: bool
) -> Arrival | None:
    """All lanes at once, where no barrier faults or completes before its last lane; else None."""
    starts, lanes = _runs(index)
    barriers = index[starts]
    if (barriers[1:] <= barriers[:-1]).any():
        return None
    words = view[barriers].view(np.int64)
    phase, pending, expected, tx = unpack(words)
    total = _sums(count, starts, lanes)
    if tx_nbytes.any():
        tx = tx + _sums(tx_nbytes, starts, lanes)
        if (abs(tx) > MAX_TX_NBYTES).any():
            return None
    has_idle = count.size > 1 and not count.all()
    unsafe = (pending == 0) | (total > pending) | (expected == NEVER_EXPECTED) | (words & 1 != 0)
    if has_idle or unsafe.any():
        return None
    done = (total == pending) & (tx == 0)
    expected = expected - total if drop else expected
    left = np.where(done, expected, pending - total)
    view[barriers] = pack(State(phase ^ done, left, expected, tx)).view(np.uint64)
    taken = np.empty(0, np.uint64)
    if tokens:
        alike = count.size == 1
        before = np.arange(index.size) * count if alike else np.cumsum(count) - count
        taken = np.repeat(words - (before[starts] << _PENDING), lanes)
        taken = (taken + (before << _PENDING)).view(np.uint64)
    return Arrival(taken, barriers[done])


def _runs(index: Index) -> tuple[Index, Index]:
    """Runs of lanes on one barrier: where each starts, and how many lanes it has."""
    first = np.empty(index.size, np.bool_)
    first[0] = True
    np.not_equal(index[1:], index[:-1], out=first[1:])
    starts = first.nonzero()[0]
    lanes = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lanes[:-1])
    lanes[-1] = index.size - starts[-1]
    return starts, lanes


def _sums(values: Index, starts: Index, lanes: Index) -> Index:
    """The sum over each run of lanes; `values` has one element a lane or one for all."""
    return lanes * values if values.size == 1 else np.add.reduceat(values, starts)


def _one_by_one(
    view: Words, index: Index, count: Count, nbytes: Count, sign: int, drop: bool
) -> Arrival:
    """The general case: what one lane does may complete a phase under the next lane's feet."""
    places = index.tolist()
    counts = np.broadcast_to(count, index.shape).tolist()
    amounts = np.broadcast_to(nbytes, index.shape).tolist()
    tokens, flipped = [], []
    for position, at in enumerate(places):
        word = int(view[at])
        tokens.append(word)
        after, flip = _advance(word, counts[position], sign * amounts[position], drop, position)
        view[at] = after
        if flip:
            flipped.append(at)
    return Arrival(np.array(tokens, np.uint64), np.array(flipped, np.int64))


def _advance(word: int, count: int, tx_nbytes: int, drop: bool, position: int) -> tuple[int, bool]:
    """The word after one operation, and whether that completed the phase."""
    phase, pending, expected, tx = unpack(word)
    tx += tx_nbytes
    if count and (expected == NEVER_EXPECTED or word & 1):
        text = f"an mbarrier must be initialised before its first use, got the word {word:#018x}"
        cure = "Let one thread run mbarrier.init, then synchronise the block."
        raise MbarrierFault(text, cure, position)
    if 0 < pending < count:
        text = f"the arrivals of a phase must not exceed the {pending} pending, got {count}"
        cure = "Give mbarrier.init the number of arrivals of one phase."
        raise MbarrierFault(text, cure, position)
    if abs(tx) > MAX_TX_NBYTES:
        text = f"the transaction count must stay within 2**20 - 1 bytes, got {tx}"
        cure = "Expect the bytes of each copy once, in one thread."
        raise MbarrierFault(text, cure, position)
    pending = pending - count & _COUNT_MASK
    if drop:
        expected -= count
    flip = pending == 0 and tx == 0 and (count > 0 or tx_nbytes != 0)
    if flip:
        phase, pending = phase ^ 1, expected
    return pack(State(phase, pending, expected, tx)) | word & 1, flip
