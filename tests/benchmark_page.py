"""Writes docs/benchmark.md from the evidence of an H200.

    python -m tests.benchmark_page

Every number in its tables comes out of the evidence, and the words under them from
`benchmark_words`; a test holds the page to what this module makes of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lesson import figures_bench
from lesson.bench import contenders, evidence, summary
from lesson.bench.peers import CEILING
from tests import benchmark_words as words

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmark.md"
MIB, GIB = 1 << 20, 1 << 30
Record = dict[str, Any]
Row = tuple[object, ...]

HEAD = """\
# What was measured

`python -m lesson bench` (or `make bench`) measures all of this in one run of a few minutes, on a
Hopper GPU or a later one, and draws it. Elsewhere it draws the recorded run that this page tells
of.

All kernels do `out = in + 1` on float32, are compared bit for bit over poisoned memory before they
are timed, and are right in the emulator under every schedule. Bandwidth counts every byte twice:
once read, once written. Ratios are of medians, to `cudaMemcpy` device to device *in the same run*:
a copy that adds nothing is the practical ceiling.
"""

PICTURE = """\
![Bandwidth against threads: one warp suffices with asynchronous copies](benchmark_threads.png)
"""


def table(head: Row, rows: list[Row]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def chapter(title: str, *parts: str) -> str:
    """A heading and what stands under it."""
    return "\n\n".join([f"## {title}", *(part.strip() for part in parts if part)])


def machine(record: Record) -> str:
    """The GPU, versions and sources of the run."""
    gpu = record["gpu"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"Recorded {record['recorded']} on one {gpu['name']}: {gpu['multiprocessors']} "
        f"multiprocessors, {gpu['l2_bytes'] / MIB:.0f} MiB of L2, driver {record['driver']}; "
        f"{versions}. Raw samples, sha256 of every source and all settings: "
        f"`lesson/kernels/evidence/{evidence.RECORDED.name}`."
    )


def goals(record: Record) -> str:
    """The goals, met or missed."""
    rows = [(g.says, g.value, "met" if g.met else "**missed**") for g in summary.goals(record)]
    return "## Goals\n\n" + table(("goal", "measured", ""), rows)


def copies(record: Record) -> str:
    """All contenders at 4 GiB."""
    rows = []
    ceiling = summary.spread(4 * GIB, record["copies"]["samples_ns"][CEILING]).median
    for name, s in summary.ranking(record["copies"]):
        setting = contender(record, name)
        rows.append((name, f"{s.median:.4f}", f"{s.low:.4f} to {s.high:.4f}", s.samples, setting))
    return chapter(
        "Copies at 4 GiB",
        f"`cudaMemcpy` moved {ceiling:.0f} GB/s.",
        table(("contender", "ratio", "quartiles", "samples", "setting"), rows),
        words.COPIES,
    )


def contender(record: Record, name: str) -> str:
    """The setting of one of our kernels, or nothing for a peer."""
    from lesson.bench import variants

    found = record["contenders"].get(name)
    if found is None:
        return ""
    v = variants.from_json(found)
    return f"`{v.file}` {v.label}"


def threads(record: Record) -> str:
    """The sweep: a table a kernel."""
    parts = ["## Threads", PICTURE.strip()]
    rows = []
    for name in record["sweep"]["families"]:
        found = summary.points(record, name)
        few, best = summary.with_few(record, name)
        enough = summary.needed(record, name)
        rows.append(
            (name, f"{found[32, 1].median:.3f}", f"{few:.3f}", f"{best:.3f}", f"{few / best:.3f}",
             enough or "never")
        )  # fmt: skip
    head = (
        "kernel", "one warp a multiprocessor", "best with blocks of 32", "best of all",
        "ratio of both", "threads a multiprocessor for 0.9",
    )  # fmt: skip
    parts += [table(head, rows), words.THREADS.strip()]
    for name in record["sweep"]["families"]:
        found = summary.points(record, name)
        body = [
            (
                t,
                *(
                    f"{found[t, b].median:.3f}" if (t, b) in found else ""
                    for b in contenders.BLOCKS
                ),
            )
            for t in contenders.THREADS
        ]
        parts += [f"{name}: threads of a block down, blocks on a multiprocessor across.",
                  table(("", *contenders.BLOCKS), body)]  # fmt: skip
    return "\n\n".join(parts)


def sizes(record: Record) -> str:
    """GB/s by size, cold and warm."""
    parts = ["## Sizes"]
    for kind in ("cold", "warm"):
        series = record["sizes"][kind]
        columns = sorted({int(n) for each in series.values() for n in each})
        rows = []
        for name, each in series.items():
            cells = [
                f"{summary.spread(n, each[str(n)]).median:.0f}" if str(n) in each else ""
                for n in columns
            ]
            rows.append((name, *cells))
        heads = [f"{n // GIB} GiB" if n >= GIB else f"{n // MIB} MiB" for n in columns]
        parts.append(f"GB/s, {kind}:\n\n" + table((kind, *heads), rows))
    return "\n\n".join([*parts, words.SIZES.strip()])


def transposes(record: Record) -> str:
    """The transposes at both sizes, with conflicts."""
    kernels = record.get("counters", {}).get("kernels", {})
    rows = []
    for name in record["transposers"]:
        ratios = [dict(summary.transposes(record, n))[name].median for n in (GIB, 4 * GIB)]
        times = summary.conflicts(kernels.get(name))
        rows.append((name, *(f"{r:.4f}" for r in ratios), f"{times:.2f}" if times else ""))
    head = ("transpose", "1 GiB", "4 GiB", "passes through shared memory, fewest = 1")
    return chapter("Transposes", table(head, rows), words.TRANSPOSES)


def edges(record: Record) -> str:
    """Plain loads and TMA where tiles are awkward."""
    section = record["edges"]
    top = summary.spread(section["ceiling_nbytes"], section["ceiling_ns"]).median
    rows = []
    for row in section["rows"]:
        cells = [
            f"{summary.spread(row['nbytes'], row[side]['samples_ns']).median / top:.3f}"
            if side in row
            else "refused"
            for side in ("plain", "tma")
        ]
        rows.append((row["name"], *cells))
    head = ("matrix or tile", "plain loads", "TMA")
    return chapter("Edges", table(head, rows), words.EDGES)


def instructions(record: Record) -> str:
    """Registers, instructions and issue slots."""
    kernels, kib = record["counters"]["kernels"], record["counters"]["nbytes"] / 1024
    rows = []
    for name, counted in kernels.items():
        held = record["registers"][name]
        rows.append(
            (
                name,
                held["registers"],
                held["static_shared_bytes"] + held["dynamic_shared_bytes"],
                f"{counted.get('smsp__inst_executed.sum', 0) / kib:.1f}",
                f"{counted.get('smsp__issue_active.avg.pct_of_peak_sustained_active', 0):.1f} %",
            )
        )
    head = ("kernel", "registers", "shared bytes", "warp instructions a KiB", "issue slots used")
    title = "Registers, instructions, issue slots"
    return chapter(title, table(head, rows), words.INSTRUCTIONS)


def sanitizers(record: Record) -> str:
    """compute-sanitizer's verdicts."""
    rows = [
        (tool, found.get("summary") or found.get("failed", ""), found.get("right", ""))
        for tool, found in record["sanitizers"].items()
    ]
    head = ("tool", "says", "kernels that were also right under it")
    return chapter("compute-sanitizer", table(head, rows), words.SANITIZERS)


def page(record: Record) -> str:
    """The whole page."""
    parts = [
        HEAD.rstrip(), machine(record), goals(record), copies(record), threads(record),
        sizes(record), transposes(record), edges(record), instructions(record), sanitizers(record),
        words.METHOD.rstrip(),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(evidence.load()), encoding="utf-8", newline="\n")
    figures_bench.threads(evidence.load()).save(PAGE.parent / "benchmark_threads.png")
