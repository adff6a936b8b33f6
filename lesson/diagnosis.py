"""Findings in the words a learner reads: as text, and as a compact HTML card for a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterator

from lesson.findings import Finding, Report

CLEAN = "Nothing found"


def as_text(report: Report) -> str:
    """The report on lines of text."""
    lines = [f"{report.name}: {_verdict(report)}"]
    for finding in report.findings:
        lines += ["", *_text_of(finding)]
    if report.also:
        lines += ["", "Also seen, and most likely a consequence:"]
        lines += [f"  line {each.line}: {each.kind}. {each.says}" for each in report.also]
    lines += [f"note: {note}" for note in report.notes]
    return "\n".join(lines)


def _verdict(report: Report) -> str:
    runs = ", ".join(f"{each.where}: {each.outcome}" for each in report.outcomes)
    count = len(report.findings)
    head = f"{CLEAN}." if not count else f"{count} finding{'s' * (count > 1)}."
    return f"{head} ({runs})" if runs else head


def _text_of(finding: Finding) -> Iterator[str]:
    where = f"line {finding.line}" if finding.line else "the launch"
    yield f"{where}: {finding.kind}"
    if finding.source:
        yield f"    {finding.source}"
    yield f"  {finding.says}"
    if finding.block is not None:
        yield f"  first seen: block {finding.block}, thread {finding.thread}"
    for name, value in finding.state:
        yield f"  {name}: {value}"
    for place in finding.places:
        yield f"  line {place.line}, {place.role}: {place.source}"
    yield f"  Cure: {finding.cure}"


def as_html(report: Report) -> str:
    """The report as one card a finding; no script, no outside style."""
    cards = "".join(_card(finding) for finding in report.findings)
    also = "".join(
        f"<li>line {each.line}: <code>{html.escape(each.kind)}</code></li>" for each in report.also
    )
    more = f"<details><summary>Also seen</summary><ul>{also}</ul></details>" if also else ""
    return (
        f"<div><p><b>{html.escape(report.name)}</b>: "
        f"{html.escape(_verdict(report))}</p>{cards}{more}</div>"
    )


def _card(finding: Finding) -> str:
    where = f"line {finding.line}" if finding.line else "the launch"
    source = (
        f"<pre style='margin:4px 0'>{html.escape(finding.source)}</pre>" if finding.source else ""
    )
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>"
        for name, value in finding.state
    )
    state = f"<table>{rows}</table>" if rows else ""
    thread = (
        f"<div>block {finding.block}, thread {finding.thread}</div>"
        if finding.block is not None
        else ""
    )
    return (
        "<div style='border-left:4px solid #b00020;padding:4px 10px;margin:8px 0'>"
        f"<div><b>{html.escape(finding.kind)}</b>, {where}</div>{source}"
        f"<div>{html.escape(finding.says)}</div>{thread}{state}"
        f"<div><b>Cure:</b> {html.escape(finding.cure)}</div></div>"
    )
