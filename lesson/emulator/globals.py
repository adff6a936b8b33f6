"""Variables of a module in global and constant memory, with their initial values.

PTX ISA, "Variables: Initializers". Every launch starts from the initial values: a module lives for
one launch. `filled` is what the host writes there before the launch, as with `cuModuleGetGlobal`
and `cuMemcpyHtoD` of the CUDA Driver API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lesson.emulator.arguments import Arguments, map_bytes
from lesson.emulator.memory import GlobalMemory, Segment
from lesson.emulator.ptx import Imm, Sym, Variable
from lesson.emulator.ptx_variables import TYPE_NBYTES
from lesson.emulator.registers import WIDTH, immediate
from lesson.emulator.windows import FUNCTION_BASE, FUNCTION_STEP
from lesson.errors import LaunchError, PtxSyntaxError
from lesson.tensor_map import TensorMap

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


def filled(
    arguments: Arguments, memory: GlobalMemory, program: Program, symbols: Mapping[str, Any]
) -> dict[str, bytes]:
    """What the host puts into variables: tensor maps (one or a list), a numpy array or bytes.

    Reserves the memory of the maps' arrays. A variable that the kernel does not reach is left out.
    """
    found = {}
    for name, value in symbols.items():
        variable = program.module.variables.get(name)
        if variable is None or variable.space not in ("global", "const"):
            known = [v.name for v in program.module.variables.values()]
            raise LaunchError(
                f"a symbol must be a variable of the module, got {name!r}. Variables: "
                f'{", ".join(known) or "none"}. Declare it extern "C" to keep its name.'
            )
        data = _symbol_bytes(arguments, memory, name, value)
        if len(data) > variable.nbytes:
            raise LaunchError(
                f"the contents of symbol {name} must be at most {variable.nbytes} bytes, got "
                f"{len(data)}. Pass fewer elements."
            )
        if name in program.used:
            found[name] = data
    return found


def _symbol_bytes(arguments: Arguments, memory: GlobalMemory, name: str, value: Any) -> bytes:
    """The bytes of one symbol."""
    what = f"symbol {name}"
    if isinstance(value, TensorMap):
        return map_bytes(arguments, memory, value, what)
    if isinstance(value, list | tuple) and all(isinstance(each, TensorMap) for each in value):
        return b"".join(map_bytes(arguments, memory, each, what) for each in value)
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return value.tobytes()
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    raise LaunchError(
        f"{what} must be given tensor maps, a numpy array or bytes, got {type(value).__name__}."
    )


def initialise(
    program: Program,
    memory: GlobalMemory,
    segments: dict[str, Segment],
    given: Mapping[str, bytes],
) -> None:
    """Initial values, then what the host put over them; what has neither is zero."""
    for name, segment in segments.items():
        variable = program.used[name]
        target = memory.bytes_of(segment)
        target[:] = 0
        if variable.init:
            size = TYPE_NBYTES[variable.type]
            for k, item in enumerate(variable.init):
                target[k * size : (k + 1) * size] = _bytes(program, segments, variable, item, size)
        data = given.get(name, b"")
        target[: len(data)] = np.frombuffer(data, np.uint8)


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
