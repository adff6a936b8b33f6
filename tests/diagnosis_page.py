"""docs/diagnosis.md, made of the recordings and of what the check says today.

`python -m tests.diagnosis_page` writes it; a test compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lesson.finding_kinds import KINDS
from tests import mistake_cases as cases

PAGE = Path(__file__).parent.parent / "docs" / "diagnosis.md"
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
HEAD = """# What is wrong with a kernel, and who says so

Made by `python -m tests.diagnosis_page`; a test keeps it in step. The H200 and compute-sanitizer
columns are recordings ({gpu}, driver API {driver}, {sanitizer}), the last column is what `python -m
lesson check` says: kind and line. `.` means that nothing was said. An H200 that says `ok` under a
broken kernel was lucky.

## Broken kernels

{summary}

| kernel | mistake | H200 | memcheck | racecheck | synccheck | initcheck | lesson |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
CORRECT = """
## Correct kernels

The lesson says nothing of any of these, under any schedule of the copies; neither do the tools.

"""
CATALOGUE = """
## All kinds

What a check can say. How each is found stands in `lesson/emulator/ordering*.py` and
`lesson/check*.py`.

| kind | meaning |
| --- | --- |
"""


def results() -> dict[str, Any]:
    """The recording."""
    return json.loads((cases.HANDED / "results.json").read_text(encoding="utf-8"))


def page() -> str:
    """The whole page."""
    recorded = results()
    meta = recorded["meta"]
    rows = {row["case"]: row for row in recorded["results"]}
    broken = cases.handed(broken=True)
    head = HEAD.format(
        gpu=meta["gpu"],
        driver=meta["driver_api"],
        sanitizer=f"compute-sanitizer {_version(meta['sanitizer'])}",
        summary=_summary([rows[name] for name in broken]),
    )
    table = "".join(_row(rows[name]) for name in broken)
    correct = "".join(f"- `{name}`: {rows[name]['says']}\n" for name in cases.handed(broken=False))
    kinds = "".join(f"| `{kind.name}` | {kind.says} |\n" for kind in KINDS.values())
    return head + table + CORRECT + correct + CATALOGUE + kinds


def _version(text: str) -> str:
    return text.split("Version ")[-1].split(" ")[0]


def _summary(rows: list[dict[str, Any]]) -> str:
    said = sum(any(_tool(row, tool) != "." for tool in TOOLS) for row in rows)
    lucky = sum(row["outcome"] == "ok" for row in rows)
    named = sum(bool(cases.report_on(row["case"]).findings) for row in rows)
    return (
        f"Of {len(rows)} broken kernels the chip gave the right bits for {lucky}; one of the four "
        "tools said anything "
        f"at all about {said}; the lesson names {named}."
    )


def _tool(row: dict[str, Any], tool: str) -> str:
    found = row.get("sanitizer", {}).get(tool)
    if not found or not found.get("errors"):
        return "hangs" if found and found.get("timed_out") else "."
    return f"{found['errors']} errors"


def _row(row: dict[str, Any]) -> str:
    finding = "; ".join(
        f"`{found.kind}`, line {found.line}" for found in cases.report_on(row["case"]).findings
    )
    outcome = row["outcome"] + (f": {row['error']}" if row.get("error") else "")
    tools = " | ".join(_tool(row, tool) for tool in TOOLS)
    return f"| `{row['case']}` | {row['says']} | {outcome} | {tools} | {finding} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
