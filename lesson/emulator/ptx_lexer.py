"""PTX text to tokens, each with its line. Debug sections and comments are dropped.

One pass of one regular expression whose alternatives start with different characters, so time is
linear in the text whatever it holds.
"""

from __future__ import annotations

import re

from lesson.emulator.ptx import MAX_TEXT_BYTES
from lesson.errors import LimitExceeded, PtxSyntaxError

_TOKEN = re.compile(
    r"""\n
    |[A-Za-z_$%][\w$]*(?:\.\w+(?:::\w+)*)*      # a name, or an opcode with its modifiers
    |\.[A-Za-z_]\w*(?:::\w+)*                   # a directive or a type
    |0[xX][0-9A-Fa-f]+U?|0[fFdD][0-9A-Fa-f]+
    |\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\w*
    |"[^"\n]*"
    |//[^\n]*
    |/\*(?:[^*]|\*(?!/))*(?:\*/)?
    |[^\s]""",
    re.ASCII | re.VERBOSE,
)
_SECTION = re.compile(r"^[ \t]*\.section\s+[\w.$]+\s*\{", re.ASCII | re.MULTILINE)


def _without_sections(text: str) -> str:
    """The text with the bodies of its debug sections replaced by as many line ends."""
    kept, at = [], 0
    for found in _SECTION.finditer(text):
        if found.start() < at:
            continue
        stop = text.find("}", found.end())
        if stop < 0:
            line = text.count("\n", 0, found.start()) + 1
            raise PtxSyntaxError(
                f"a .section must end with a closing brace, got none. PTX line {line}."
            )
        kept += [text[at : found.start()], "\n" * text.count("\n", found.start(), stop)]
        at = stop + 1
    return "".join([*kept, text[at:]])


def tokenize(text: str) -> tuple[list[str], list[int]]:
    """Tokens, and the line number of each."""
    if not isinstance(text, str):
        raise PtxSyntaxError(f"PTX must be text, got {type(text).__name__}. Decode it first.")
    if len(text) > MAX_TEXT_BYTES:
        raise LimitExceeded(
            f"PTX text must be at most {MAX_TEXT_BYTES} characters, got {len(text)}."
        )
    tokens: list[str] = []
    lines: list[int] = []
    line = 1
    for token in _TOKEN.findall(_without_sections(text)):
        if token == "\n":
            line += 1
        elif token[0] == "/" and len(token) > 1:
            line += token.count("\n")
            if token[1] == "*" and (len(token) < 4 or not token.endswith("*/")):
                raise PtxSyntaxError(
                    f"a comment must be closed, got none of '*/'. PTX line {line}."
                )
        else:
            tokens.append(token)
            lines.append(line)
    return tokens, lines
