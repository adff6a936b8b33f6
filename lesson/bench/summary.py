"""Numbers out of a record: medians, quartiles, ratios to the runtime's copy in the same run.

Bandwidth counts every byte twice, once read and once written. Ratios are of medians, so that more
than 1 means faster than the ceiling. Nothing is smoothed and no sample is left out.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from lesson.bench.peers import CEILING, COPY_ONLY

Record = dict[str, Any]


@dataclass(frozen=True)
class Spread:
    """Bandwidth in GB/s: median, and the quartiles around it."""

    median: float
    low: float
    high: float
    samples: int


def spread(nbytes: int, samples_ns: list[int]) -> Spread:
    """The bandwidth of launches that read and write nbytes each."""
    low, middle, high = (
        statistics.quantiles(samples_ns, n=4) if len(samples_ns) > 1 else samples_ns * 3
    )
    return Spread(2 * nbytes / middle, 2 * nbytes / high, 2 * nbytes / low, len(samples_ns))


def is_tma(name: str) -> bool:
    """Whether a contender goes through the copy engine."""
    return name.startswith(("TMA", "bulk", "lesson"))


def ranking(section: Record, *, ceiling: str = CEILING) -> list[tuple[str, Spread]]:
    """(name, ratio to the ceiling's median), the fastest first. A Spread of ratios."""
    nbytes, samples = section["nbytes"], section["samples_ns"]
    top = spread(nbytes, samples[ceiling]).median
    rows = []
    for name, ns in samples.items():
        s = spread(nbytes, ns)
        rows.append((name, Spread(s.median / top, s.low / top, s.high / top, s.samples)))
    return sorted(rows, key=lambda row: -row[1].median)


def transposes(record: Record, nbytes: int) -> list[tuple[str, Spread]]:
    """The ranking of the transposes at one size."""
    return ranking(record["transposes"][str(nbytes)] | {"nbytes": nbytes})


def points(record: Record, family: str) -> dict[tuple[int, int], Spread]:
    """(threads a block, blocks a multiprocessor) -> ratio to the ceiling."""
    sweep = record["sweep"]
    top = spread(sweep["nbytes"], sweep["ceiling_ns"]).median
    found = {}
    for point in sweep["families"][family]["points"]:
        s = spread(sweep["nbytes"], point["samples_ns"])
        where = point["threads"], point["blocks_per_sm"]
        found[where] = Spread(s.median / top, s.low / top, s.high / top, s.samples)
    return found


def needed(record: Record, family: str, share: float = 0.9) -> int | None:
    """The fewest threads on a multiprocessor with at least `share` of the ceiling."""
    enough = [t * b for (t, b), s in points(record, family).items() if s.median >= share]
    return min(enough, default=None)


def with_few(record: Record, family: str, threads: int = 32) -> tuple[float, float]:
    """(best with blocks of so many threads, best of all), as ratios to the ceiling."""
    found = points(record, family)
    few = max(s.median for (t, _), s in found.items() if t == threads)
    return few, max(s.median for s in found.values())


def passes(counters: dict[str, float] | None) -> float:
    """How many passes through shared memory an access took on average; 0 if nobody counted."""
    asked, waves = (
        sum((counters or {}).get(f"{what}_{op}.sum", 0.0) for op in ("ld", "st"))
        for what in (
            "smsp__inst_executed_op_shared",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op",
        )
    )
    return waves / asked if asked else 0.0


def conflicts(counters: dict[str, float] | None) -> float:
    """Passes as a multiple of the fewest that these accesses can do with; 0 if nobody counted."""
    waves, extra = (
        sum((counters or {}).get(f"{what}_{op}.sum", 0.0) for op in ("ld", "st"))
        for what in (
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op",
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op",
        )
    )
    return waves / (waves - extra) if waves > extra else 0.0


@dataclass(frozen=True)
class Goal:
    """One goal of the benchmark, with what was measured against it."""

    says: str
    met: bool
    value: str


def goals(record: Record) -> list[Goal]:
    """The goals as ratios in this one run; those whose sections are missing are left out."""
    found: list[Goal] = []
    if "samples_ns" in record.get("copies", {}):
        found += _copy_goals(record)
    if "families" in record.get("sweep", {}):
        rings = [f for f in record["sweep"]["families"] if is_tma(f) and points(record, f)]
        few, best = max((with_few(record, f) for f in rings), default=(0.0, 1.0))
        text = "TMA with 32 threads a block is at least 0.95 of its own best"
        found.append(Goal(text, few >= 0.95 * best, f"{few / best:.4f}"))
    if str(1 << 30) in record.get("transposes", {}):
        ratios = {name: s.median for name, s in transposes(record, 1 << 30)}
        text = "the transpose with swizzle is at least 0.9 of the copy"
        mine = ratios["TMA, swizzle"]
        found.append(Goal(text, mine >= 0.9, f"{mine:.4f}"))
        text = "and ahead of the padded transpose"
        padded = max(ratio for name, ratio in ratios.items() if name.startswith("padded"))
        found.append(Goal(text, mine > padded, f"{mine:.4f} against {padded:.4f}"))
    return found


def _copy_goals(record: Record) -> list[Goal]:
    ratios = {name: s.median for name, s in ranking(record["copies"])}
    name = max(filter(is_tma, ratios), key=ratios.__getitem__)
    best = ratios[name]
    found = [
        Goal("the best TMA kernel is at least 0.995 of cudaMemcpy", best >= 0.995, f"{best:.4f}")
    ]
    for who, names in (
        ("torch.add", ["torch.add"]),
        ("CuPy's best", [n for n in ratios if n.lower().startswith("cupy")]),
        ("Triton", [n for n in ratios if n.startswith("Triton")]),
    ):
        theirs = max((ratios[n] for n in names if n in ratios and n not in COPY_ONLY), default=None)
        if theirs is not None:
            value = f"{best:.4f} against {theirs:.4f}"
            found.append(Goal(f"and ahead of {who}", best > theirs, value))
    return found
