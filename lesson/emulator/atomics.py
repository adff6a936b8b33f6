"""Read-modify-write of memory by many lanes at once: the arithmetic of `atom` and `red`.

Models PTX ISA, "Parallel Synchronization and Communication Instructions: atom, red": add, min, max,
inc, dec, and, or, xor, exch and cas over every scalar and packed type, on words of 16, 32 or 64
bits. Lanes that name one word act one after another in lane order, which is one of the orders that
the chip may choose. Addresses, scopes and memory order are not its business, and neither are the
128-bit forms. Callers hold `np.errstate(all="ignore")`.

As recorded on an H200, `add.f32` on global memory flushes subnormal operands and results to the
zero of their sign, and on shared memory it does not; the caller says which by `flush`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesson.emulator import alu
from lesson.errors import UnsupportedPtx

Words = NDArray[np.unsignedinteger]
Index = NDArray[np.int64]
Update = Callable[[Words, Words, Words], Words]

_INTEGERS = {"u32": "u4", "s32": "i4", "b32": "u4", "u64": "u8", "s64": "i8", "b64": "u8"}
_FLOATS = {"f32": "f4", "f64": "f8"}
_UFUNCS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_SCALAR: dict[str, Callable[[int, int, int], int]] = {
    "inc": lambda old, b, _: 0 if old >= b else old + 1,
    "dec": lambda old, b, _: b if old == 0 or old > b else old - 1,
    "cas": lambda old, b, c: c if old == b else old,
}
_MANY_LANES = 16  # on one word: from here on other ways than a round a lane are quicker


@dataclass(frozen=True)
class _Queue:
    """Lanes sorted by the word that they want, then in lane order, in runs of one word."""

    index: Index
    b: Words
    c: Words
    starts: Index
    stops: Index

    @property
    def words(self) -> Index:
        """The words that are wanted, each once."""
        return self.index[self.starts]

    @property
    def longest(self) -> int:
        """How many lanes want the most wanted word."""
        return int((self.stops - self.starts).max())


def apply(
    memory: Words,
    index: Index,
    op: str,
    kind: str,
    b: Words,
    c: Words | None = None,
    *,
    flush: bool = False,
    wants_old: bool = True,
) -> Words:
    """Update `memory[index]` by `op.kind` and operands of shape (n,) or (1,); the old values, (n,).

    `b` is the operand (for cas what is compared with), `c` what cas stores. Raises UnsupportedPtx
    for an operation that the type does not have. Unless `wants_old`, the result may be anything.
    """
    update = _update(op, kind, flush)
    if (index[1:] > index[:-1]).all():
        old = memory[index]
        memory[index] = update(old, b, b if c is None else c)
        return old
    if not wants_old and op in _UFUNCS and kind in _INTEGERS:
        _UFUNCS[op].at(memory.view(_INTEGERS[kind]), index, b.view(_INTEGERS[kind]))
        return b
    b = np.broadcast_to(b, index.shape)
    c = b if c is None else np.broadcast_to(c, index.shape)
    order = None
    if (index[1:] < index[:-1]).any():
        order = np.argsort(index, kind="stable")
        index, b, c = index[order], b[order], c[order]
    starts = np.append(True, index[1:] != index[:-1]).nonzero()[0]
    queue = _Queue(index, b, c, starts, np.append(starts[1:], index.size))
    old = _contended(memory, queue, op, kind, update, flush)
    if order is None:
        return old
    in_lane_order = np.empty_like(old)
    in_lane_order[order] = old
    return in_lane_order


def check(op: str, kind: str) -> None:
    """Raise UnsupportedPtx for an operation that the type does not have."""
    _update(op, kind, False)


def _contended(
    memory: Words, queue: _Queue, op: str, kind: str, update: Update, flush: bool
) -> Words:
    """The old values where lanes share words, by the quickest way that keeps the order."""
    if op == "exch":
        return _store_all(memory, queue, queue.b)
    if op == "add" and kind in _INTEGERS:
        return _store_all(memory, queue, _running_integers(memory, queue))
    if queue.longest >= _MANY_LANES and queue.longest >= queue.starts.size // 4:
        if op in _SCALAR:
            return _one_by_one(memory, queue, _SCALAR[op])
        dtype = _INTEGERS.get(kind) or (_FLOATS.get(kind) if op == "add" else None)
        new = None if dtype is None else _running(memory, queue, _UFUNCS[op], dtype, flush)
        if new is not None:
            return _store_all(memory, queue, new)
    return _take_turns(memory, queue, update)


@functools.cache
def _update(op: str, kind: str, flush: bool) -> Update:
    """The new word, given the old one and the operands; arithmetic is the ALU's."""
    other = {"inc": _increment, "dec": _decrement, "exch": _exchange, "cas": _compare_and_swap}
    if op in other:
        return other[op]
    instruction = alu.find(op, ("ftz", kind) if flush else (kind,), 2)
    if op not in _UFUNCS or instruction is None:
        raise UnsupportedPtx(f"an atomic operation must be one that is modelled, got {op}.{kind}.")
    return lambda old, b, _: instruction.fn(old, b)


def _increment(old: Words, bound: Words, _: Words) -> Words:
    return np.where(old >= bound, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Words, bound: Words, _: Words) -> Words:
    return np.where((old == 0) | (old > bound), bound, old - old.dtype.type(1))


def _exchange(old: Words, b: Words, _: Words) -> Words:
    return b


def _compare_and_swap(old: Words, b: Words, c: Words) -> Words:
    return np.where(old == b, c, old)


def _store_all(memory: Words, queue: _Queue, new: Words) -> Words:
    """Store what each lane leaves behind: the next lane of its word finds it, the last stays."""
    old = np.empty_like(new)
    old[1:] = new[:-1]
    old[queue.starts] = memory[queue.words]
    memory[queue.words] = new[queue.stops - 1]
    return old


def _running_integers(memory: Words, queue: _Queue) -> Words:
    """Running integer sums of each word: one sum over all lanes, less what came before."""
    total = np.cumsum(queue.b, dtype=queue.b.dtype)
    before = total[queue.starts] - queue.b[queue.starts]
    return total + np.repeat(memory[queue.words] - before, queue.stops - queue.starts)


def _running(
    memory: Words, queue: _Queue, ufunc: np.ufunc, dtype: str, flush: bool
) -> Words | None:
    """Running results of each word, by numpy; None where a NaN or a flush would differ."""
    new = np.empty_like(queue.b)
    for start, stop in zip(queue.starts, queue.stops, strict=True):
        terms = np.concatenate((memory[queue.index[start : start + 1]], queue.b[start:stop]))
        results = ufunc.accumulate(terms.view(dtype))
        if dtype in _FLOATS.values() and not _is_plain(terms.view(dtype), results, flush):
            return None
        new[start:stop] = results[1:].view(new.dtype)
    return new


def _is_plain(terms: NDArray[np.floating], sums: NDArray[np.floating], flush: bool) -> bool:
    """Whether numpy's additions are the chip's: NaNs have other bits, subnormals may be flushed."""
    if np.isnan(sums).any():
        return False
    both = abs(np.concatenate((terms, sums)))
    return not (flush and ((both < np.finfo(both.dtype).tiny) & (both != 0)).any())


def _one_by_one(memory: Words, queue: _Queue, update: Callable[[int, int, int], int]) -> Words:
    """Lane after lane, for operations that no running result can express."""
    old = []
    b, c = queue.b.tolist(), queue.c.tolist()
    for at, start, stop in zip(queue.words, queue.starts, queue.stops, strict=True):
        value = int(memory[at])
        for lane in range(start, stop):
            old.append(value)
            value = update(value, b[lane], c[lane])
        memory[at] = value
    return np.array(old, memory.dtype)


def _take_turns(memory: Words, queue: _Queue, update: Update) -> Words:
    """One round for each lane of the most wanted word; in a round no two lanes share a word."""
    old = np.empty_like(queue.b)
    turn, stops = queue.starts, queue.stops
    while turn.size:
        at = queue.index[turn]
        old[turn] = memory[at]
        memory[at] = update(old[turn], queue.b[turn], queue.c[turn])
        more = turn + 1 < stops
        turn, stops = turn[more] + 1, stops[more]
    return old
