"""The instruction table: which builder compiles which instruction.

A builder takes an instruction and the function under construction and returns what runs it:

- a *step*, `step(m, R, mask)`: `R` is the register frame, `mask` the lanes (None: all that live);
- or, registered with `control`, a *control*, `control(m, group) -> bool`, which ends a block of
  code. It moves the group (`group.block += 1`, `m.simt.jump`, `m.simt.split`), or parks or retires
  it and returns True.

Names are dotted prefixes of the instruction as written: the longest that is in the table wins, so
`mbarrier.try_wait` may be a control while `mbarrier` is a step. What is not here and not in the ALU
raises UnsupportedPtx when a thread reaches it. To add an instruction: write a builder in the
`isa_*` module of its family, decorate it, and add a row to the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lesson.emulator.ptx import Instr
from lesson.errors import UnsupportedPtx

if TYPE_CHECKING:
    from lesson.emulator.lanes import Mask
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder
    from lesson.emulator.simt import Group

Step = Callable[["Machine", list, "Mask | None"], None]
Control = Callable[["Machine", "Group"], bool]
Builder = Callable[[Instr, "FunctionBuilder"], Any]
MAX_PREFIX = 5


@dataclass(frozen=True, slots=True)
class Entry:
    """One row. `reads_guard`: the builder deals with the guard `@p` itself."""

    build: Builder
    is_control: bool = False
    reads_guard: bool = False


TABLE: dict[str, Entry] = {}


def step(*names: str) -> Callable[[Builder], Builder]:
    """Register a builder of steps."""

    def register(build: Builder) -> Builder:
        TABLE.update(dict.fromkeys(names, Entry(build)))
        return build

    return register


def control(*names: str, reads_guard: bool = False) -> Callable[[Builder], Builder]:
    """Register a builder of controls."""

    def register(build: Builder) -> Builder:
        TABLE.update(dict.fromkeys(names, Entry(build, True, reads_guard)))
        return build

    return register


def lookup(instr: Instr) -> Entry:
    """The row of an instruction; that of the ALU if it has none of its own."""
    for count in range(min(MAX_PREFIX, len(instr.mods)), -1, -1):
        found = TABLE.get(".".join((instr.opcode, *instr.mods[:count])))
        if found is not None:
            return found
    return TABLE["alu"]


def unsupported(instr: Instr, what: str = "", cure: str = "") -> UnsupportedPtx:
    """The error for an instruction that is not modelled."""
    loc = f"{instr.loc.file.rsplit('/', 1)[-1]} line {instr.loc.line}, " if instr.loc else ""
    text = what or "an instruction must be one that the emulator models"
    usual = "docs/emulator.md lists what is modelled; a GPU runs the rest."
    return UnsupportedPtx(f"{text}, got {instr.name}. {loc}PTX line {instr.line}. {cure or usual}")
