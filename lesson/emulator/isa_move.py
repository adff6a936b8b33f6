"""Moves: registers, constants, addresses, clocks; packing and unpacking; address spaces.

PTX ISA, "Data Movement and Conversion Instructions: mov, cvta, isspacep, mapa, getctarank" and
"Special Registers: %clock, %globaltimer".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.isa import Step, step, unsupported
from lesson.emulator.lanes import Mask, merged
from lesson.emulator.operands import bind, kind_of
from lesson.emulator.ptx import Instr, Operand, Reg, Sink, Vec
from lesson.emulator.registers import U32, U64, WIDTH, Values, storage
from lesson.emulator.special import CLOCKS
from lesson.emulator.windows import (
    CALL_PARAM_BASE,
    GLOBAL_BASE_U64,
    LOCAL_WINDOW,
    LOCAL_WINDOW_U64,
    SHARED_RANK_SHIFT,
    SHARED_WINDOW,
    SHARED_WINDOW_U64,
)

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder

WINDOW_SHIFT = np.uint64(32)
EPOCH_NS = 1_700_000_000_000_000_000


@step("mov")
def build_mov(instr: Instr, b: FunctionBuilder) -> Step:
    """`mov.type d, a` in all its forms."""
    kind = kind_of(instr)
    target, source = instr.operands
    if kind == "b128":
        raise unsupported(instr, "a register must have at most 64 bits")
    if isinstance(target, Vec):
        return _unpack(instr, b, target, kind)
    if isinstance(source, Vec):
        return _pack(instr, b, source, kind)
    if (
        isinstance(source, Reg)
        and source.name in CLOCKS
        and source.name not in b.function.registers
    ):
        return _clock(b, target, source.name, kind)
    a, adapt = b.source(source, kind)
    d, widen = b.dest(target, kind)
    if adapt is None and widen is None:

        def move(m: Machine, R: list, mask: Mask | None) -> None:
            R[d] = R[a] if mask is None else merged(R[d], R[a], mask)

        return move
    read, write = b.read(source, kind), b.write(target, kind)
    return lambda m, R, mask: write(R, read(R), mask)


def _clock(b: FunctionBuilder, target: Operand, name: str, kind: str) -> Step:
    """A clock counts instructions as cycles and as nanoseconds, and time that passed in waits."""
    write = b.write(target, kind)
    b.clock_slots |= b.writes
    dtype = storage(kind)
    shift = 32 if name.endswith("_hi") else 0
    start = EPOCH_NS if "timer" in name else 0
    limit = (1 << 8 * dtype.itemsize) - 1

    def read_clock(m: Machine, R: list, mask: Mask | None) -> None:
        m.steps += 1
        write(R, np.array([(start + m.clock_ns) >> shift & limit], dtype), mask)

    return read_clock


def _part_kind(instr: Instr, count: int, kind: str) -> str:
    width = WIDTH[kind] // count if kind != "pred" else 0
    if width not in (8, 16, 32) or width * count != WIDTH[kind]:
        raise unsupported(instr)
    return f"b{width}"


def _pack(instr: Instr, b: FunctionBuilder, source: Vec, kind: str) -> Step:
    """`mov.b64 d, {lo, hi}`: the first operand holds the low bits."""
    part = _part_kind(instr, len(source.items), kind)
    reads = [b.read(item, part) for item in source.items]
    write, dtype, width = b.write(instr.operands[0], kind), storage(kind), WIDTH[part]
    shifts = [dtype.type(width * k) for k in range(len(reads))]

    def pack(m: Machine, R: list, mask: Mask | None) -> None:
        value = reads[0](R).astype(dtype)
        for read, shift in zip(reads[1:], shifts[1:], strict=True):
            value = value | read(R).astype(dtype) << shift
        write(R, value, mask)

    return pack


def _unpack(instr: Instr, b: FunctionBuilder, target: Vec, kind: str) -> Step:
    """`mov.b64 {lo, hi}, a`."""
    part = _part_kind(instr, len(target.items), kind)
    read, dtype, width = b.read(instr.operands[1], kind), storage(kind), WIDTH[part]
    low = dtype.type((1 << width) - 1)
    narrow = storage(part)
    writes = [
        (dtype.type(width * k), b.write(item, part))
        for k, item in enumerate(target.items)
        if not isinstance(item, Sink)
    ]

    def unpack(m: Machine, R: list, mask: Mask | None) -> None:
        value = read(R)
        for shift, write in writes:
            write(R, (value >> shift & low).astype(narrow), mask)

    return unpack


def space_in(instr: Instr) -> str:
    """The state space that an instruction names, without `::` part; empty for generic."""
    for mod in instr.mods:
        base = mod.partition("::")[0]
        if base in ("global", "shared", "local", "const", "param"):
            return base
    return ""


def _param_to_generic(m: Machine, values: Values) -> Values:
    if int(values[0]) >= CALL_PARAM_BASE:
        return values + np.uint64(LOCAL_WINDOW - CALL_PARAM_BASE)
    return values + np.uint64(m.param_segment.address)


_TO_GENERIC = {
    "global": lambda m, values: values,
    "const": lambda m, values: values,
    "shared": lambda m, values: values + SHARED_WINDOW_U64,
    "local": lambda m, values: values + LOCAL_WINDOW_U64,
    "param": _param_to_generic,
}
_FROM_GENERIC = {
    "global": lambda m, values: values,
    "const": lambda m, values: values,
    "shared": lambda m, values: values - SHARED_WINDOW_U64,
    "local": lambda m, values: values - LOCAL_WINDOW_U64,
    "param": lambda m, values: values - np.uint64(m.param_segment.address),
}


@step("cvta")
def build_cvta(instr: Instr, b: FunctionBuilder) -> Step:
    """`cvta.space.u64` makes an address generic, `cvta.to.space.u64` makes it one of the space."""
    space = space_in(instr)
    if instr.mods[-1] != "u64" or not space:
        raise unsupported(instr)
    convert = (_FROM_GENERIC if instr.mods[0] == "to" else _TO_GENERIC)[space]
    read, write = b.read(instr.operands[1], "u64"), b.write(instr.operands[0], "u64")
    return lambda m, R, mask: write(R, convert(m, read(R)), mask)


def _in_segments(m: Machine, values: Values, space: str) -> Values:
    """Whether addresses fall into allocations of a space."""
    index = (values - GLOBAL_BASE_U64).view(np.int64)
    found = np.zeros(values.shape, np.bool_)
    for segment in m.memory.segments:
        if segment.space == space:
            found |= (index >= segment.start) & (index < segment.start + segment.nbytes)
    return found


def is_in_space(m: Machine, values: Values, space: str, first: Values) -> Values:
    """Whether generic addresses lie in a space. `first`: each lane's first shared address."""
    window = values >> WINDOW_SHIFT
    is_shared, is_local = window == SHARED_WINDOW >> 32, window == LOCAL_WINDOW >> 32
    if space == "shared::cluster":
        return is_shared
    if space.startswith("shared"):
        rank = np.uint64(SHARED_RANK_SHIFT)
        return is_shared & ((values - SHARED_WINDOW_U64) >> rank == first >> rank)
    if space == "local":
        return is_local
    if space == "global":
        return ~(
            is_shared
            | is_local
            | _in_segments(m, values, "const")
            | _in_segments(m, values, "param")
        )
    return _in_segments(m, values, space.partition("::")[0])


@step("isspacep")
def build_isspacep(instr: Instr, b: FunctionBuilder) -> Step:
    """`isspacep.space p, a`."""
    space = instr.mods[0]
    if space.partition("::")[0] not in _TO_GENERIC:
        raise unsupported(instr)
    read, write = b.read(instr.operands[1], "u64"), b.write(instr.operands[0], "pred")
    return lambda m, R, mask: write(R, is_in_space(m, read(R), space, m.shared_first), mask)


@step("mapa")
def build_mapa(instr: Instr, b: FunctionBuilder) -> Step:
    """`mapa{.shared::cluster}.type d, a, rank`: that variable in another block of the cluster."""
    kind = kind_of(instr)
    target, address, rank = instr.operands
    read, read_rank, write = b.read(address, kind), b.read(rank, "u32"), b.write(target, kind)
    dtype = storage(kind)
    if dtype not in (U32, U64) or (dtype == U32 and "shared::cluster" not in instr.mods):
        raise unsupported(instr)
    keep = dtype.type(~(0xFF << SHARED_RANK_SHIFT) & (1 << 8 * dtype.itemsize) - 1)
    shift = dtype.type(SHARED_RANK_SHIFT)

    def mapa(m: Machine, R: list, mask: Mask | None) -> None:
        write(R, read(R) & keep | read_rank(R).astype(dtype) << shift, mask)

    return mapa


@step("getctarank")
def build_getctarank(instr: Instr, b: FunctionBuilder) -> Step:
    """`getctarank{.shared::cluster}.type d, a`: rank of the block that an address belongs to."""
    kind = kind_of(instr)
    read, write = b.read(instr.operands[1], kind), b.write(instr.operands[0], "u32")

    def getctarank(m: Machine, R: list, mask: Mask | None) -> None:
        offset = read(R).astype(np.uint32)
        write(R, offset >> np.uint32(SHARED_RANK_SHIFT), mask)

    return getctarank


@step("createpolicy", "applypriority", "discard")
def build_hint(instr: Instr, b: FunctionBuilder) -> Step:
    """Cache policies: nothing here has a cache. `createpolicy` leaves a zero."""
    if instr.opcode != "createpolicy":
        return lambda m, R, mask: None
    d = b.dest(instr.operands[0], "b64").slot
    return lambda m, R, mask: bind(R, d, np.zeros(1, np.uint64), mask)
