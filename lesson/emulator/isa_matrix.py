"""ldmatrix and stmatrix: 8 x 8 matrices of 16 bits between shared memory and the registers of a
warp.

PTX ISA, "Warp Level Matrix Load/Store Instructions". Lane l of a warp gives the address of row l %
8 of matrix l / 8, and holds elements (l / 4, 2 (l % 4)) and the next of every matrix; `.trans`
swaps rows and columns. The shapes of sm_100a (.m16n16, .m8n16, .b8) are not modelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.isa import Control, control, unsupported
from lesson.emulator.isa_memory import address_of, observe
from lesson.emulator.isa_warp import Run, meeting
from lesson.emulator.lanes import Mask, mask_of
from lesson.emulator.memory import Place, shared_place
from lesson.emulator.ptx import Imm, Instr, Operand, Vec

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder, Read

WARP = 32
ROW_NBYTES = 16
EVERY_LANE = Imm((1 << WARP) - 1)
_FIXED = {"sync", "aligned", "m8n8", "shared", "shared::cta", "b16", "trans", "x1", "x2", "x4"}


def _shape(instr: Instr, registers: Operand) -> tuple[int, tuple[Operand, ...], bool]:
    """How many matrices, their registers, and whether rows and columns swap."""
    count = next((int(mod[1]) for mod in instr.mods if mod in ("x1", "x2", "x4")), 0)
    items = registers.items if isinstance(registers, Vec) else (registers,)
    if not _FIXED.issuperset(instr.mods) or "m8n8" not in instr.mods or len(items) != count:
        raise unsupported(instr)
    return count, items, "trans" in instr.mods


def _rows(
    m: Machine, instr: Instr, read: Read, R: list, mask: Mask | None, count: int
) -> tuple[Place, Mask]:
    """Where the rows lie that the first lanes of a warp name: (warps x count x 8) of 16 bytes."""
    whole = m.active(mask).bits.reshape(-1, WARP)
    if (whole.any(axis=1) != whole.all(axis=1)).any():
        raise unsupported(instr, "a matrix of a warp must be moved by all of its threads")
    lanes = m.active(mask).idx
    naming = lanes[lanes % WARP < 8 * count]
    act = mask_of(naming, m.nlanes)
    return shared_place(m, instr, m.each(read(R), act), ROW_NBYTES, act), act


@control("ldmatrix")
def build_ldmatrix(instr: Instr, b: FunctionBuilder) -> Control:
    """`ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 {d...}, [a]`."""
    target, address = instr.operands
    count, items, swaps = _shape(instr, target)
    get = address_of(b, address)
    writes = [b.write(each, "b32") for each in items]

    def run(m: Machine, R: list, mask: Mask | None, _: object) -> None:
        place, naming = _rows(m, instr, get, R, mask, count)
        halves = m.shared.views[2][(place.index >> 1)[:, None] + np.arange(8)]
        matrices = halves.reshape(-1, count, 8, 8)
        if swaps:
            matrices = matrices.swapaxes(2, 3)
        words = np.ascontiguousarray(matrices).view(np.uint32).reshape(-1, count, WARP)
        warps = naming.idx[:: 8 * count] // WARP
        for k, write in enumerate(writes):
            values = np.zeros((m.nlanes // WARP, WARP), np.uint32)
            values[warps] = words[:, k]
            write(R, values.reshape(-1), mask)
        if m.observers:
            observe(m, instr, "read", place, naming, ROW_NBYTES)

    return _together(b, run, instr)


@control("stmatrix")
def build_stmatrix(instr: Instr, b: FunctionBuilder) -> Control:
    """`stmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 [a], {s...}`."""
    address, source = instr.operands
    count, items, swaps = _shape(instr, source)
    get = address_of(b, address)
    reads = [b.read(each, "b32") for each in items]

    def run(m: Machine, R: list, mask: Mask | None, _: object) -> None:
        place, naming = _rows(m, instr, get, R, mask, count)
        warps = naming.idx[:: 8 * count] // WARP
        words = [np.broadcast_to(read(R), m.nlanes).reshape(-1, WARP)[warps] for read in reads]
        matrices = np.stack(words, axis=1).view(np.uint16).reshape(-1, count, 8, 8)
        if swaps:
            matrices = matrices.swapaxes(2, 3)
        m.shared.views[2][(place.index >> 1)[:, None] + np.arange(8)] = matrices.reshape(-1, 8)
        m.version += 1
        if m.observers:
            observe(m, instr, "write", place, naming, ROW_NBYTES)

    return _together(b, run, instr)


def _together(b: FunctionBuilder, run: Run, instr: Instr) -> Control:
    """The whole warp takes part."""
    return meeting(instr, b.read(EVERY_LANE, "b32"), run)
