"""Measures on the GPU of this machine, section by section, and leaves plain records.

Every kernel is compared bit for bit before it is timed; one that is wrong is reported and not
timed. A section that fails leaves its reason in the place of its numbers.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from lesson.bench import contenders, peers, timing
from lesson.bench.contenders import GIB, MIB
from lesson.bench.device import Bench, Call
from lesson.bench.variants import Variant
from lesson.errors import LessonError

Record = dict[str, Any]
SIZES = tuple(4 * MIB << n for n in range(11))  # 4 MiB to 4 GiB
IN_SIZES = (
    "cudaMemcpy", "torch.add", "CuPy kernel, float4", "cupy.add", "Triton", "plain 16-byte",
    "TMA one tile", "TMA ring, TMA store, persistent",
)  # fmt: skip
_COLD_BYTES = 512 * MIB  # of input that must go by before the same bytes come again: 8 times L2
_MOST_SLOTS = 64


def side_of(nbytes: int) -> tuple[int, int]:
    """(width, height) of a matrix of so many bytes of floats: square, or twice as wide as high."""
    bits = (nbytes // 4).bit_length() - 1
    return 1 << (bits + 1) // 2, 1 << bits // 2


@dataclass
class Session:
    """What the sections share. `copies` may be another choice than the committed one."""

    bench: Bench
    say: Callable[[str], None]
    copies: dict[str, Variant] = field(default_factory=lambda: dict(contenders.COPIES))
    transposes: dict[str, Variant] = field(default_factory=lambda: dict(contenders.TRANSPOSES))
    others: dict[str, peers.Peer] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def calls(self, nbytes: int, start: int = 0) -> dict[str, Call]:
        """Every copy and peer over the first bytes, or over those from element `start` on."""
        width, height = side_of(nbytes)
        stop = start + nbytes // 4
        x, y = self.bench.x[start:stop], self.bench.y[start:stop]
        own = {name: self.bench.bind(v, width, height, start) for name, v in self.copies.items()}
        return {name: make(x, y) for name, make in self.others.items()} | own


def copies(session: Session, nbytes: int = 4 * GIB, seconds: float = 14) -> Record:
    """All contenders at one size, in turns."""
    bench, good, wrong = session.bench, {}, {}
    for name, call in session.calls(nbytes).items():
        plus = 0.0 if name in peers.COPY_ONLY else 1.0
        wrong[name] = bench.wrong(call, nbytes // 4, plus)
        if wrong[name] == 0:
            good[name] = call
    samples = timing.rounds(bench.cupy, good, seconds, most=40)
    ceiling = statistics.median(samples[peers.CEILING])
    for name, ns in sorted(samples.items(), key=lambda item: statistics.median(item[1])):
        session.say(f"  {ceiling / statistics.median(ns):.4f} {name}")
    return {"nbytes": nbytes, "wrong": wrong, "samples_ns": samples}


def sizes(session: Session, replays: int = 15) -> Record:
    """Some contenders from 4 MiB to 4 GiB: over data that L2 has forgotten, and over the same."""
    record: Record = {"cold": {}, "warm": {}, "failed": {}}
    for nbytes in SIZES:
        slots = max(1, min(_MOST_SLOTS, _COLD_BYTES // nbytes))
        by_slot = [session.calls(nbytes, slot * nbytes // 4) for slot in range(slots)]
        for name in IN_SIZES:
            if name not in by_slot[0]:
                continue
            cold = [calls[name] for calls in by_slot]
            series = {"cold": cold}
            if nbytes <= 256 * MIB:
                series["warm"] = [cold[0]] * len(cold)
            for kind, calls in series.items():
                try:
                    ns = timing.graph(session.bench.cupy, calls, replays)
                except RuntimeError as error:  # one that cannot be captured loses its line only
                    record["failed"][f"{name}, {nbytes}, {kind}"] = str(error)[:200]
                    continue
                record[kind].setdefault(name, {})[str(nbytes)] = ns
    return record


def sweep(session: Session, nbytes: int = GIB) -> Record:
    """Bandwidth at every number of threads and blocks, the best setting of each point."""
    bench, record = session.bench, {}
    width, height = side_of(nbytes)
    bench.builder.build(v for name in contenders.SWEEPS for v in contenders.sweep(name))
    for name in contenders.SWEEPS:
        points: dict[tuple[int, int], list[tuple[float, Variant, Call]]] = {}
        bad: list[str] = []
        for v in contenders.sweep(name):
            call = bench.bind(v, width, height)
            if bench.wrong(call, nbytes // 4):
                bad.append(v.label)
                continue
            ns = statistics.median(timing.alone(bench.cupy, call, 4, warm_up=1))
            points.setdefault((v.threads, v.blocks_per_sm), []).append((ns, v, call))
        record[name] = {"wrong": bad, "points": [_best(bench, tried) for tried in points.values()]}
    ceiling = timing.alone(bench.cupy, session.others[peers.CEILING](*_views(bench, nbytes)), 20)
    return {"nbytes": nbytes, "families": record, "ceiling_ns": ceiling}


def _views(bench: Bench, nbytes: int) -> tuple[Any, Any]:
    return bench.x[: nbytes // 4], bench.y[: nbytes // 4]


def _best(bench: Bench, tried: list[tuple[float, Variant, Call]]) -> Record:
    """The best setting, measured anew: the sample that made it the best does not count."""
    _, v, call = min(tried, key=lambda each: each[0])
    return {
        "threads": v.threads,
        "blocks_per_sm": v.blocks_per_sm,
        "variant": v.as_json(),
        "tried": len(tried),
        "samples_ns": timing.alone(bench.cupy, call, 8),
    }


def transposes(session: Session, seconds: float = 5) -> Record:
    """The transposes beside the runtime's copy, at 1 and 4 GiB."""
    bench, record = session.bench, {}
    for nbytes in (GIB, 4 * GIB):
        width, height = side_of(nbytes)
        calls = {peers.CEILING: session.others[peers.CEILING](*_views(bench, nbytes))}
        wrong = {}
        for name, v in session.transposes.items():
            call = bench.bind(v, width, height)
            wrong[name] = bench.wrong_transposed(call, width, height)
            if wrong[name] == 0:
                calls[name] = call
        samples = timing.rounds(bench.cupy, calls, seconds / 2, most=25)
        record[str(nbytes)] = {"wrong": wrong, "samples_ns": samples}
        ceiling = statistics.median(samples[peers.CEILING])
        for name, ns in samples.items():
            session.say(f"  {nbytes // GIB} GiB {ceiling / statistics.median(ns):.4f} {name}")
    return record


def edges(session: Session) -> Record:
    """Awkward matrices and tiles, with plain loads and with TMA. Only useful bytes count."""
    bench, rows = session.bench, []
    every = contenders.edges()
    bench.builder.build(v for e in every for v in (e.plain, e.tma) if v)
    for e in every:
        row: Record = {
            "name": e.name, "group": e.group, "width": e.width, "height": e.height,
            "nbytes": e.width * e.height * 4,
        }  # fmt: skip
        for side, v in (("plain", e.plain), ("tma", e.tma)):
            if v is None:
                continue
            call = bench.bind(v, e.width, e.height)
            wrong = bench.wrong(call, e.width * e.height)
            samples = timing.alone(bench.cupy, call, 15) if wrong == 0 else []
            row[side] = {"variant": v.as_json(), "wrong": wrong, "samples_ns": samples}
        rows.append(row)
    copy = session.others[peers.CEILING](*_views(bench, GIB))
    return {"ceiling_nbytes": GIB, "ceiling_ns": timing.alone(bench.cupy, copy, 20), "rows": rows}


def registers(session: Session) -> Record:
    """Registers and shared memory, as the driver tells them."""
    every = session.copies | session.transposes
    return {
        name: session.bench.registers(v) | {"dynamic_shared_bytes": v.shared_bytes}
        for name, v in every.items()
    }


SECTIONS: dict[str, Callable[[Session], Record]] = {
    "copies": copies,
    "sizes": sizes,
    "sweep": sweep,
    "transposes": transposes,
    "edges": edges,
    "registers": registers,
}


def run(
    session: Session, record: Record, names: Iterable[str], keep: Callable[[Record], None]
) -> None:
    """Adds the sections by name; one that fails leaves its reason and does not stop the others."""
    session.others, session.missing = peers.find()
    session.bench.builder.build((session.copies | session.transposes).values())
    record["missing_peers"] = session.missing
    record["contenders"] = {n: v.as_json() for n, v in session.copies.items()}
    record["transposers"] = {n: v.as_json() for n, v in session.transposes.items()}
    for name in names:
        start = time.monotonic()
        session.say(f"{name} ...")
        try:
            record[name] = SECTIONS[name](session)
        except (LessonError, RuntimeError, ValueError, LookupError, TypeError) as error:
            record[name] = {"failed": f"{type(error).__name__}: {error}"[:500]}
            session.say(f"  failed: {record[name]['failed']}")
        session.say(f"{name}: {time.monotonic() - start:.1f} s")
        keep(record)
