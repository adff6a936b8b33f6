"""Which kernels are compared, and by what name: the choice that a search on an H200 left.

`tune` searches again. The sweeps over threads and blocks, and the edge cases, are listed here too.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from lesson.bench.variants import Variant, variant

MIB = 1 << 20
GIB = 1 << 30
SHARED_BYTES_PER_SM = 227 * 1024


# Each does out = in + 1. The order is that of the tables.
COPIES: dict[str, Variant] = {
    "plain 4-byte": variant("plain_scalar.cu", THREADS=128, TILE=512, UNROLL=4),
    "plain 16-byte": variant(
        "plain_vector.cu", LOAD_HINT=1, STORE_HINT=1, THREADS=128, TILE=512, UNROLL=1
    ),
    "cp.async": variant("cp_async.cu", per_sm=4, STAGES=3, THREADS=256, TILE=1024),
    "TMA one tile": variant(
        "tma_one_tile.cu",
        BLOCKS=1,
        FLAT=0,
        LOAD_HINT=1,
        ONE_WAITS=0,
        ROWS=1,
        STORE=0,
        STORE_HINT=2,
        TEAM=32,
        THREADS=128,
        TILES=1,
        WIDTH=128,
    ),
    "lesson's tile": variant("tma_one_tile.cu", ROWS=64, THREADS=256, WIDTH=64),
    "TMA one tile, TMA store": variant(
        "tma_one_tile.cu",
        BLOCKS=4,
        FLAT=0,
        LOAD_HINT=1,
        ONE_WAITS=0,
        ROWS=8,
        STORE=1,
        STORE_HINT=1,
        TEAM=512,
        THREADS=512,
        TILES=2,
        WIDTH=256,
    ),
    "bulk one tile": variant(
        "bulk_one_tile.cu", LOAD_HINT=1, STORE=1, STORE_HINT=1, THREADS=64, TILE=512
    ),
    "TMA ring": variant("tma_ring.cu", chunk=4, ROWS=2, STAGES=3, THREADS=128),
    "TMA ring, TMA store": variant(
        "tma_ring_store.cu", chunk=4, LAG=0, ROWS=2, STAGES=3, THREADS=128
    ),
    "TMA ring, TMA store, persistent": variant(
        "tma_ring_store.cu", per_sm=16, LAG=1, ROWS=4, STAGES=3, THREADS=128
    ),
}

TRANSPOSES: dict[str, Variant] = {
    "padded": variant("transpose_padded.cu", TILE=64, THREADS=256),
    "padded, tile of 32": variant("transpose_padded.cu", TILE=32, THREADS=256),
    "TMA, swizzle": variant(
        "transpose_tma.cu", promo="L2_256B", TILE=64, THREADS=256, SWIZZLE=1, DIAGONAL=1, RASTER=1
    ),
    "TMA, swizzle, lanes along a row": variant(
        "transpose_tma.cu", promo="L2_256B", TILE=64, THREADS=256, SWIZZLE=1, DIAGONAL=0, RASTER=1
    ),
    "TMA, lanes along a diagonal": variant(
        "transpose_tma.cu", promo="L2_256B", TILE=64, THREADS=256, SWIZZLE=0, DIAGONAL=1, RASTER=1
    ),
    "TMA, neither": variant(
        "transpose_tma.cu", promo="L2_256B", TILE=64, THREADS=256, SWIZZLE=0, DIAGONAL=0, RASTER=1
    ),
}

THREADS = (32, 64, 128, 256, 512, 1024)
BLOCKS = (1, 2, 4, 8, 16, 32)
SWEEPS = ("plain 4-byte", "plain 16-byte", "cp.async", "TMA ring", "TMA ring, TMA store")


def sweep(name: str) -> list[Variant]:
    """A persistent kernel at every number of threads a block and blocks a multiprocessor.

    Several settings of each point, for the best to be taken: what a point says is what that many
    threads can do, not what one setting of them does.
    """
    out: list[Variant] = []
    for threads, per_sm in itertools.product(THREADS, BLOCKS):
        if threads * per_sm <= 2048:
            out += _SETTINGS[name](threads, per_sm)
    return out


def _plain(file: str, floats: int, threads: int, per_sm: int) -> list[Variant]:
    return [
        variant(file, per_sm=per_sm, THREADS=threads, UNROLL=u, TILE=threads * u * floats)
        for u in (1, 4, 8, 16)
        if u * floats * threads * per_sm
        <= 65536  # floats that fit into a multiprocessor's registers
    ]


def _rooms(per_sm: int, threads: int) -> list[tuple[int, int]]:
    """(rows of 1 KiB in a stage, stages) that fill a quarter to all of shared memory."""
    found = []
    for rows, stages in itertools.product((2, 4, 8, 16), (2, 3, 4, 8, 12)):
        room = (rows * stages * 1024 + 128 + 8 * stages + 1024) * per_sm
        if SHARED_BYTES_PER_SM // 4 <= room <= SHARED_BYTES_PER_SM and rows * 64 % threads == 0:
            found.append((rows, stages))
    return found


def _cp_async(threads: int, per_sm: int) -> list[Variant]:
    return [
        variant("cp_async.cu", per_sm=per_sm, THREADS=threads, TILE=rows * 256, STAGES=stages)
        for rows, stages in _rooms(per_sm, threads)
    ]


def _ring(threads: int, per_sm: int) -> list[Variant]:
    return [
        variant("tma_ring.cu", per_sm=per_sm, THREADS=threads, ROWS=rows, STAGES=stages)
        for rows, stages in _rooms(per_sm, threads)
    ]


def _ring_store(threads: int, per_sm: int) -> list[Variant]:
    return [
        variant(
            "tma_ring_store.cu", per_sm=per_sm, THREADS=threads, ROWS=rows, STAGES=stages, LAG=1
        )
        for rows, stages in _rooms(per_sm, threads)
    ]


_SETTINGS = {
    "plain 4-byte": lambda threads, per_sm: _plain("plain_scalar.cu", 1, threads, per_sm),
    "plain 16-byte": lambda threads, per_sm: _plain("plain_vector.cu", 4, threads, per_sm),
    "cp.async": _cp_async,
    "TMA ring": _ring,
    "TMA ring, TMA store": _ring_store,
}


@dataclass(frozen=True)
class Edge:
    """One awkward matrix or tile. `why` is the question that it asks."""

    name: str
    group: str
    width: int
    height: int
    plain: Variant
    tma: Variant | None  # None: the tensor map's rules refuse it


def _pair(width: int, rows: int, threads: int, unit: int = 4) -> tuple[Variant, Variant]:
    return (
        variant("plain_tile.cu", WIDTH=width, ROWS=rows, THREADS=threads, UNIT=unit),
        variant("tma_one_tile.cu", WIDTH=width, ROWS=rows, THREADS=threads),
    )


def edges() -> list[Edge]:
    """Matrices of about 1 GiB, tiles of 16 KiB but where said otherwise."""
    out = []
    for name, width, height in (
        ("16384 wide: whole tiles", 16384, 16384),
        ("16388 wide: rows off by 16 bytes", 16388, 16384),
        ("16416 wide: rows off by 128 bytes", 16416, 16384),
        ("16412 x 16381: ragged both ways", 16412, 16381),
    ):
        out.append(Edge(name, "rows", width, height, *_pair(64, 64, 256)))
    odd = variant("plain_tile.cu", WIDTH=64, ROWS=64, THREADS=256, UNIT=1)
    out.append(Edge("16385 wide: rows off by 4 bytes", "rows", 16385, 16384, odd, None))
    for width in (4, 8, 16, 32, 64, 128, 256):
        rows = min(4096 // width, 256)
        name = f"{width * 4} bytes wide, {rows} rows"
        out.append(
            Edge(name, "width", 16384, 16384, *_pair(width, rows, min(256, width * rows // 4)))
        )
    for width, rows in ((32, 4), (32, 8), (32, 16), (32, 32), (32, 64), (64, 64), (64, 128)):
        name = f"{width * rows * 4 / 1024:g} KiB"
        threads = min(256, width * rows // 4)
        out.append(Edge(name, "bytes", 16384, 16384, *_pair(width, rows, threads)))
    return out
