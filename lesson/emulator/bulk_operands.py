"""The operands of bulk and tensor copies: sizes, ranges of memory, mbarriers, multicast masks.

PTX ISA, "Data Movement and Conversion Instructions: Bulk copy, Tensor copy". Checks what the chip
checks: alignment, and that every range lies in one block's shared memory or in one allocation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.isa import unsupported
from lesson.emulator.lanes import Mask, mask_of
from lesson.emulator.memory import Index, global_place, shared_place
from lesson.emulator.operands import Read
from lesson.emulator.ptx import Instr, Operand
from lesson.errors import IllegalAddress, IllegalInstruction

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder

UNIT_NBYTES = 16


def sizes_of(m: Machine, instr: Instr, read: Read, R: list, act: Mask) -> Index:
    """Bytes that each lane copies."""
    sizes = m.each(read(R), act).astype(np.int64)
    bad = np.flatnonzero(sizes % UNIT_NBYTES)
    if bad.size:
        what = (
            f"the size of a bulk copy must be a multiple of {UNIT_NBYTES} bytes, got "
            f"{int(sizes[bad[0]])}"
        )
        raise m.fault(
            IllegalInstruction,
            what,
            instr,
            int(act.idx[bad[0]]),
            "Round it up, and pad the arrays.",
        )
    return sizes


def shared_range(
    m: Machine, instr: Instr, addr: np.ndarray, sizes: Index, act: Mask, is_cluster: bool
) -> Index:
    """Flat index of each lane's range of shared memory, which must lie in one block."""
    index = shared_place(m, instr, addr, 1, act, is_cluster, align=UNIT_NBYTES).index
    over = np.flatnonzero(index % m.shared_stride + sizes > m.shared_nbytes)
    if over.size:
        at = int(over[0])
        start = int(index[at]) % m.shared_stride
        what = (
            f"a bulk copy must end in the block's {m.shared_nbytes} bytes of shared memory, got "
            f"{start} to {start + int(sizes[at])}"
        )
        raise m.fault(
            IllegalAddress,
            what,
            instr,
            int(act.idx[at]),
            "Make the shared array larger, or the copy smaller.",
        )
    return index


def global_range(
    m: Machine, instr: Instr, addr: np.ndarray, sizes: Index, act: Mask, is_write: bool
) -> Index:
    """Arena index of each lane's range of global memory, which must lie in one allocation."""
    index = np.zeros(act.n, np.int64)
    for k, lane in enumerate(act.idx.tolist()):
        one = mask_of(np.array([lane]), m.nlanes)
        at = addr[k : k + 1]
        index[k] = global_place(m, instr, at, UNIT_NBYTES, one, is_write).index[0]
        if sizes[k] > UNIT_NBYTES:
            global_place(
                m, instr, at + np.uint64(int(sizes[k]) - UNIT_NBYTES), UNIT_NBYTES, one, is_write
            )
            segment = m.memory.segment_of(int(index[k]))
            if segment is not m.memory.segment_of(int(index[k] + sizes[k]) - 1):
                what = (
                    f"a bulk copy must lie in one allocation, got {int(sizes[k])} bytes from "
                    f"{int(addr[k]):#x}"
                )
                raise m.fault(IllegalAddress, what, instr, lane, "Check the size.")
    return index


def barrier_index(m: Machine, instr: Instr, read: Read, R: list, act: Mask) -> Index:
    """Flat index of the mbarrier that each lane names."""
    return shared_place(m, instr, m.each(read(R), act), 8, act, True).index


def split_optional(b: FunctionBuilder, instr: Instr, rest: list[Operand]) -> Read | None:
    """The multicast mask among the optional operands; the cache policy is dropped."""
    wanted = [mod for mod in instr.mods if mod == "multicast::cluster"]
    if len(rest) != len(wanted) + ("L2::cache_hint" in instr.mods):
        raise unsupported(instr)
    return b.read(rest[0], "u16") if wanted else None


def targets_of(m: Machine, instr: Instr, lane: int, index: int, ranks: int | None) -> list[int]:
    """Flat indices at which a copy lands: one, or one in each block of a multicast."""
    if ranks is None:
        return [index]
    if ranks >> m.cluster_nblocks:
        what = (
            f"a multicast must name blocks of the cluster ({m.cluster_nblocks}), got mask "
            f"{ranks:#x}"
        )
        raise m.fault(
            IllegalInstruction, what, instr, lane, "Build the mask from %cluster_nctarank."
        )
    block, offset = divmod(index, m.shared_stride)
    first = block - block % m.cluster_nblocks
    return [
        (first + rank) * m.shared_stride + offset
        for rank in range(m.cluster_nblocks)
        if ranks >> rank & 1
    ]
