"""What NVRTC's log says, with the source line that each complaint is about.

Follows `#line` directives, so that a kernel composed of several pieces is quoted piece by piece.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lesson.errors import CompileError

Place = tuple[str, int]  # file and line

_MOST_QUOTED = 5
_LINE_DIRECTIVE = re.compile(r'[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)(?:[ \t]+"([^"\n]*)")?')
_LOG_ERROR = re.compile(r"^(.*)\((\d+)\): (?:catastrophic )?error(?: #\S+)?: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SourceError:
    """One place that NVRTC complains of, with the source line that stands there."""

    file: str
    line: int
    message: str
    source_line: str


def places(source: str, name: str, first_line: int = 1) -> dict[Place, str]:
    """(file, line) -> source line, as the compiler counts them."""
    found: dict[Place, str] = {}
    number = first_line
    for line in source.split("\n"):
        if directive := _LINE_DIRECTIVE.match(line):
            name, number = directive[2] or name, int(directive[1])
        else:
            found[name, number] = line
            number += 1
    return found


def compile_error(
    name: str, arch: str, version: tuple[int, int], log: str, lines: Mapping[Place, str]
) -> CompileError:
    """The error of one refused compile: the first complaints with their source, then the log."""
    errors = tuple(
        SourceError(file, int(line), message, lines.get((file, int(line)), ""))
        for file, line, message in _LOG_ERROR.findall(log)
    )
    count = f"{len(errors)} error{'s' * (len(errors) != 1)}" if errors else "a refusal"
    nvrtc = f"NVRTC {version[0]}.{version[1]}"
    text = [f"{name} must be CUDA C++ that {nvrtc} accepts for {arch}, got {count}."]
    for error in errors[:_MOST_QUOTED]:
        text.append(f"{error.file}, line {error.line}: {error.message}")
        if error.source_line.strip():
            text.append(f"    {error.line} | {error.source_line.strip()}")
    text += ["Mend what it names and compile again. NVRTC's log:", log]
    return CompileError("\n".join(text), log=log, errors=errors)
