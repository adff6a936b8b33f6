"""The lesson's kernel as a reader edits it: the text of tma_tile.cu, and edits that keep its lines.

Does: replaces text inside a marked region, or in the kernel as a whole, and insists that the text
to replace stands there exactly once, so that an edit never misses or hits twice in silence.
Does not: parse C++. The compiler judges the result, and names lines of the file.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from lesson import snippets
from lesson.errors import SnippetError
from lesson.listing import Listing
from lesson.snippets import Source

KERNEL_NAME = "loadTileTma"
WHOLE = "kernel"
_KERNEL_START = f"void {KERNEL_NAME}("
_HOST_START = "#if !defined(__CUDACC_RTC__)"


@dataclass(frozen=True)
class KernelSource:
    """tma_tile.cu, as shipped or edited. `edits` tells what was changed, oldest first."""

    source: Source
    edits: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole file; NVRTC skips its host half."""
        return self.source.text

    def constant(self, name: str) -> int:
        """An integer constant of the file, such as kTileWidth."""
        return self.source.constant(name)

    def edit(self, region: str, old: str, new: str) -> KernelSource:
        """A copy with `old` replaced by `new` in a region (a snippet's name, or "kernel").

        Raises SnippetError unless `old` stands there exactly once.
        """
        start, stop = self._span(region)
        part = self.text[start:stop]
        found = part.count(old) if old else 0
        if found != 1:
            raise SnippetError(
                f"the text to replace must stand in {region!r} exactly once, got {found} times:"
                f" {old!r}. Copy it from the listing, with enough around it to be unique."
            )
        edited = self.text[:start] + part.replace(old, new) + self.text[stop:]
        source = snippets.parse(edited, self.source.name)
        return replace(self, source=source, edits=(*self.edits, f"{old} -> {new}"))

    def listing(self, region: str) -> Listing:
        """The lines of a snippet."""
        snippet = self.source.snippet(region)
        return Listing(self.source.name, snippet.first_line, snippet.lines)

    def between(self, first: str, last: str) -> Listing:
        """The kernel's lines from the first that holds `first` to the next that holds `last`."""
        start, stop = self._span(WHOLE)
        head = self.text.count("\n", 0, start)
        lines = self.text[start:stop].split("\n")
        begin = next((i for i, line in enumerate(lines) if first in line), None)
        end = next((i for i, line in enumerate(lines[begin:], begin or 0) if last in line), None)
        if begin is None or end is None:
            missing = first if begin is None else last
            raise SnippetError(
                f"the text must stand in the kernel, got no line with {missing!r}. Copy it from"
                f" {self.source.name}."
            )
        return Listing(self.source.name, head + begin + 1, tuple(lines[begin : end + 1]))

    def _span(self, region: str) -> tuple[int, int]:
        """Where a region's text starts and stops, in characters of the file."""
        if region == WHOLE:
            start = self.text.index(_KERNEL_START)
            stop = self.text.find(_HOST_START, start)
            return start, stop if stop >= 0 else len(self.text)
        snippet = self.source.snippet(region)
        lines = self.text.splitlines(keepends=True)
        start = sum(map(len, lines[: snippet.first_line - 1]))
        return start, start + len(snippet.text)


@functools.cache
def shipped() -> KernelSource:
    """The kernel as the lesson ships it."""
    return KernelSource(snippets.lesson_source())
