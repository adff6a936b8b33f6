"""What the words of a finding need to know: source lines, names of shared arrays, barriers,
arguments.

One scene belongs to one run: the case, the program, the observer with its sums.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lesson.check_case import Case
from lesson.emulator.observe import Copy
from lesson.emulator.ordering import Ordering
from lesson.emulator.ordering_notes import Note
from lesson.emulator.ordering_phases import Barrier
from lesson.emulator.ptx import Instr
from lesson.findings import Finding, Place

_LENGTH = re.compile(r"(\d+)")
_HOST_HALF = re.compile(r"#\s*if(?:ndef|\s*!\s*defined)\b\W*__CUDACC_RTC__\b")


def plain_name(symbol: str) -> str:
    """The name in the source of a mangled variable: `_ZZ1kE4tile` is `tile`."""
    if not symbol.startswith("_Z"):
        return symbol.rsplit("$", 1)[-1].rsplit("::", 1)[-1]
    names, at = [], 2
    while at < len(symbol):
        found = _LENGTH.match(symbol, at)
        if found is None:
            at += 1
            continue
        start = found.end()
        names.append(symbol[start : start + int(found[1])])
        at = start + max(int(found[1]), 1)
    return names[-1] if names else symbol


def device_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The numbered lines that NVRTC sees: those of a host half are left out."""
    depth = 0  # of conditionals inside a host half; 0 outside of one
    for number, line in enumerate(lines, 1):
        directive = re.sub(r"^#\s+", "#", line.strip())
        if depth:
            depth += directive.startswith("#if") - directive.startswith("#endif")
            if depth == 1 and directive.startswith(("#else", "#elif")):
                depth = 0
        elif _HOST_HALF.match(directive):
            depth = 1
        else:
            yield number, line


class Scene:
    """One run of one case, for the words."""

    def __init__(self, case: Case, observer: Ordering, schedule: str) -> None:
        self.case, self.observer, self.schedule = case, observer, schedule
        self.lines = case.source.splitlines()
        self.m = observer.m

    # ---------------------------------------------------------------------------------- places
    def line_of(self, instr: Instr | None) -> int:
        """The learner's line of an instruction; 0 if it has none."""
        if instr is None:
            return 0
        if instr.loc is None or not instr.loc.line:
            return instr.line if self.case.is_ptx else 0
        return instr.loc.line

    def text_at(self, line: int) -> str:
        """The source text of a line."""
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""

    def place(self, instr: Instr | None, role: str) -> tuple[Place, ...]:
        """An instruction as a place, if it has a line."""
        line = self.line_of(instr)
        return (Place(line, role, self.text_at(line)),) if line else ()

    def head_line(self, *keys: str) -> int:
        return self.case.head.line(*keys)

    def find_line(self, pattern: str, default: int = 0) -> int:
        """The first line of code that a pattern is found in."""
        for number, line in device_lines(self.lines):
            code = line.split("//", 1)[0]
            if re.search(pattern, code):
                return number
        return default

    def find_instr(self, opcode: str, mod: str) -> Instr | None:
        """The first instruction of a kind in the kernel."""
        if self.m is None:
            return None
        for code in self.m.program.functions:
            for item in code.function.body or ():
                if getattr(item, "opcode", "") == opcode and mod in item.mods:
                    return item
        return None

    # ----------------------------------------------------------------------------------- names
    def variable(self, byte: int) -> tuple[str, int, int] | None:
        """Name, offset in it and size of the shared variable at a flat shared byte."""
        if self.m is None:
            return None
        offset = byte % self.m.shared_stride
        for name, start, nbytes in self.m.shared_variables:
            if start <= offset < start + max(nbytes, 1):
                return plain_name(name), offset - start, nbytes
        return None

    def at(self, byte: int) -> str:
        """A shared byte in words: `tile`, `full[1]`, `byte 64 of pool`."""
        found = self.variable(byte)
        if found is None:
            return f"shared byte {byte % self.m.shared_stride if self.m else byte}"
        name, offset, nbytes = found
        if not offset:
            return name if nbytes <= 8 or nbytes > 64 else f"{name}[0]"
        if nbytes <= 256 and offset % 8 == 0 and nbytes % 8 == 0:
            return f"{name}[{offset // 8}]"
        return f"byte {offset} of {name}"

    def barrier(self, index: int) -> Barrier | None:
        """The book-keeping of the barrier at a flat shared byte."""
        return self.observer.barriers.at.get(index) if self.m is not None else None

    def named(self, text: str) -> str:
        """A text with the parameters of the PTX under the names of the arguments."""

        def name_of(match: re.Match[str]) -> str:
            n = int(match[1])
            arg = self.case.args[n] if n < len(self.case.args) else None
            return arg if isinstance(arg, str) else f"argument {n}"

        return re.sub(r"argument (\d+) \([^)]*\)", name_of, text)

    def thread_name(self, lane: int) -> str:
        """`thread 3`, by linear number."""
        return f"thread {lane % self.m.padded_threads}" if self.m is not None else "a thread"

    def copy_words(self, copy: Copy | None) -> str:
        """What a copy brings: its coordinates and bytes."""
        if copy is None:
            return "the copy"
        if copy.coords:
            return f"the box at ({', '.join(map(str, copy.coords))}) of {copy.nbytes} bytes"
        return f"the bulk copy of {copy.nbytes} bytes"

    # --------------------------------------------------------------------------------- findings
    def finding(
        self, note: Note | None, kind: str, line: int, says: str, cure: str,
        state: dict[str, Any] | None = None, places: tuple[Place, ...] = (),
    ) -> Finding:  # fmt: skip
        """A finding at a line, with what the note knows of the thread."""
        name = self.case.path or self.case.name
        return Finding(
            kind=kind,
            says=says,
            cure=cure,
            line=line,
            file=name,
            source=self.text_at(line),
            block=note.block if note else None,
            thread=note.thread if note else None,
            state=tuple((key, str(value)) for key, value in (state or {}).items()),
            places=tuple(dict.fromkeys(places)),
            schedules=(self.schedule,),
            times=note.count if note else 1,
        )
