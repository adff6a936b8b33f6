"""A reader's lines in the gap of an exercise's kernel.

Does: composes the text to compile, and says of each of its lines whose it is: line 3 of yours, or
a line of the file as it is listed. No `#line` is needed, so the checks quote the right text.
Does not: look into the lines; the compiler judges them.
"""

from __future__ import annotations

from dataclasses import dataclass

from lesson import snippets
from lesson.errors import SnippetError
from lesson.listing import Listing

REGION = "yours"


@dataclass(frozen=True)
class Filled:
    """The kernel with a reader's lines. `first`, `count`: where they stand in `text`."""

    name: str
    text: str
    first: int
    count: int
    listed: int  # how many lines the gap has in the file

    def where(self, line: int) -> str:
        """A line of `text` in the reader's words; `the launch` for none."""
        if not line:
            return "the launch"
        if self.first <= line < self.first + self.count:
            return f"line {line - self.first + 1} of yours"
        behind = line >= self.first + self.count
        return f"{self.name} line {line - (self.count - self.listed) * behind}"


def fill(source: snippets.Source, code: str) -> Filled:
    """Puts the lines of `code` in place of those between the marks."""
    if not isinstance(code, str):
        raise SnippetError(
            f"the lines for {source.name} must be text, got {type(code).__name__}. Put them between"
            ' """ and """.'
        )
    gap = source.snippet(REGION)
    lines = list(source.lines)
    yours = code.replace("\r\n", "\n").strip("\n").split("\n")
    lines[gap.first_line - 1 : gap.last_line] = yours
    return Filled(source.name, "\n".join(lines), gap.first_line, len(yours), len(gap.lines))


def starter(source: snippets.Source) -> str:
    """The lines that the gap starts with, at the left margin."""
    return source.snippet(REGION).dedented()


def listing(source: snippets.Source) -> Listing:
    """An exercise's file from its first constant on, with the gap between two plain marks."""
    start = next(i for i, line in enumerate(source.lines) if line.startswith("constexpr "))
    lines = list(source.lines[:-1])
    gap = source.snippet(REGION)
    for mark, words in ((gap.first_line - 2, "yours, from here"), (gap.last_line, "to here")):
        lines[mark] = f"    // ---------------- {words}"
    return Listing(source.name, start + 1, tuple(lines[start:]))
