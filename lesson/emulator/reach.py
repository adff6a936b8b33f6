"""What one value of an address register reaches, kept so that the next access need not look again.

Compiled code uses one register for many accesses, each with an offset of its own: an unrolled loop,
or a stack frame. All lanes then move by the same distance, so bounds, alignment and the pattern of
the lanes are found once; an access through a known pattern is one strided copy. The same holds
where a loop adds the same to the address in every lane. No access is let through here that
`memory` would not let through: what is not certain takes the long way, which also finds the words
of a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lesson.emulator.lanes import Mask
from lesson.emulator.memory import Index, Place, Segment
from lesson.emulator.ptx import Addr, Operand, Reg

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder

Values = NDArray[np.generic]
DTYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
MAX_KEPT = 32
MAX_MISSES = 4
MIN_RUN = 4
MAX_DIMENSIONS = 6
WORD_NBYTES = 4


class Spot(NamedTuple):
    """An address operand: the slot of its register, the offset that it adds, the key in
    `Machine.reaches`.
    """

    slot: int
    offset: int
    key: tuple[str, int]


def spot_of(b: FunctionBuilder, operand: Operand, space: str) -> Spot | None:
    """The spot of an operand `[register + offset]`; None for other operands."""
    if not isinstance(operand, Addr) or not isinstance(operand.base, Reg):
        return None
    if operand.base.name not in b.function.registers:
        return None
    slot = b.register(operand.base)
    return Spot(slot, operand.offset, (space, slot))


class Reach:
    """Lanes `act` at the addresses `base`, which lie in one allocation, or each in its own block's
    or thread's memory. `at` is the byte index of the access at hand for `first`, a lane's own.
    """

    __slots__ = (
        "act",
        "at",
        "base",
        "bits",
        "buffer",
        "first",
        "gap",
        "index",
        "is_ready",
        "is_writable",
        "limit",
        "low",
        "misses",
        "moved",
        "offset",
        "segment",
        "shape",
        "shifted",
        "space",
        "strides",
        "where",
    )

    def __init__(self, base: Values, act: Mask, place: Place, offset: int) -> None:
        self.base, self.act, self.buffer = base, act, place.buffer
        self.index: Index = place.index
        self.space = place.space
        self.offset = offset
        self.moved = self.misses = 0
        self.is_ready = False
        self.segment: Segment | None = None

    def prepare(self, m: Machine) -> bool:
        """Bounds, alignment and pattern of the lanes; False where there are none for all."""
        index = self.index
        low, high = int(index.min()), int(index.max())
        if self.buffer is m.memory.buffer:
            segment = m.memory.segment_of(low)
            if segment is None or high >= segment.start + segment.nbytes:
                return False
            self.segment = segment
            room, self.is_writable = segment.start + segment.nbytes, segment.is_writable
            self.low, self.limit = segment.start - low, room - high
        else:
            is_shared = self.buffer is m.shared
            room = m.shared_nbytes if is_shared else m.local_stride
            if is_shared and m.cluster_nblocks > 1:
                own = index % m.shared_stride
            else:
                own = index - m.of(m.shared_base if is_shared else m.local_row, self.act)
            self.low, self.limit = -int(own.min()), room - int(own.max())
            self.is_writable = True
        self.bits = int(np.bitwise_or.reduce(index))
        found = strided(index)
        self.first = low
        if found is not None:
            self.first = int(index[0])
            self.shape, self.strides = found
            self.gap = gap_of(*found)
        else:
            self.strides = None
            self.shifted: dict[int, Index] = {}
        self.is_ready = True
        return True

    def follows(self, base: Values) -> bool:
        """Whether all lanes have moved by one distance to the addresses `base`; then goes along."""
        old = self.base
        if base.size != old.size or base.dtype != old.dtype or self.misses > MAX_MISSES:
            return False
        distance = base[0] - old[0]
        if base.size > 1 and not (base - distance == old).all():
            self.misses += 1
            return False
        moved = int(distance)
        self.moved += moved - (1 << 8 * base.itemsize) if moved >> 8 * base.itemsize - 1 else moved
        self.base = base
        return True

    def read(self, size: int, more: int) -> Values:
        """The words `more` bytes behind the access, one a lane."""
        at = self.at + more
        if self.strides is not None:
            return np.ndarray(self.shape, DTYPES[size], self.buffer.u8, at, self.strides).flatten()
        shift = size.bit_length() - 1
        return self.buffer.views[size][at >> shift :].take(self._shifted(shift), mode="clip")

    def write(self, size: int, more: int, values: Values, nbytes: int) -> None:
        """Store words; of lanes on one address the last one wins. `nbytes`: of the access."""
        at = self.at + more
        if self.strides is not None and self.gap >= nbytes:
            target = np.ndarray(self.shape, DTYPES[size], self.buffer.u8, at, self.strides)
            target[...] = values if values.size == 1 else values.reshape(self.shape)
            return
        shift = size.bit_length() - 1
        if self.strides is None:
            self.buffer.views[size][at >> shift :][self._shifted(shift)] = values
        else:
            self.buffer.views[size][(self.index + (at - self.first)) >> shift] = values

    def now(self) -> Index:
        """The byte index of the access at hand, one a lane."""
        moved = self.at - self.first
        return self.index + moved if moved else self.index

    def along(self, words: Values, nbytes: int) -> Values | None:
        """What an array with 4 bytes a word of the memory says of the accessed words, as a view;
        None where the lanes have no pattern. An access of more words adds a dimension.
        """
        if self.strides is None:
            return None
        if nbytes == WORD_NBYTES:
            return np.ndarray(self.shape, words.dtype, words, self.at, self.strides)
        shape = (*self.shape, nbytes // WORD_NBYTES)
        return np.ndarray(shape, words.dtype, words, self.at, (*self.strides, WORD_NBYTES))

    def _shifted(self, shift: int) -> Index:
        found = self.shifted.get(shift)
        if found is None:
            found = self.shifted[shift] = (self.index - self.first) >> shift
        return found


def reached(
    m: Machine, R: list, act: Mask, spot: Spot, nbytes: int, is_write: bool
) -> Reach | None:
    """The known reach of an access, which is then legal; None where the long way must be taken."""
    reach = m.reaches.get(spot.key)
    if reach is None or reach.act is not act:
        return None
    base = R[spot.slot]
    if reach.base is not base and not reach.follows(base):
        return None
    if not reach.is_ready and not reach.prepare(m):
        del m.reaches[spot.key]
        return None
    offset = spot.offset - reach.offset + reach.moved
    if not reach.low <= offset <= reach.limit - nbytes or (reach.bits | offset) & (nbytes - 1):
        return None
    if is_write:
        if not reach.is_writable:
            return None
        if reach.segment is not None:
            reach.segment.is_written = True
    reach.at = reach.first + offset
    return reach


def keep(m: Machine, R: list, act: Mask, spot: Spot, place: Place) -> None:
    """Remember what an access that took the long way has found."""
    if place.index.size != act.n or act.n == 1:
        return
    reaches = m.reaches
    known = reaches.get(spot.key)
    if known is None and len(reaches) >= MAX_KEPT:
        reaches.clear()
    found = reaches[spot.key] = Reach(R[spot.slot], act, place, spot.offset)
    if known is not None and known.act is act:
        found.misses = known.misses


def strided(index: Index) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Shape and strides, outermost first, of which these byte indices are the elements in order."""
    shape: list[int] = []
    strides: list[int] = []
    while index.size > 1:
        steps = index[1:] - index[:-1]
        breaks = (steps != steps[0]).nonzero()[0]
        run = int(breaks[0]) + 1 if breaks.size else index.size
        if index.size % run or (run < MIN_RUN and not shape) or len(shape) == MAX_DIMENSIONS:
            return None
        if breaks.size and ((breaks + 1) % run).any():
            return None
        shape.append(run)
        strides.append(int(steps[0]))
        index = index[::run]
    return tuple(reversed(shape)), tuple(reversed(strides))


def gap_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Bytes between the two nearest elements; 0 where some may share an address."""
    gap, extent = 1 << 62, 0
    for stride, count in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True)):
        gap = min(gap, stride - extent)
        extent += stride * (count - 1)
    return max(gap, 0)
