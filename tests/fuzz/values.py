"""Values that no launch and no tensor map should be given, and many that they may."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np

from lesson.tensor_map import DType, TensorMap

INTS = (
    *[0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 100, 128, 256, 257, 1024, 1025, 65535, 65536],
    *[2**31 - 1, 2**31, 2**32, 2**40, 2**63, 2**64, 10**30, -1, -2, -128, -(2**31), -(2**63)],
)
ODDITIES = (
    *[None, True, 1.5, math.nan, math.inf, -0.0, "", "k", "1", b"", b"\0" * 8, 1j, Ellipsis],
    *[(), [], {}, {"x": 1}, (1, 2, 3, 4), [1, "2"], ((1, 2), 3), [[]], set(), range(3), object],
    *[np.int32(3), np.uint64(2**63), np.float32(2.0), np.array(3), np.array([]), np.array([1, 2])],
    *[np.datetime64("2026-01-01"), slice(1, 2)],
)
NAMES = {
    "dtype": [each.value for each in DType],
    "interleave": ["NONE", "16B", "32B"],
    "swizzle": ["NONE", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_64B"],
    "l2_promotion": ["NONE", "L2_64B", "L2_128B", "L2_256B"],
    "oob_fill": ["NONE", "NAN_REQUEST_ZERO_FMA"],
}
DTYPES = ("u1", "i2", "u4", "f4", "f8", "u8", "c16", "?", ">u4", "S3", "U2", "O", "M8[s]", "f2")


def number(random: Random) -> Any:
    """A whole number, mostly a small one; now and then something else."""
    roll = random.random()
    if roll < 0.6:
        return random.choice((1, 1, 2, 4, 8, 16, 32, 64))
    return random.choice(INTS) if roll < 0.9 else random.choice(ODDITIES)


def extent(random: Random) -> Any:
    """What might be a grid, a block or a cluster."""
    roll = random.random()
    if roll < 0.4:
        return random.choice((1, 2, 32, 64))
    if roll < 0.8:
        return tuple(number(random) for _ in range(random.choice((1, 2, 3, 3, 4))))
    return number(random)


def array(random: Random) -> Any:
    """A numpy array, some of them views, empty, read-only or of types that no kernel has."""
    dtype = np.dtype(random.choice(DTYPES))
    shape = tuple(
        random.choice((0, 1, 2, 3, 8, 16, 64)) for _ in range(random.choice((0, 1, 1, 2, 3)))
    )
    made = np.zeros(shape, dtype)
    roll = random.random()
    if roll < 0.15 and made.ndim:
        return made[:: random.choice((2, -1))]
    if roll < 0.25:
        return made.T
    if roll < 0.35:
        made.flags.writeable = False
    if roll < 0.4:
        return np.frombuffer(b"0123456789abcdef", np.uint8)
    if roll < 0.45 and made.ndim:
        return np.broadcast_to(made, (3, *made.shape))
    return made


def entries(random: Random, rank: int) -> Any:
    """What might be the dimensions, strides or box of a map."""
    if random.random() < 0.05:
        return random.choice(ODDITIES)
    count = rank if random.random() < 0.9 else random.randrange(7)
    return tuple(number(random) for _ in range(count))


def enumerator(random: Random, field: str) -> Any:
    """A name of the driver's, or none."""
    if random.random() < 0.9:
        return random.choice(NAMES[field])
    return random.choice((*ODDITIES, "none", "FLOAT", "swizzle"))


def tensor_map_fields(random: Random) -> dict[str, Any]:
    """The fields of a map, most of which may be right."""
    rank = random.choice((1, 2, 2, 2, 3, 4, 5))
    fields: dict[str, Any] = {
        "dtype": enumerator(random, "dtype"),
        "dims": entries(random, rank),
        "strides_bytes": entries(random, rank - 1),
        "box": entries(random, rank),
    }
    if random.random() < 0.4:
        fields["element_strides"] = entries(random, rank)
    for field in ("interleave", "swizzle", "l2_promotion", "oob_fill"):
        if random.random() < 0.3:
            fields[field] = enumerator(random, field)
    if random.random() < 0.9:
        fields["base"] = (
            array(random) if random.random() < 0.8 else random.choice((*INTS, *ODDITIES))
        )
    if random.random() < 0.2:
        fields["base_offset_bytes"] = number(random)
    if random.random() < 0.1:
        fields["given_rank"] = number(random)
    return fields


def likely_map_fields(random: Random) -> dict[str, Any]:
    """A legal map of a 16 x 16 matrix with one or two fields changed, so that copies do start."""
    fields: dict[str, Any] = {
        "dtype": "UINT32", "dims": (16, 16), "strides_bytes": (64,), "box": (8, 4),
        "base": np.arange(256, dtype=np.uint32).reshape(16, 16),
    }  # fmt: skip
    other = tensor_map_fields(random)
    for field in random.sample(sorted(other), random.choice((0, 1, 1, 2))):
        fields[field] = other[field]
    if random.random() < 0.3:
        fields["box"] = (random.choice((4, 8, 16, 64, 256)), random.choice((1, 2, 16, 256)))
    return fields


def argument(random: Random) -> Any:
    """Something to pass to a kernel."""
    roll = random.random()
    if roll < 0.4:
        return array(random)
    if roll < 0.7:
        return number(random)
    if roll < 0.8:
        return TensorMap(**likely_map_fields(random))
    if roll < 0.9:
        return bytes(random.choice((0, 1, 4, 8, 64, 128, 129)))
    return random.choice(ODDITIES)
