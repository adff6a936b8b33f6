"""What a kernel became: the PTX line of a source region, and how many instructions of a kind.

Does: reads compiled PTX with the emulator's parser, by the source line that an instruction carries.
Does not: compile or run. SASS, the GPU's own assembly, comes from a recording: it needs ptxas.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from lesson.emulator import ptx as parser
from lesson.errors import SnippetError
from lesson.snippets import Snippet

EVIDENCE = Path(__file__).parent / "kernels" / "evidence" / "gpu.json"


def _instructions(ptx: str) -> list[parser.Instr]:
    functions = parser.parse(ptx).functions.values()
    return [i for f in functions for i in f.body or () if isinstance(i, parser.Instr)]


def is_kind(instruction: parser.Instr, kind: str) -> bool:
    """Whether an instruction is of a kind such as "ld.global", whatever else it says."""
    opcode, *wanted = kind.split(".")
    return instruction.opcode == opcode and set(wanted) <= set(instruction.mods)


def count(ptx: str, kinds: tuple[str, ...]) -> dict[str, int]:
    """How many instructions of each kind a thread's code holds; loops are not multiplied."""
    all_of_them = _instructions(ptx)
    return {kind: sum(is_kind(i, kind) for i in all_of_them) for kind in kinds}


def line_of(ptx: str, snippet: Snippet, kind: str) -> str:
    """The text of the first instruction of `kind` that a region became."""
    for instruction in _instructions(ptx):
        loc = instruction.loc
        inside = loc is not None and snippet.first_line <= loc.line <= snippet.last_line
        if inside and is_kind(instruction, kind):
            text = ptx.split("\n")[instruction.line - 1]
            return re.sub(r"\s+", " ", text.split("//")[0]).strip()
    raise SnippetError(
        f"snippet {snippet.name!r} must become an instruction {kind!r}, got none. {snippet.name},"
        f" lines {snippet.first_line} to {snippet.last_line}. Did an edit take it away?"
    )


def recorded_sass(path: Path = EVIDENCE) -> str:
    """The SASS instruction that asks for a tile, as an H200's toolkit disassembled the program."""
    return json.loads(path.read_text(encoding="utf-8"))["sass"]["tma_loads"][0]
