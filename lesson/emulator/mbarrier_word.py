"""The 64-bit word of an mbarrier: its fields, and what one operation makes of it.

Models PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier", for one thread
and one barrier; `mbarrier` does many lanes at a time.

The whole state lies in the word, so data that a copy writes over a barrier destroys it as on the
chip:

    bit 63      the phase's parity
    62 to 43    pending arrivals, negated
    42          0; where it is set, an arrival faults
    41 to 22    bytes that the phase still misses, negated
    21          1 where more bytes have come than were expected
    20 to 1     expected arrivals of the next phase, negated
    bit 0       0

All of this is what an H200 showed in its words and tokens, but for bit 21: it is free, and the sign
has to be somewhere. What the ISA leaves undefined follows recorded answers of that chip: an arrival
while none is pending faults, be the barrier never initialised (all bits 0) or bytes still missing,
and so do more arrivals than are pending; a transaction count beyond 2**20 - 1 faults; `inval`
leaves the word as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lesson.errors import LaunchFailure

Index = NDArray[np.int64]

MAX_TX_NBYTES = 2**20 - 1
PHASE, PENDING, BAD, TX, TX_SIGN, EXPECTED = 63, 43, 42, 22, 21, 1
MASK, LIMIT = 2**20 - 1, 2**20
PENDING_BITS, EXPECTED_BITS = MASK << PENDING, MASK << EXPECTED
TX_BITS = MASK << TX | 1 << TX_SIGN
UNUSED = 1 << BAD | 1
LOWER_HALF = 2**32 - 1


class State(NamedTuple):
    """One barrier, field by field; or some, each field an int64 array."""

    phase: int | Index
    pending: int | Index
    expected: int | Index
    tx_nbytes: int | Index


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
    return State(
        phase=word >> PHASE & 1,
        pending=-(word >> PENDING) & MASK,
        expected=-(word >> EXPECTED) & MASK,
        tx_nbytes=missing_nbytes(word),
    )


def missing_nbytes(word: int | Index) -> int | Index:
    """Bytes that the phase still misses; negative where too many have come."""
    return (-(word >> TX) & MASK) - ((word >> TX_SIGN & 1) << 20)


def tx_field(missing: int | Index) -> int | Index:
    """The bits of a word that say so."""
    return (-missing & MASK) << TX | (missing < 0) << TX_SIGN


def pack(state: State) -> int | Index:
    """The barrier word with these fields, each cut to its bits."""
    phase, pending, expected, tx_nbytes = state
    counts = (-pending & MASK) << PENDING | (-expected & MASK) << EXPECTED
    return phase << PHASE | counts | tx_field(tx_nbytes)


def advance(word: int, count: int, tx_nbytes: int, drop: bool, position: int) -> tuple[int, bool]:
    """The word after one operation, and whether that completed the phase."""
    phase, pending, expected, tx = unpack(word)
    tx += tx_nbytes
    if count and (word >> BAD & 1 or count > pending):
        raise MbarrierFault(*_refusal(word, count), position)
    if tx_nbytes and abs(tx) > MAX_TX_NBYTES:
        text = f"the transaction count must stay within 2**20 - 1 bytes, got {tx}"
        raise MbarrierFault(text, "Expect the bytes of each copy once, in one thread.", position)
    pending -= count
    if drop:
        expected -= count
    flip = pending == 0 and tx == 0 and (count > 0 or tx_nbytes != 0)
    if flip:
        phase, pending = phase ^ 1, expected
    return pack(State(phase, pending, expected, tx)) | word & UNUSED, flip


def _refusal(word: int, count: int) -> tuple[str, str]:
    """Why the word takes no such arrival, and the cure."""
    _, pending, expected, tx = unpack(word)
    cure = "Give mbarrier.init the number of arrivals of one phase."
    if word >> BAD & 1 or pending == expected == 0:
        text = f"an mbarrier must be initialised before its first use, got the word {word:#018x}"
        return text, "Let one thread run mbarrier.init, then synchronise the block."
    rule = "the arrivals of a phase must not exceed"
    if pending == 0:
        return (
            f"{rule} the {expected} expected, got {count} more while {tx} bytes are missing",
            cure,
        )
    return f"{rule} the {pending} pending, got {count}", cure
