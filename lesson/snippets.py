"""Marked regions and constants out of a .cu file, with their line numbers.

A region begins behind a line `// snippet: NAME` and ends before a line `// end snippet`; NAME is
lower case words joined by hyphens. The lesson quotes regions, compiles them, and lets a reader edit
them, so a region always knows the line of the file that it starts on.

Line ends: LF and CRLF are read alike (a checkout on Windows has CRLF) and the text that comes out
has LF. Tabs are allowed, and shown as four columns. Refused: what is not UTF-8, a NUL, a carriage
return on its own (compilers disagree on whether it ends a line). Preprocessor branches are not
followed: a marker counts wherever it stands.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from lesson.constants import Constants
from lesson.errors import SnippetError

KERNEL_PATH = Path(__file__).parent / "kernels" / "tma_tile.cu"

_START = re.compile(r"[ \t]*//[ \t]*snippet:[ \t]*([a-z0-9]+(?:-[a-z0-9]+)*)[ \t]*$")
_END = re.compile(r"[ \t]*//[ \t]*end snippet[ \t]*$")
_NEARLY = re.compile(r"[ \t]*//+[ \t]*(?:snippet[ \t]*:|end[ \t_-]*snippet\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Snippet:
    """One marked region; `text` is its lines as they stand in the file, each with a newline."""

    name: str
    text: str
    first_line: int  # of the file, counted from 1: the line behind the marker
    source_name: str

    @property
    def last_line(self) -> int:
        """The last line of the region itself, before its end marker."""
        return self.first_line + self.text.count("\n") - 1

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines without their newlines."""
        return tuple(self.text.split("\n")[:-1])

    def dedented(self) -> str:
        """The text moved to the left margin, tabs as four columns: to show, not to compile."""
        return textwrap.dedent(self.text.expandtabs(4))


@dataclass(frozen=True, slots=True)
class Source:
    """A .cu file that has been read: its text with LF line ends, its regions and its constants."""

    name: str
    text: str
    snippets: tuple[Snippet, ...]
    constants: Constants = field(repr=False, compare=False)

    @property
    def sha256(self) -> str:
        """Of the text with LF line ends, so that a Windows checkout has the same."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines of the file without their newlines."""
        return tuple(self.text.split("\n"))

    def snippet(self, name: str) -> Snippet:
        """The region of that name; SnippetError lists the ones there are."""
        for snippet in self.snippets:
            if snippet.name == name:
                return snippet
        have = ", ".join(snippet.name for snippet in self.snippets) or "none"
        raise SnippetError(
            f"snippet {name!r} must be marked in {self.name}, got no such marker. It marks: "
            f"{have}. Ask for one of these, or put `// snippet: {name}` before the region."
        )

    def constant(self, name: str) -> int:
        """The value of an integer constant; SnippetError says what is wrong with it."""
        return self.constants[name]


def read(path: str | Path) -> Source:
    """Reads and parses the .cu file at `path`."""
    path = Path(path)
    if path.is_dir():
        raise SnippetError(f"{path} must be a .cu file, got a directory. Name a file in it.")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        near = sorted(each.name for each in path.parent.glob("*.cu")) or ["no .cu file"]
        raise SnippetError(
            f"{path} must be a file, got nothing there. {path.parent} holds: {', '.join(near)}. "
            "Check the path and the folder that you run in."
        ) from None
    except (OSError, ValueError) as error:
        raise SnippetError(
            f"{path} must be a readable file, got: {error}. Check the path and its permissions."
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SnippetError(
            f"{path.name} must be UTF-8 text, got byte 0x{data[error.start]:02X} at offset "
            f"{error.start}. Line {line}. Save the file as UTF-8 in your editor."
        ) from None
    return parse(text, path.name)


def parse(text: str, name: str = "kernel.cu") -> Source:
    """Parses C++ text; `name` is what errors, and later the compiler, call it."""
    text = text.replace("\r\n", "\n")
    for character, spelled in (("\r", "a carriage return on its own"), ("\0", "a NUL character")):
        if character in text:
            line = text.count("\n", 0, text.index(character)) + 1
            raise SnippetError(
                f"{name} must be text with LF or CRLF line ends, got {spelled}. Line {line}. "
                "Save the file with Unix line ends in your editor."
            )
    snippets = tuple(_regions(text, name))
    return Source(name, text, snippets, Constants(text, name))


@lru_cache(maxsize=1)
def lesson_source() -> Source:
    """The lesson's own tma_tile.cu, read once."""
    return read(KERNEL_PATH)


def _regions(text: str, source_name: str) -> Iterator[Snippet]:
    seen: dict[str, int] = {}  # name -> line of its start marker
    opened: tuple[str, int] | None = None
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        where = f"{source_name}, line {number}"
        if start := _START.match(line):
            _refuse_start(start[1], where, opened, seen)
            opened = (start[1], number)
            seen[start[1]] = number
        elif _END.match(line):
            yield _closed(opened, number, lines, source_name)
            opened = None
        elif _NEARLY.match(line):
            raise SnippetError(
                f"a marker must read `// snippet: some-name` or `// end snippet`, got "
                f"`{line.strip()[:80]}`. {where}. Write it that way, or reword the comment."
            )
    if opened:
        raise SnippetError(
            f"snippet {opened[0]!r} must be closed, got the end of the file first. {source_name}, "
            f"line {opened[1]}. Put `// end snippet` behind its last line."
        )


def _refuse_start(
    name: str, where: str, opened: tuple[str, int] | None, seen: dict[str, int]
) -> None:
    if opened:
        raise SnippetError(
            f"snippets must not be nested, got {name!r} inside {opened[0]!r} (line {opened[1]}). "
            f"{where}. Put `// end snippet` before it."
        )
    if name in seen:
        raise SnippetError(
            f"snippet {name!r} must be marked once, got a second marker (the first is on line "
            f"{seen[name]}). {where}. Rename one of the two."
        )


def _closed(
    opened: tuple[str, int] | None, number: int, lines: list[str], source_name: str
) -> Snippet:
    if not opened:
        raise SnippetError(
            f"`// end snippet` must close a snippet, got none open. {source_name}, line {number}. "
            "Put `// snippet: some-name` before the region, or take this line away."
        )
    name, start = opened
    content = lines[start : number - 1]
    if not any(line.strip() for line in content):
        raise SnippetError(
            f"snippet {name!r} must hold code, got an empty region. {source_name}, lines {start} "
            f"to {number}. Move the markers around the code, or take them away."
        )
    return Snippet(name, "".join(line + "\n" for line in content), start + 1, source_name)
