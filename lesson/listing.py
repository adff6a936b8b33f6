"""Source lines as the notebook shows them: with the line numbers of the file that they stand in.

Does: text with numbers for a terminal, HTML for Jupyter, comments a little paler than code.
Does not: read files (`snippets` does) or colour syntax. Where HTML styles are stripped, as on
GitHub, what is left is plain preformatted text.
"""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Listing:
    """Some lines of a source file. `first_line` counts from 1."""

    file: str
    first_line: int
    lines: tuple[str, ...]

    @property
    def caption(self) -> str:
        """Where the lines stand, in words."""
        last = self.first_line + len(self.lines) - 1
        return f"{self.file}, lines {self.first_line} to {last}"

    def numbered(self) -> list[tuple[int, str]]:
        """(line number, line) with the indentation that all lines share taken away."""
        shown = textwrap.dedent("\n".join(self.lines).expandtabs(4)).split("\n")
        return list(enumerate(shown, self.first_line))

    def __str__(self) -> str:
        rows = [f"{number:4d}  {line}".rstrip() for number, line in self.numbered()]
        return "\n".join([self.caption, *rows])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The lines for Jupyter."""
        rows = "\n".join(_html_row(number, line) for number, line in self.numbered())
        return (
            f"<p><small>{html.escape(self.caption)}</small></p>"
            f'<pre style="line-height: 1.4; overflow-x: auto;"><code>{rows}</code></pre>'
        )


def _html_row(number: int, line: str) -> str:
    """One line; what follows // is a comment, since the lesson's source has no // in a string."""
    code, slashes, comment = line.partition("//")
    pale = f'<span style="opacity: 0.65">{html.escape(slashes + comment)}</span>' if slashes else ""
    # A screen reader should read code, not numbers.
    gutter = f'<span style="opacity: 0.5" aria-hidden="true">{number:4d}  </span>'
    return f"{gutter}{html.escape(code)}{pale}"
