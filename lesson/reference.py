"""What is right, in numpy: the lesson's output, who should write it, what a tensor copy moves.

Written to be read beside the text of the PTX ISA ("Tensors", tiled mode), element by element, and
to share no code with the emulator: tests hold the two against each other. Slow on purpose, so give
it small boxes. Knows the mode that the emulator copies: tile mode, with and without interleave.

A map is anything with the fields of `TensorMap`; memory is a uint8 array that begins at its base.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

TF32_NAN = 0x7FFFE000


def round_trip(matrix: np.ndarray) -> np.ndarray:
    """What the lesson's kernel should leave in `out`: every element plus one, same type."""
    return matrix + matrix.dtype.type(1)


@dataclass(frozen=True)
class Writers:
    """Who should write each element of a matrix; every array has the matrix's shape.

    `block_x`, `block_y`: the block; `thread`: its thread; `times`: how often, once each.
    """

    block_x: np.ndarray
    block_y: np.ndarray
    thread: np.ndarray
    times: np.ndarray


def writers(
    height: int, width: int, tile_height: int, tile_width: int, threads_per_block: int
) -> Writers:
    """One block a tile; consecutive threads on consecutive columns, row after row, round robin.

    Tiles at the edges may be cut: their blocks write what is inside.
    """
    row, column = np.indices((height, width))
    place_in_tile = row % tile_height * tile_width + column % tile_width
    return Writers(
        block_x=column // tile_width,
        block_y=row // tile_height,
        thread=place_in_tile % threads_per_block,
        times=np.ones((height, width), np.int64),
    )


def load_box(tmap: Any, coords: tuple[int, ...], memory: np.ndarray) -> dict[int, int]:
    """What a load puts into shared memory: byte offset from the destination -> byte.

    The destination lies at a multiple of 1024. Offsets that are missing keep what they held.
    """
    size = tmap.dtype.itemsize
    shared: dict[int, int] = {}
    for number, channel, position in _elements(tmap, coords):
        if all(0 <= p < d for p, d in zip(position, tmap.dims, strict=True)):
            start = _global_offset(tmap, channel, position)
            value = _converted(tmap.dtype.value, bytes(memory[start : start + size].tolist()))
        else:
            value = _outside(tmap)
        offset = _shared_offset(tmap, number)
        for i in range(size):
            shared[swizzled(tmap.swizzle.value, offset + i)] = value[i]
    return shared


def store_box(
    tmap: Any, coords: tuple[int, ...], memory: np.ndarray, shared: np.ndarray
) -> np.ndarray:
    """Global memory after a store; `shared` is a uint8 array from the source, at 0 mod 1024.

    What is cut at the right edge is cut in units of 16 bytes, as an H200 does it.
    """
    after = memory.copy()
    size = tmap.dtype.itemsize
    for number, channel, position in _elements(tmap, coords):
        step = _slice_nbytes(tmap) or size
        unit_start = position[0] * step // 16 * 16
        inside = [0 <= p < d for p, d in zip(position[1:], tmap.dims[1:], strict=True)]
        if all(inside) and position[0] >= 0 and unit_start < tmap.dims[0] * step:
            start = _global_offset(tmap, channel, position)
            offset = _shared_offset(tmap, number)
            for i in range(size):
                after[start + i] = shared[swizzled(tmap.swizzle.value, offset + i)]
    return after


def swizzled(mode: str, offset: int) -> int:
    """Where a byte goes under a swizzle: 16-byte unit numbers XORed with the number of their line.

    32B takes one bit of the 128-byte line's number, 64B two, 128B three.
    """
    lines = {"NONE": 1, "32B": 2, "64B": 4, "128B": 8}[mode]
    line, unit, byte = offset // 128, offset // 16 % 8, offset % 16
    return line * 128 + (unit ^ (line % lines)) * 16 + byte


def to_tf32(word: int) -> int:
    """A float32 pattern rounded to 10 bits of mantissa, to nearest, ties to even."""
    if word & 0x7FFFFFFF > 0x7F800000:
        return TF32_NAN
    kept, dropped = word & ~0x1FFF, word & 0x1FFF
    half = 0x1000
    is_odd = bool(kept & 0x2000)
    if dropped > half or (dropped == half and is_odd):
        kept += 0x2000
    return kept


def _slice_nbytes(tmap: Any) -> int:
    """Bytes of the channels that lie together under interleave; 0 without it."""
    return {"NONE": 0, "16B": 16, "32B": 32}[tmap.interleave.value]


def _elements(tmap: Any, coords: tuple[int, ...]) -> Any:
    """Every element that the box moves, in the order of shared memory.

    Yields its number there, its channel in the slice (0 without interleave), and its position in
    the tensor. Interleaved channels lie in slices, which dimension 0 counts; the last dimension but
    one numbers the slices of a pixel, and a copy moves one of them.
    """
    interleaved = _slice_nbytes(tmap)
    steps = list(tmap.element_strides) if interleaved else [1, *tmap.element_strides[1:]]
    counts = [len(range(0, b, e)) for b, e in zip(tmap.box, steps, strict=True)]
    channels = 1
    if interleaved:
        channels = interleaved // tmap.dtype.itemsize
        counts[-2] = 1
    places = itertools.product(*(range(n) for n in reversed(counts)), range(channels))
    for number, (*outer_first, channel) in enumerate(places):
        place = outer_first[::-1]
        position = [c + p * e for c, p, e in zip(coords, place, steps, strict=True)]
        yield number, channel, position


def _global_offset(tmap: Any, channel: int, position: list[int]) -> int:
    size = tmap.dtype.itemsize
    strides = [_slice_nbytes(tmap) or size, *tmap.strides_bytes]
    return channel * size + sum(p * s for p, s in zip(position, strides, strict=True))


def _shared_offset(tmap: Any, number: int) -> int:
    """Elements lie one after another; under swizzle, without interleave, a row has a whole span."""
    size = tmap.dtype.itemsize
    span = {"NONE": 0, "32B": 32, "64B": 64, "128B": 128}[tmap.swizzle.value]
    if not span or _slice_nbytes(tmap):
        return number * size
    row, place = divmod(number, tmap.box[0])
    return row * span + place * size


def _converted(dtype: str, value: bytes) -> bytes:
    if not dtype.startswith("TFLOAT32"):
        return value
    return to_tf32(int.from_bytes(value, "little")).to_bytes(4, "little")


def _outside(tmap: Any) -> bytes:
    """An element of fill: zeros, or NaN made of the bytes F7 7F."""
    if tmap.oob_fill.value == "NONE":
        return bytes(tmap.dtype.itemsize)
    return (b"\xf7\x7f" * 4)[: tmap.dtype.itemsize]
