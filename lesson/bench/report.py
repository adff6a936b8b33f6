"""A record in words and pictures: for the terminal, and as files in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lesson.bench import evidence, summary

Record = dict[str, Any]


def has(record: Record, section: str) -> bool:
    """Whether a section was measured, and did not fail."""
    return section in record and "failed" not in {
        key for key, value in record[section].items() if key == "failed" and isinstance(value, str)
    }


def heading(record: Record, *, live: bool) -> str:
    """Whether this was measured here and now, or recorded elsewhere: the first line of all."""
    gpu, versions = record["gpu"], record["versions"]
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    if live:
        first = f"MEASURED here, on {gpu['name']}, {record['recorded']}"
    else:
        first = f"RECORDED on {gpu['name']}, {record['recorded']}, not measured here"
    lines = [first, f"driver {record['driver']}; {packages}"]
    changed = evidence.stale(record)
    if changed:
        lines.append(
            f"Changed since then, so these numbers are of older text: {', '.join(changed)}"
        )
    return "\n".join(lines)


def text(record: Record, *, live: bool) -> str:
    """The heading, the goals, and the tables that fit a terminal."""
    parts = [heading(record, live=live)]
    goals = summary.goals(record)
    if goals:
        lines = [f"  {'met   ' if g.met else 'MISSED'}  {g.says}: {g.value}" for g in goals]
        parts.append("\n".join(["Goals, as ratios in this run:", *lines]))
    if has(record, "copies"):
        parts.append(_copies(record["copies"]))
    if has(record, "sweep"):
        parts.append(_sweep(record))
    failed = [name for name in record if isinstance(record[name], dict) and not has(record, name)]
    if failed:
        parts.append("Not measured: " + "; ".join(f"{n}: {record[n]['failed']}" for n in failed))
    return "\n\n".join(parts)


def _copies(section: Record) -> str:
    lines = ["4 GiB in, 4 GiB out, ratio to cudaMemcpy (quartiles):"]
    for name, s in summary.ranking(section):
        lines.append(f"  {s.median:.4f} ({s.low:.4f} to {s.high:.4f})  {name}")
    wrong = [f"{name}: {count} elements" for name, count in section["wrong"].items() if count]
    return "\n".join(lines + (["WRONG: " + ", ".join(wrong)] if wrong else []))


def _sweep(record: Record) -> str:
    lines = [
        "Share of cudaMemcpy with one block of 32 threads on each multiprocessor, and at best:"
    ]
    for name in record["sweep"]["families"]:
        found = summary.points(record, name)
        if not found:
            lines.append(f"  WRONG         {name}")
            continue
        best = max(s.median for s in found.values())
        lines.append(f"  {found[32, 1].median:.3f}  {best:.3f}  {name}")
    return "\n".join(lines)


def draw(record: Record, folder: Path, *, live: bool) -> list[Path]:
    """Every picture whose section was measured, as PNG files."""
    from lesson import figures_bench

    prefix = "bench" if live else "bench_recorded"
    paths = []
    for name, make in figures_bench.PICTURES.items():
        if has(record, figures_bench.NEEDS[name]):
            paths.append(folder / f"{prefix}_{name}.png")
            make(record).save(paths[-1])
    return paths
