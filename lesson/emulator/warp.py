"""What the lanes of a warp tell each other: shfl, vote, match, redux, elect, activemask.

Models PTX ISA, "Data Movement Instructions: shfl.sync" and "Parallel Synchronization and
Communication Instructions: vote.sync, match.sync, activemask, redux.sync (integers), elect.sync",
as pure functions. Values are (warps, 32) arrays; who takes part is a bool array `members` of shape
(warps, 1, 32) where all lanes of a warp name the same member mask, else (warps, 32, 32): what lane
i of warp w may hear from lane j. Waiting for the lanes of a member mask is the scheduler's
business, and so is refusing an executing lane that its own mask leaves out.

A lane that reads from one that does not take part gets an undefined value on the chip; here it gets
whatever that lane's register holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LANES = 32
_LANE = np.arange(LANES, dtype=np.int64)

Bits = NDArray[np.uint32]
Bools = NDArray[np.bool_]


def members_of(active: Bools, mask: Bits) -> Bools:
    """Who takes part: executing lanes (warps, 32) that the mask, (1, 1) or (warps, 32), names.

    The mask of a lane that does not execute says nothing: a warp whose executing lanes agree gets
    one row.
    """
    if mask.size == 1:
        named = to_lanes(mask.reshape(1, 1))
        return (active & named[:, 0])[:, None, :]
    first = active.argmax(axis=1)
    leader = np.take_along_axis(mask, first[:, None], axis=1)
    if ((mask == leader) | ~active).all():
        return active[:, None, :] & to_lanes(leader)
    return active[:, None, :] & to_lanes(mask)


def to_lanes(mask: Bits) -> Bools:
    """Bits of masks as bools along a new last axis of 32 lanes."""
    octets = np.ascontiguousarray(mask, "<u4")[..., None].view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little").view(np.bool_)


def to_mask(lanes: Bools) -> Bits:
    """The last axis of 32 bools as masks: lane 0 is bit 0."""
    octets = np.packbits(lanes, axis=-1, bitorder="little")
    return np.ascontiguousarray(octets).view("<u4")[..., 0]


def shfl(mode: str, a: NDArray[np.generic], b: Bits, c: Bits) -> tuple[NDArray[np.generic], Bools]:
    """`shfl.sync.mode` of (warps, 32) values: what each lane reads, and whether its source exists.

    `b` and `c` may have any shape that broadcasts to that of `a`.
    """
    offset = (b & 31).astype(np.int64)
    segment = (c >> 8 & 31).astype(np.int64)
    low = _LANE & segment
    bound = low | (c & 31).astype(np.int64) & ~segment
    if mode == "up":
        source = _LANE - offset
        exists = source >= bound
    else:
        if mode == "down":
            source = _LANE + offset
        elif mode == "bfly":
            source = _LANE ^ offset
        else:
            source = low | offset & ~segment
        exists = source <= bound
    source = np.where(exists, source, _LANE)
    if source.shape[0] == 1:
        read = a.take(source[0], axis=1)
    else:
        read = a.reshape(-1)[np.arange(0, a.size, LANES)[:, None] + source]
    return read, np.broadcast_to(exists, a.shape)


def ballot(predicate: Bools, members: Bools) -> Bits:
    """`vote.sync.ballot`, (warps, 1) or (warps, 32)."""
    return to_mask(predicate[:, None, :] & members)


def vote(mode: str, predicate: Bools, members: Bools) -> Bools:
    """`vote.sync.{all, any, uni}`, (warps, 1) or (warps, 32)."""
    some = (predicate[:, None, :] & members).any(axis=2)
    if mode == "any":
        return some
    every = (predicate[:, None, :] | ~members).all(axis=2)
    return every if mode == "all" else every | ~some


def match_any(a: NDArray[np.generic], members: Bools) -> Bits:
    """`match.any.sync`: each lane's mask of the lanes that hold the same value, (warps, 32)."""
    return to_mask((a[:, :, None] == a[:, None, :]) & members)


def match_all(a: NDArray[np.generic], members: Bools) -> tuple[Bits, Bools]:
    """`match.all.sync`: the members where all hold one value, else 0; and whether they do."""
    first = members.argmax(axis=2)
    value = np.take_along_axis(a, first, axis=1)
    alike = ((a[:, None, :] == value[:, :, None]) | ~members).all(axis=2)
    return np.where(alike, to_mask(members), np.uint32(0)), alike


def elect(members: Bools) -> tuple[Bits, Bools]:
    """`elect.sync`: the elected lane, on an H200 the first of the members; true for that lane."""
    leader = members.argmax(axis=2)
    return leader.astype(np.uint32), leader == _LANE


_REDUX = {
    "add": (np.add, 0, 0),
    "min": (np.minimum, 2**32 - 1, 2**31 - 1),
    "max": (np.maximum, 0, -(2**31)),
    "and": (np.bitwise_and, 2**32 - 1, -1),
    "or": (np.bitwise_or, 0, 0),
    "xor": (np.bitwise_xor, 0, 0),
}
REDUX_FORMS = {(op, kind) for op in ("add", "min", "max") for kind in ("u32", "s32")} | {
    (op, "b32") for op in ("and", "or", "xor")
}


def redux(op: str, kind: str, a: Bits, members: Bools) -> Bits:
    """`redux.sync.op.kind` for the integer kinds u32, s32 and b32, (warps, 1) or (warps, 32)."""
    combine, unsigned_absent, signed_absent = _REDUX[op]
    signed = kind == "s32"
    values = a.view(np.int32) if signed else a
    absent = values.dtype.type(signed_absent if signed else unsigned_absent)
    heard = np.where(members, values[:, None, :], absent)
    return combine.reduce(heard, axis=2, dtype=values.dtype).view(np.uint32)
