"""Sets of lanes, and how a result of some lanes joins the register that all lanes share.

A register is an array of raw bits, one a lane, or of one element where all lanes hold the same.
Arrays are never changed once bound, so binding one register to another's array is a copy for free.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]
Values = NDArray[np.generic]


class Mask:
    """Some lanes of a batch: `bits` one bool a lane, `idx` their numbers in order, `n` how many."""

    __slots__ = ("_idx", "bits", "n")

    def __init__(
        self, bits: Bits, n: int | None = None, idx: NDArray[np.int64] | None = None
    ) -> None:
        self.bits = bits
        self.n = int(np.count_nonzero(bits)) if n is None else n
        self._idx = idx

    @property
    def idx(self) -> NDArray[np.int64]:
        if self._idx is None:
            self._idx = self.bits.nonzero()[0]
        return self._idx

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.bits | other.bits)

    def __sub__(self, other: Mask) -> Mask:
        return Mask(self.bits > other.bits)

    def of(self, values: Values) -> Values:
        """The values of these lanes; a uniform value stays one element."""
        return values if values.size == 1 else values[self.idx]


UNDEFINED = {np.dtype(t): np.zeros(1, t) for t in (np.bool_, np.uint16, np.uint32, np.uint64)}
"""What a register holds that nothing has written: its very identity says so."""

EMPTY = Mask(np.zeros(1, np.bool_), 0)


def mask_of(idx: NDArray[np.int64], nlanes: int) -> Mask:
    """The mask of some lane numbers, given in order."""
    bits = np.zeros(nlanes, np.bool_)
    bits[idx] = True
    return Mask(bits, idx.size, idx)


def merged(old: Values, new: Values, mask: Mask) -> Values:
    """`new` in the lanes of the mask, `old` elsewhere; both full width or uniform.

    Where nothing was written before, the other lanes may hold anything: `new` will do, and a
    uniform value stays uniform.
    """
    if old is UNDEFINED[new.dtype]:
        return new
    bits = mask.bits
    if mask.n * 8 > bits.size:
        return np.where(bits, new, old)
    result = old.copy() if old.size == bits.size else np.full(bits.size, old[0])
    result[mask.idx] = new if new.size == 1 else new[mask.idx]
    return result


def scattered(old: Values, values: Values, mask: Mask) -> Values:
    """Like `merged`, but `values` holds only the lanes of the mask."""
    if values.size == 1:
        return merged(old, values, mask)
    size = mask.bits.size
    if old is UNDEFINED[values.dtype]:
        result = np.empty(size, values.dtype)
    else:
        result = old.copy() if old.size == size else np.full(size, old[0])
    result[mask.bits if mask.n * 8 > size else mask.idx] = values
    return result
