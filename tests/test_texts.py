"""What no committed text may hold, and what certain texts must."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Put together here, so that this file does not find itself.
LEFTOVERS = re.compile(
    r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"]) + r")\b"
)
MACHINE_PATHS = re.compile(
    "(?<![\\w.])/(" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me"]) + ")/"
)
REGISTRIES = re.compile(
    "|".join(["py" + "pi.org", "pythonho" + "sted", "npm" + "js.org", "debian" + ".org"])
)
BINARY = {".npz", ".png", ".gz", ".xz", ".whl"}


@cache
def texts() -> dict[str, str]:
    """Every text file that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if ran.returncode != 0:
        pytest.skip("this tree is no git checkout, so nothing says which files belong to it")
    names = [n for n in ran.stdout.split("\0") if n and Path(n).suffix not in BINARY]
    return {n: (ROOT / n).read_text("utf-8") for n in names if (ROOT / n).is_file()}


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in texts().items()
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("pattern", [LEFTOVERS, MACHINE_PATHS, REGISTRIES])
def test_no_text_holds_leftover_notes_or_names_a_machine(pattern):
    assert lines_with(pattern) == []


def test_every_text_ends_with_one_line_end_and_has_no_carriage_returns():
    theirs = ("tests/data/", "lesson/slides_template/static/reveal/")  # as recorded, as published
    ours = {n: t for n, t in texts().items() if not n.startswith(theirs)}
    wrong = [n for n, t in ours.items() if "\r" in t or (t and not t.endswith("\n"))]
    assert wrong == []


def first_words(text: str) -> str:
    """The first line after those that describe a launch for `check`: `// case: ...`."""
    described = re.compile(r"// (case|says|map|omap|launch|args|expect): |$")
    return next(line for line in text.splitlines() if not described.match(line))


def test_every_cuda_source_says_its_licence_first():
    sources = {
        name: text
        for name, text in texts().items()
        if name.startswith("lesson/") and name.endswith((".cu", ".cuh"))
        if "/solutions/" not in name  # a few lines that go into a source
    }
    assert "lesson/kernels/tma_tile.cu" in sources
    tag = "SPDX-License-Identifier: MIT"
    assert [name for name, text in sources.items() if tag not in first_words(text)] == []


def test_the_licence_is_the_mit_licence():
    text = (ROOT / "LICENSE").read_text()
    assert text.startswith("MIT License\n\nCopyright (c) ")
    assert 'THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND' in text


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_names_is_there(page):
    text = (ROOT / page).read_text()
    named = set(re.findall(r"\]\(([^)#:]+)\)", text))
    named |= {n for n in re.findall(r"`([\w./-]+)`", text) if re.search(r"/\w|\.\w+$", n)}
    made_by_commands = {"out/", "dist/", "day76_tma_tile.ipynb", ".venv"}
    names = {n for n in named if n not in made_by_commands}
    assert len(named) >= 4
    assert [n for n in sorted(names) if not any(map(Path.exists, places(n)))] == []


def places(name: str) -> list[Path]:
    """Where a page may mean: from the root, or in a room, as the table of rooms shortens it."""
    return [ROOT / name, ROOT / "lesson" / name, ROOT / "notebooks" / name]


def test_the_readme_promises_only_targets_that_make_has():
    rules = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        promised = set(re.findall(r"\bmake ([a-z][\w-]*)", (ROOT / page).read_text()))
        assert promised - {"alone"} <= rules, page


def test_the_version_that_the_pages_name_is_the_version():
    import lesson

    pages = "".join((ROOT / page).read_text() for page in ("README.md", "docs/cloud.md"))
    wheels = set(re.findall(r"tma_lesson-([\d.]+)-py3", pages))
    assert wheels == {lesson.__version__}
