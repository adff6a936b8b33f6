"""Extracts what the notebook shows of the recorded battery, into the package.

    python -m tests.extract_mistakes

Reads tests/data/mistakes/results.json, writes lesson/kernels/evidence/mistakes.json. A test fails
where the two disagree.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lesson.mistakes import PATH

SOURCE = Path(__file__).resolve().parent / "data" / "mistakes" / "results.json"
ELEMENTS = 65536  # of the output of each of these
SHOWN = (
    "expect-tx-too-large", "expect-tx-too-small", "no-wait", "no-proxy-fence",
    "store-wrong-row-stride", "every-thread-issues", "expect-tx-none", "wait-wrong-parity",
    "no-sync-after-init", "map-not-grid-constant", "dtype-float16",
)  # fmt: skip
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")


def extract() -> dict[str, Any]:
    """The recordings that the notebook shows, with the machine that they come from."""
    data = json.loads(SOURCE.read_text(encoding="utf-8"))
    by_name = {result["case"]: result for result in data["results"]}
    meta = data["meta"]
    return {
        "source": "tests/data/mistakes/results.json, one kernel with that mistake each",
        "gpu": meta["gpu"],
        "recorded": meta["started"],
        "sanitizer": meta["sanitizer"].splitlines()[-1],
        "cases": [case(by_name[name]) for name in SHOWN],
    }


def case(result: dict[str, Any]) -> dict[str, Any]:
    """One kernel. A tool said something if it counted an error or a hazard."""
    return {
        "case": result["case"],
        "says": result["says"],
        "outcome": result["outcome"],
        "error": result.get("error", ""),
        "wrong_elements": result.get("wrong", 0),
        "elements": ELEMENTS,
        "tools": {tool: said_by(result["sanitizer"][tool]) for tool in TOOLS},
    }


def said_by(answer: dict[str, Any]) -> str:
    """The tool's first message, or nothing."""
    if not answer["errors"] and not answer.get("hazards"):
        return ""
    return answer["first"].rstrip(".")


def main() -> None:
    text = json.dumps(extract(), indent=1) + "\n"
    PATH.write_text(text, encoding="utf-8", newline="\n")
    print(f"{len(SHOWN)} cases in {PATH.name}")


if __name__ == "__main__":
    main()
