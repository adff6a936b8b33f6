"""The lesson's kernel as a reader edits it, by replacing text in a marked region or outside one.

Does: insists that the text to replace stands there exactly once, so that an edit never misses, or
hits twice, in silence; shows lines with their numbers in tma_tile.cu.
Does not: parse C++ (the compiler judges the result) or compose text (`harness` does, and keeps the
line numbers of the file).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lesson import harness, snippets
from lesson.errors import SnippetError
from lesson.listing import Listing

WHOLE = "kernel"
_KERNEL_START = f"void {harness.KERNEL}("
_HOST_START = "#if !defined(__CUDACC_RTC__)"


@dataclass(frozen=True)
class TileKernel:
    """The kernel of tma_tile.cu, as shipped or with a reader's edits.

    `regions`: the edited text of marked regions by name. `elsewhere`: (old, new) outside of them.
    """

    regions: dict[str, str] = field(default_factory=dict)
    elsewhere: tuple[tuple[str, str], ...] = ()

    @property
    def is_edited(self) -> bool:
        """Whether it is another kernel than the one that the lesson proves."""
        return bool(self.regions or self.elsewhere)

    def edit(self, region: str, old: str, new: str) -> TileKernel:
        """A copy with `old` replaced by `new` in a snippet, or anywhere in the "kernel".

        Raises SnippetError unless `old` stands there exactly once.
        """
        text = self._kernel_text() if region == WHOLE else self.region(region)
        found = text.count(old) if old else 0
        if found != 1:
            raise SnippetError(
                f"the text to replace must stand in {region!r} exactly once, got {found} times:"
                f" {old!r}. Copy it from the listing, with enough around it to be unique."
            )
        if region == WHOLE:
            return replace(self, elsewhere=(*self.elsewhere, (old, new)))
        return replace(self, regions={**self.regions, region: text.replace(old, new)})

    def region(self, name: str) -> str:
        """The text of a marked region with the edits made in it so far."""
        return self.regions.get(name) or snippets.lesson_source().snippet(name).text

    def source(self) -> harness.KernelSource:
        """The text to compile."""
        return harness.kernel_source(self.regions, dict(self.elsewhere))

    def recording_source(self) -> harness.KernelSource:
        """The text to compile of the same kernel with an `out` that remembers its writers."""
        return harness.recording_source(self.regions, dict(self.elsewhere))

    def _kernel_text(self) -> str:
        text = self.source().text
        start = text.index(_KERNEL_START)
        stop = text.find(_HOST_START, start)
        return text[start:] if stop < 0 else text[start:stop]


def listing(region: str) -> Listing:
    """The lines of a marked region of tma_tile.cu."""
    source = snippets.lesson_source()
    snippet = source.snippet(region)
    return Listing(source.name, snippet.first_line, snippet.lines)


def between(first: str, last: str) -> Listing:
    """Lines of tma_tile.cu's kernel, from the first with `first` to the next with `last`."""
    source = snippets.lesson_source()
    start = next(i for i, line in enumerate(source.lines) if _KERNEL_START in line)
    stop = next(i for i, line in enumerate(source.lines) if i > start and _HOST_START in line)
    begin = _find(first, source.lines, start, stop)
    end = _find(last, source.lines, begin, stop)
    return Listing(source.name, begin + 1, source.lines[begin : end + 1])


def _find(text: str, lines: tuple[str, ...], start: int, stop: int) -> int:
    for i in range(start, stop):
        if text in lines[i]:
            return i
    raise SnippetError(
        f"the text must stand in the kernel, got no line with {text!r}. Lines {start + 1} to {stop}"
        " of tma_tile.cu. Copy it from the file."
    )
