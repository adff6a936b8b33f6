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

_ASSOCIATIVE = frozenset({"add", "min", "max", "and", "or", "xor"})
_INTEGERS = frozenset({"u32", "s32", "b32", "u64", "s64", "b64"})
_FLOATS = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
_MANY_LANES = 32  # on one word: from here on a running sum beats one round a lane


@dataclass(frozen=True)
class _Queue:
    """Lanes sorted by the word that they want, then in lane order; `rank`: their place there."""

    index: Index
    b: Words
    c: Words
    rank: Index

    @property
    def starts(self) -> Index:
        return (self.rank == 0).nonzero()[0]


def apply(
    memory: Words,
    index: Index,
    op: str,
    kind: str,
    b: Words,
    c: Words | None = None,
    *,
    flush: bool = False,
) -> Words:
    """Update `memory[index]` by `op.kind` and operands of shape (n,) or (1,); the old values, (n,).

    `b` is the operand (for cas what is compared with), `c` what cas stores. Raises UnsupportedPtx
    for an operation that the type does not have.
    """
    update = _update(op, kind, flush)
    b = np.broadcast_to(b, index.shape)
    c = b if c is None else np.broadcast_to(c, index.shape)
    if (index[1:] > index[:-1]).all():
        old = memory[index]
        memory[index] = update(old, b, c)
        return old
    order = np.argsort(index, kind="stable")
    index = index[order]
    is_first = np.append(True, index[1:] != index[:-1])
    place = np.arange(index.size)
    rank = place - np.maximum.accumulate(np.where(is_first, place, 0))
    queue = _Queue(index, b[order], c[order], rank)
    in_lane_order = np.empty_like(memory, shape=index.shape)
    in_lane_order[order] = _contended(memory, queue, op, kind, update, flush)
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
    if op in _ASSOCIATIVE and kind in _INTEGERS:
        return _store_all(memory, queue, _running(memory, queue, update))
    if op == "add" and kind in _FLOATS and queue.rank.max() >= _MANY_LANES:
        sums = _running_sums(memory, queue, _FLOATS[kind], flush)
        if sums is not None:
            return _store_all(memory, queue, sums)
    return _take_turns(memory, queue, update)


@functools.cache
def _update(op: str, kind: str, flush: bool) -> Update:
    """The new word, given the old one and the operands; arithmetic is the ALU's."""
    other = {"inc": _increment, "dec": _decrement, "exch": _exchange, "cas": _compare_and_swap}
    if op in other:
        return other[op]
    instruction = alu.find(op, ("ftz", kind) if flush else (kind,), 2)
    if op not in _ASSOCIATIVE or instruction is None:
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
    starts = queue.starts
    old[starts] = memory[queue.index[starts]]
    memory[queue.index] = new
    return old


def _running(memory: Words, queue: _Queue, update: Update) -> Words:
    """Running results of an associative operation, in as many steps as the longest run has bits."""
    new = queue.b.copy()
    starts = queue.starts
    new[starts] = update(memory[queue.index[starts]], new[starts], new[starts])
    reach, longest = 1, int(queue.rank.max())
    while reach <= longest:
        far = (queue.rank >= reach).nonzero()[0]
        new[far] = update(new[far - reach], new[far], new[far])
        reach *= 2
    return new


def _running_sums(memory: Words, queue: _Queue, dtype: np.dtype, flush: bool) -> Words | None:
    """Running float sums, each rounded as numpy does; None where a flush or a NaN would differ."""
    sums = np.empty_like(queue.b)
    stops = np.append(queue.starts[1:], queue.index.size)
    for start, stop in zip(queue.starts, stops, strict=True):
        terms = np.concatenate((memory[queue.index[start : start + 1]], queue.b[start:stop]))
        terms = terms.view(dtype)
        totals = np.add.accumulate(terms)
        if np.isnan(totals).any():
            return None
        if flush and any(_has_subnormal(values) for values in (terms, totals)):
            return None
        sums[start:stop] = totals[1:].view(sums.dtype)
    return sums


def _has_subnormal(values: NDArray[np.floating]) -> bool:
    return bool(((abs(values) < np.finfo(values.dtype).tiny) & (values != 0)).any())


def _take_turns(memory: Words, queue: _Queue, update: Update) -> Words:
    """One round for each lane of the most wanted word; in a round no two lanes share a word."""
    old = np.empty_like(queue.b)
    by_rank = np.argsort(queue.rank, kind="stable")
    stops = np.cumsum(np.bincount(queue.rank))
    for start, stop in zip([0, *stops[:-1]], stops, strict=True):
        turn = by_rank[start:stop]
        at = queue.index[turn]
        old[turn] = memory[at]
        memory[at] = update(old[turn], queue.b[turn], queue.c[turn])
    return old
