"""Calls and returns of device functions, direct and through a pointer.

PTX ISA, "Control Flow Instructions: call, ret" and "Device Function Parameters". Parameters lie in
local memory at the start of the callee's frame, so a call copies bytes from frame to frame, and a
return the other way. Recursion is bounded by the memory limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.isa import Control, control, unsupported
from lesson.emulator.isa_control import leave, scatter
from lesson.emulator.lanes import Mask, merged
from lesson.emulator.layout import Place, call_layout
from lesson.emulator.ptx import Function, Imm, Instr, Operand, Reg, Sym, Variable, Vec
from lesson.errors import DeviceFault, LaunchFailure, LimitExceeded, PtxSyntaxError, UnsupportedPtx

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder, Read, Write
    from lesson.emulator.simt import Group

MAX_CALLS = 4096


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes that move between the frames of caller and callee (offsets from the start of each)."""

    outer: int
    inner: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class InRegister:
    """A value that moves between a register of the caller and one of the callee, by the callee's
    name.
    """

    name: str
    read: Read | None
    write: Write | None


Move = Bytes | InRegister


@dataclass(slots=True)
class Site:
    """One call in the code: what goes in and what comes back."""

    into: list[Move]
    back: list[Move]


def _moves(
    b: FunctionBuilder,
    instr: Instr,
    given: Vec,
    formals: tuple[Variable, ...],
    spots: list[Place],
    is_result: bool,
) -> list[Move]:
    """How each operand of a call meets its formal parameter."""
    if len(given.items) != len(formals):
        what = "results" if is_result else "arguments"
        raise PtxSyntaxError(
            f"a call must have as many {what} as the function, got {len(given.items)} for "
            f"{len(formals)}. PTX line {instr.line}."
        )
    return [
        _move(b, instr, *each, is_result) for each in zip(given.items, formals, spots, strict=True)
    ]


def _move(
    b: FunctionBuilder,
    instr: Instr,
    operand: Operand,
    formal: Variable,
    spot: Place,
    is_result: bool,
) -> Move:
    if isinstance(operand, Sym) and operand.name in b.layout and spot.offset >= 0:
        own = b.layout[operand.name]
        return Bytes(own.offset, spot.offset, min(own.nbytes, spot.nbytes))
    if spot.offset < 0 and isinstance(operand, Reg | Imm):
        if is_result:
            return InRegister(formal.name, None, b.write(operand, formal.type))
        return InRegister(formal.name, b.read(operand, formal.type), None)
    raise unsupported(
        instr, "an argument of a call must be a .param variable, or a register that meets one"
    )


def _copy(m: Machine, move: Bytes, act: Mask, depth: int, is_result: bool) -> None:
    """Move the bytes of one parameter between depth and depth + 1."""
    frame = m.program.frame_nbytes
    rows = m.local.u8.reshape(m.nlanes, m.local_stride)
    outer, inner = depth * frame + move.outer, (depth + 1) * frame + move.inner
    source, target = (inner, outer) if is_result else (outer, inner)
    n = move.nbytes
    if act.n == m.nlanes:
        rows[:, target : target + n] = rows[:, source : source + n]
    else:
        rows[act.idx, target : target + n] = rows[act.idx, source : source + n]


@control("call")
def build_call(instr: Instr, b: FunctionBuilder) -> Control:
    """`call (results), function, (arguments)`, or through a register with a prototype."""
    results, target, arguments, *prototype = instr.operands
    assert isinstance(results, Vec)
    assert isinstance(arguments, Vec)
    is_direct = isinstance(target, Sym)
    if is_direct:
        name = b.program.module.aliases.get(target.name, target.name)
        if name not in b.program.module.functions:
            raise PtxSyntaxError(
                f"a call must name a function of the module, got {name}. PTX line {instr.line}."
            )
        number = b.program.require(name)
        callee = b.program.functions[number].function
        formals = callee.returns, callee.params
    else:
        formals = _prototype(b, instr, prototype)
    spots = call_layout(*formals)
    site = Site(
        _moves(b, instr, arguments, formals[1], spots[1], False),
        _moves(b, instr, results, formals[0], spots[0], True),
    )
    b.program.sites[b.block + 1] = site
    if is_direct:
        return lambda m, group: _enter(m, group, instr, number, site)
    return _indirect(instr, b.read(target, "u64"), site)


def _prototype(b: FunctionBuilder, instr: Instr, given: list[Operand]) -> tuple:
    """Results and parameters that an indirect call names."""
    name = given[0].name if given and isinstance(given[0], Sym) else ""
    if name in b.function.prototypes:
        return b.function.prototypes[name]
    targets = b.function.tables.get(name)
    if not targets or targets[0] not in b.program.module.functions:
        raise PtxSyntaxError(
            f"an indirect call must name a prototype, got {name!r}. PTX line {instr.line}."
        )
    callee = b.program.module.functions[targets[0]]
    return callee.returns, callee.params


def _indirect(instr: Instr, read: Read, site: Site) -> Control:
    """Each lane to the function that its pointer names."""

    def call(m: Machine, group: Group) -> bool:
        ways = scatter(m, group, m.of(read(group.R), m.active(group.mask)))
        for address, mask in ways:
            number = m.program.function_at(address)
            if number is None:
                what = f"a function pointer must hold the address of a function, got {address:#x}"
                raise m.fault(
                    LaunchFailure, what, instr, int(mask.idx[0]), "Check that it was set."
                )
            if len(ways) == 1:
                return _enter(m, group, instr, number, site)
            part = type(group)(group.block, group.depth, mask, group.R)
            _enter(m, part, instr, number, site)
            m.simt.put(part)
        return True

    return call


class AssertFailed(DeviceFault):
    """`assert` of device code does not hold."""

    cuda_error = "CUDA_ERROR_ASSERT"


def no_body(function: Function) -> Control:
    """What runs in place of a function that the module only declares."""

    def refuse(m: Machine, group: Group) -> bool:
        if function.name == "__assertfail":
            act = m.active(group.mask)
            caller = m.program.blocks[int(m.return_block[group.depth][act.idx[0]]) - 1]
            what = "the condition of an assert must hold, got one that does not"
            raise m.fault(
                AssertFailed, what, caller.first, int(act.idx[0]), "See the line of the assert."
            )
        raise UnsupportedPtx(
            f"a function must have a body in the module, got {function.name}, which has none. "
            f"PTX line {function.line}. Calls of printf, malloc and other system functions are "
            "not modelled."
        )

    return refuse


def _enter(m: Machine, group: Group, instr: Instr, number: int, site: Site) -> bool:
    """Go one call deeper."""
    act = m.active(group.mask)
    depth = group.depth + 1
    if depth > MAX_CALLS:
        raise LimitExceeded(
            f"calls must nest at most {MAX_CALLS} deep, got more. "
            f"{m.where(instr, int(act.idx[0]))}. "
            "Look for a recursion without end."
        )
    frame = m.frame(number, depth)
    code = m.program.functions[number]
    for move in site.into:
        if isinstance(move, Bytes):
            _copy(m, move, act, group.depth, False)
        elif move.name in code.slots:
            slot = code.slots[move.name]
            frame[slot] = merged(frame[slot], move.read(group.R), act)
    while len(m.return_block) <= depth:
        m.return_block.append(np.zeros(m.nlanes, np.int32))
    m.return_block[depth][act.idx] = group.block + 1
    group.depth, group.R, group.block = depth, frame, code.entry
    return False


@control("ret")
def build_ret(instr: Instr, b: FunctionBuilder) -> Control:
    """Back to the caller; the end of the thread in the kernel itself."""
    return ret


def ret(m: Machine, group: Group) -> bool:
    """Go one call up, each lane to where it came from."""
    if group.depth == 0:
        return leave(m, group)
    act = m.active(group.mask)
    ways = scatter(m, group, m.return_block[group.depth][act.idx])
    depth = group.depth - 1
    for block, mask in ways:
        frame = m.frame(m.program.blocks[block].function, depth)
        whole = None if len(ways) == 1 and group.mask is None else mask
        _fetch(m, group, m.program.sites[block], mask, whole, frame)
        if len(ways) == 1:
            group.depth, group.R, group.block = depth, frame, block
            return False
        m.simt.start(block, depth, mask)
    return True


def _fetch(m: Machine, group: Group, site: Site, act: Mask, mask: Mask | None, frame: list) -> None:
    """Bring the results of a call to the caller."""
    slots = m.program.functions[m.program.blocks[group.block].function].slots
    for move in site.back:
        if isinstance(move, Bytes):
            _copy(m, move, act, group.depth - 1, True)
        elif move.name in slots:
            move.write(frame, group.R[slots[move.name]], mask)
