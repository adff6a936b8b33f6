"""Variables of a module in global and constant memory, with their initial values.

PTX ISA, "Variables: Initializers". Every launch starts from the initial values: a module lives for
one launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.memory import GlobalMemory, Segment
from lesson.emulator.ptx import Imm, Sym, Variable
from lesson.emulator.ptx_variables import TYPE_NBYTES
from lesson.emulator.registers import WIDTH, immediate
from lesson.emulator.windows import FUNCTION_BASE, FUNCTION_STEP
from lesson.errors import PtxSyntaxError

if TYPE_CHECKING:
    from lesson.emulator.program import Program


def allocate(program: Program, memory: GlobalMemory) -> dict[str, Segment]:
    """Room for each variable that the program uses."""
    found = {}
    for name, variable in program.used.items():
        is_const = variable.space == "const"
        found[name] = memory.allocate(
            variable.nbytes, name, "const" if is_const else "global", not is_const
        )
    return found


def initialise(program: Program, memory: GlobalMemory, segments: dict[str, Segment]) -> None:
    """Initial values; what has none is zero."""
    for name, segment in segments.items():
        variable = program.used[name]
        target = memory.bytes_of(segment)
        target[:] = 0
        if variable.init:
            size = TYPE_NBYTES[variable.type]
            for k, item in enumerate(variable.init):
                target[k * size : (k + 1) * size] = _bytes(program, segments, variable, item, size)


def _bytes(
    program: Program, segments: dict[str, Segment], variable: Variable, item: Imm | Sym, size: int
) -> np.ndarray:
    """One initialiser as bytes."""
    if isinstance(item, Imm):
        if variable.type not in WIDTH:
            raise PtxSyntaxError(
                f"an initialised variable must have a scalar type, got .{variable.type}. PTX "
                f"line {variable.line}."
            )
        bits = int(immediate(item, variable.type)[0])
    elif item.name in segments:
        bits = segments[item.name].address + item.offset
    elif item.name in program.numbers:
        bits = FUNCTION_BASE + FUNCTION_STEP * program.numbers[item.name]
    else:
        raise PtxSyntaxError(
            f"an initialiser must name a variable or a function, got {item.name}. PTX line "
            f"{variable.line}."
        )
    return np.frombuffer((bits & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)
