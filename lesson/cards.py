"""A card: a heading, rows of a name and what is said of it, and findings in full.

Does: the same content as text for a terminal and as one small HTML table for Jupyter, with no
script and no outside style, in colours that hold on a dark theme. What a colour says, a word says.
Does not: judge or run anything.
"""

from __future__ import annotations

import html
import sys
import textwrap
from dataclasses import dataclass

from lesson.findings import Finding

GOOD, BAD, PLAIN = "#009E73", "#D55E00", "#8C8C8C"  # of Okabe and Ito
COLUMNS = 92
_CELL = "padding: 2px 10px; text-align: left; vertical-align: top"


@dataclass(frozen=True)
class Row:
    """One line of a card, and the finding that belongs to it."""

    name: str
    says: str
    finding: Finding | None = None


@dataclass(frozen=True)
class Card:
    """`heading` ends with a colon: it is what JupyterLab shows of a folded text output."""

    heading: str
    rows: tuple[Row, ...]
    is_good: bool | None = None
    closing: str = ""

    def show(self) -> None:
        """Shows the card before the end of a cell: as HTML in a notebook, else as text."""
        shell = sys.modules.get("IPython")
        if shell is None or shell.get_ipython() is None:
            print(self)
            return
        from IPython.display import display

        display(self)

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [self.heading]
        for row in self.rows:
            lines += _wrapped(row.says, f"  {row.name:{width}}  ")
            if row.finding is not None:
                lines += _finding_text(row.finding)
        return "\n".join([*lines, *([self.closing] if self.closing else [])])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The card for Jupyter. The first line gives nothing away where the output is folded."""
        colour = PLAIN if self.is_good is None else GOOD if self.is_good else BAD
        rows = "\n".join(_row_html(row) for row in self.rows)
        closing = f"<div>{html.escape(self.closing)}</div>\n" if self.closing else ""
        return (
            "<figure>\n"
            f'<div style="border-left: 4px solid {colour}; padding: 4px 12px; margin: 4px 0;'
            ' max-width: 60em">\n'
            f"<b>{html.escape(self.heading)}</b>\n"
            f'<table style="margin: 4px 0">\n{rows}\n</table>\n{closing}</div>\n</figure>'
        )


@dataclass(frozen=True)
class Score:
    """A mistake, and what each judge said of it."""

    mistake: str
    chip: str
    tools: str
    lesson: str


@dataclass(frozen=True)
class Scores:
    """A table of mistakes and judges."""

    scores: tuple[Score, ...]

    def __str__(self) -> str:
        lines = ["Who noticed:"]
        for score in self.scores:
            lines += _wrapped(score.mistake, "  ")
            lines += _wrapped(score.chip, "      an H200            ")
            lines += _wrapped(score.tools, "      compute-sanitizer  ")
            lines += _wrapped(score.lesson, "      this lesson        ")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        heads = ("the mistake", "an H200", "compute-sanitizer", "this lesson")
        head = "".join(f'<th scope="col" style="{_CELL}">{each}</th>' for each in heads)
        rows = "\n".join(
            "<tr>"
            + "".join(f'<td style="{_CELL}">{html.escape(said)}</td>' for said in row)
            + "</tr>"
            for row in ((s.mistake, s.chip, s.tools, s.lesson) for s in self.scores)
        )
        return f"<figure>\n<table>\n<tr>{head}</tr>\n{rows}\n</table>\n</figure>"


def _wrapped(text: str, first: str, indent: str | None = None) -> list[str]:
    rest = " " * len(first) if indent is None else indent
    return textwrap.wrap(
        text, COLUMNS, initial_indent=first, subsequent_indent=rest, break_long_words=False
    )


def proof(finding: Finding) -> str:
    """The state that proves it, in one line."""
    return "; ".join(f"{name} {value}" for name, value in finding.state)


def _finding_text(finding: Finding) -> list[str]:
    lines = [f"    > {finding.source}"] if finding.source else []
    lines += _wrapped(finding.says, "    ")
    if finding.state:
        lines += _wrapped(f"Proof: {proof(finding)}.", "    ")
    return [*lines, *_wrapped(f"Cure: {finding.cure}", "    ")]


def _row_html(row: Row) -> str:
    name = f'<th scope="row" style="{_CELL}; white-space: nowrap">{html.escape(row.name)}</th>'
    if row.finding is None:
        return f'<tr>{name}<td style="{_CELL}">{html.escape(row.says)}</td></tr>'
    says = f"<b>{html.escape(row.says)}</b>{_finding_html(row.finding)}"
    return f'<tr>{name}<td style="{_CELL}">{says}</td></tr>'


def _finding_html(finding: Finding) -> str:
    source = (
        '<pre style="margin: 4px 0; background: none; white-space: pre-wrap; word-break: normal">'
        f"<code>{html.escape(finding.source)}</code></pre>"
    )
    parts = [("", finding.says), ("Proof: ", f"{proof(finding)}."), ("Cure: ", finding.cure)]
    lines = "".join(
        f'<div style="margin: 4px 0"><b>{label}</b>{html.escape(text)}</div>'
        for label, text in parts
        if text != "."
    )
    return (source if finding.source else "") + lines
