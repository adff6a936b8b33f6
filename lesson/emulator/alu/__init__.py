"""The arithmetic and logic instructions of PTX, on arrays of raw bits.

Models what `find` knows; each file of this package defines a part of the instruction set, one
small function an instruction, in its table. Does not model memory, control flow, synchronisation,
moves of symbols and special registers, or the approximations whose bits PTX leaves open. Follows
the PTX ISA, "Instruction Set".
"""

from __future__ import annotations

from functools import lru_cache

from lesson.emulator.alu import (
    bitfield,
    carry,
    compare,
    convert,
    convert_fp8,
    convert_integer,
    floats,
    half,
    integer,
    logic,
    packed,
    select,
)
from lesson.emulator.alu.forms import Alu, Definition, Form

__all__ = ["Alu", "find"]

MODULES = (
    *(integer, packed, carry, logic, bitfield, compare, select),
    *(convert_integer, convert, convert_fp8, floats, half),
)


def merged() -> dict[tuple[str, str], list[Definition]]:
    """The tables of all files as one."""
    entries: dict[tuple[str, str], list[Definition]] = {}
    for module in MODULES:
        for key, definitions in module.TABLE.entries.items():
            entries.setdefault(key, []).extend(definitions)
    return entries


ENTRIES = merged()


@lru_cache(maxsize=4096)
def find(opcode: str, mods: tuple[str, ...], nargs: int, nouts: int = 1) -> Alu | None:
    """The instruction `opcode.mods` of `nargs` source operands and `nouts` results.

    None if it is not an ALU instruction, or a form that is not modelled. `nouts` is 2 for a
    destination `p|q`.
    """
    form = Form.parse(opcode, mods, nargs, nouts)
    if not form.types:
        return None
    for definition in ENTRIES.get((form.name, form.type), ()):
        alu = definition.alu(form)
        if alu is not None:
            return alu
    return None
