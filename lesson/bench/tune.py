"""Searches for the fastest tile, threads and hints of the kernels with one tile a block.

Three passes: every shape at 1 GiB; the fastest shapes with every hint; the fastest of those at
4 GiB, in turns, which decides. The choice is by median, among kernels that are right bit for bit.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterable

from lesson.bench import timing
from lesson.bench.contenders import GIB
from lesson.bench.device import Bench
from lesson.bench.measure import Session, side_of
from lesson.bench.variants import Variant, variant

_MOST_UNITS = 16  # of 16 bytes that a thread takes of a tile
_SHAPES = tuple(itertools.product((32, 64, 128, 256), (1, 2, 4, 8, 16, 32, 64)))
_THREADS = (32, 64, 128, 256, 512)
_DECIDED_BY_TIME = ("TMA one tile", "TMA one tile, TMA store", "bulk one tile", "plain 16-byte")


def spaces() -> dict[str, list[Variant]]:
    """The shapes of each kernel that is tuned."""
    out: dict[str, list[Variant]] = {name: [] for name in _DECIDED_BY_TIME}
    for (width, rows), threads, tiles, teams in itertools.product(
        _SHAPES, _THREADS, (1, 2, 4), (0, 1)
    ):
        team = 32 if teams else threads
        units, together = width * rows // 4, tiles * threads // team * width * rows * 4
        if units % team or units // team > _MOST_UNITS or (teams and threads == 32):
            continue
        if not 1024 <= together <= 32768:
            continue
        for flat, store in itertools.product((0, 1) if width == 256 else (0,), (0, 1)):
            name = "TMA one tile, TMA store" if store else "TMA one tile"
            out[name].append(
                variant(
                    "tma_one_tile.cu", WIDTH=width, ROWS=rows, THREADS=threads, FLAT=flat,
                    TEAM=team, TILES=tiles, STORE=store,
                )
            )  # fmt: skip
    for kib, threads, store in itertools.product((1, 2, 4, 8, 16, 32), _THREADS, (0, 1)):
        units = kib * 64
        if units % threads == 0 and units // threads <= _MOST_UNITS:
            v = variant("bulk_one_tile.cu", TILE=kib * 256, THREADS=threads, STORE=store)
            out["bulk one tile"].append(v)
    for threads, unroll in itertools.product((32, *_THREADS[1:], 1024), (1, 2, 4)):
        v = variant("plain_vector.cu", THREADS=threads, UNROLL=unroll, TILE=threads * unroll * 4)
        out["plain 16-byte"].append(v)
    return out


def with_hints(v: Variant) -> Iterable[Variant]:
    """The same shape with every hint that its kernel knows."""
    engine_stores = v.get("STORE", 0)
    for load, store in itertools.product((0, 1), (0, 1) if engine_stores else (0, 1, 2)):
        hinted = v.with_macros(LOAD_HINT=load, STORE_HINT=store)
        if v.file != "tma_one_tile.cu":
            yield hinted
            continue
        most = 2048 // v.threads
        for one_waits, blocks, promo in itertools.product(
            (0, 1), {1, min(32, most)}, ("NONE", "L2_256B")
        ):
            macros = dict(hinted.macros, ONE_WAITS=one_waits, BLOCKS=blocks)
            yield variant(v.file, promo=promo, **macros)


def fastest(bench: Bench, tried: Iterable[Variant], seconds: float, keep: int) -> list[Variant]:
    """The fastest at 1 GiB of those that are right."""
    stop = time.monotonic() + seconds
    width, height = side_of(GIB)
    found: list[tuple[float, int, Variant]] = []
    for number, v in enumerate(tried):
        if time.monotonic() > stop:
            break
        call = bench.bind(v, width, height)
        if bench.wrong(call, width * height) == 0:
            ns = timing.alone(bench.cupy, call, 6, warm_up=1)
            found.append((statistics.median(ns), number, v))
    return [v for _, _, v in sorted(found)[:keep]]


def _narrowed(
    bench: Bench, tried: dict[str, list[Variant]], seconds: float, keep: int
) -> dict[str, list[Variant]]:
    """The fastest of each kernel; the time is shared by the number of variants."""
    each_s = seconds / sum(map(len, tried.values()))
    return {name: fastest(bench, vs, each_s * len(vs), keep) for name, vs in tried.items()}


def tune(session: Session, seconds: float = 60) -> dict[str, Variant]:
    """The committed choice of `contenders` with the kernels of one tile a block chosen anew."""
    bench, wide = session.bench, spaces()
    bench.builder.build(v for each in wide.values() for v in each)
    tops = _narrowed(bench, wide, seconds * 0.3, 10)
    hinted = {name: [h for v in each for h in with_hints(v)] for name, each in tops.items()}
    bench.builder.build(v for each in hinted.values() for v in each)
    tops = _narrowed(bench, hinted, seconds * 0.4, 8)
    width, height = side_of(4 * GIB)
    names = {(name, v.label): v for name, each in tops.items() for v in each}
    calls = {str(n): bench.bind(v, width, height) for n, v in enumerate(names.values())}
    samples = timing.rounds(bench.cupy, calls, seconds * 0.3)
    chosen = dict(session.copies)
    for name in tops:
        ranked = sorted(
            (statistics.median(samples[str(n)]), n)
            for n, (family, _) in enumerate(names)
            if family == name and samples[str(n)]
        )
        for ns, n in ranked[:3]:
            label = list(names)[n][1]
            session.say(f"  {8 * GIB / ns:.0f} GB/s {name}: {label}")
        if ranked:
            chosen[name] = list(names.values())[ranked[0][1]]
    return chosen
