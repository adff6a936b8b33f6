"""Bulk copies of one dimension: global to shared memory and back, between blocks of a cluster, reductions.

PTX ISA, "Data Movement and Conversion Instructions: Bulk copy". The size is a multiple of 16 bytes, and so are the
addresses. Copies into shared memory complete on an mbarrier, those out of it in a bulk group of the thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator import atomics, groups
from lesson.emulator.isa import Control, Step, control, step, unsupported
from lesson.emulator.isa_memory import address_of
from lesson.emulator.lanes import Mask, mask_of
from lesson.emulator.memory import Index, global_place, shared_place
from lesson.emulator.observe import Copy
from lesson.emulator.operands import Read
from lesson.emulator.ptx import Imm, Instr, Operand, Reg
from lesson.emulator.registers import WIDTH
from lesson.errors import IllegalAddress, IllegalInstruction

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder

UNIT_NBYTES = 16
REDUCTIONS = frozenset("and or xor add inc dec min max".split())


def sizes_of(m: Machine, instr: Instr, read: Read, R: list, act: Mask) -> Index:
    """Bytes that each lane copies."""
    sizes = m.each(read(R), act).astype(np.int64)
    bad = np.flatnonzero(sizes % UNIT_NBYTES)
    if bad.size:
        what = f"the size of a bulk copy must be a multiple of {UNIT_NBYTES} bytes, got {int(sizes[bad[0]])}"
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
        what = f"a bulk copy must end in the block's {m.shared_nbytes} bytes of shared memory, got {start} to {start + int(sizes[at])}"
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
                what = f"a bulk copy must lie in one allocation, got {int(sizes[k])} bytes from {int(addr[k]):#x}"
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
        what = f"a multicast must name blocks of the cluster ({m.cluster_nblocks}), got mask {ranks:#x}"
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


def _block_bytes(m: Machine, start: int, nbytes: int) -> np.ndarray:
    return m.shared.u8[start : start + nbytes]


@step("cp.async.bulk.shared::cluster.global", "cp.async.bulk.shared::cta.global")
def build_load(instr: Instr, b: FunctionBuilder) -> Step:
    """`cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [d], [s], size, [mbar]{, mask}`."""
    target, source, size, barrier, *rest = instr.operands
    multicast = split_optional(b, instr, rest)
    get_target, get_source, get_barrier = (address_of(b, x) for x in (target, source, barrier))
    get_size = b.read(size, "u32")

    def load(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        sizes = sizes_of(m, instr, get_size, R, act)
        to = shared_range(m, instr, m.each(get_target(R), act), sizes, act, True)
        came = global_range(m, instr, m.each(get_source(R), act), sizes, act, False)
        bars = barrier_index(m, instr, get_barrier, R, act)
        masks = m.each(multicast(R), act).tolist() if multicast else [None] * act.n
        rows = zip(
            act.idx.tolist(),
            to.tolist(),
            came.tolist(),
            bars.tolist(),
            sizes.tolist(),
            masks,
            strict=True,
        )
        for lane, start, source_at, bar, n, ranks in rows:
            spots = targets_of(m, instr, lane, start, ranks)
            for spot, each in zip(spots, targets_of(m, instr, lane, bar, ranks), strict=True):
                copy = _copy(
                    m, "bulk_load", instr, lane, spot, n, global_start=source_at, barrier=each
                )
                m.copies.issue(
                    copy,
                    _mover(_block_bytes(m, spot, n), m.memory.buffer.u8[source_at : source_at + n]),
                )

    return load


def _copy(
    m: Machine, kind: str, instr: Instr, lane: int, start: int, nbytes: int, **more: object
) -> Copy:
    """The record of a bulk copy whose shared range starts at a flat index."""
    lanes = np.array([lane])
    return Copy(
        0, kind, instr, lane, start // m.shared_stride, nbytes=nbytes, lanes=lanes,
        smem_start=start, smem_stop=start + nbytes, **more,
    )  # fmt: skip


def _mover(target: np.ndarray, source: np.ndarray):
    def move() -> None:
        target[:] = source

    return move


@step("cp.async.bulk.shared::cluster.shared::cta")
def build_between(instr: Instr, b: FunctionBuilder) -> Step:
    """From the shared memory of the block to that of any block of the cluster, with an mbarrier there."""
    return _between(instr, b, None, "")


def _between(instr: Instr, b: FunctionBuilder, op: str | None, kind: str) -> Step:
    target, source, size, barrier = instr.operands
    get_target, get_source, get_barrier = (address_of(b, x) for x in (target, source, barrier))
    get_size = b.read(size, "u32")

    def send(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        sizes = sizes_of(m, instr, get_size, R, act)
        to = shared_range(m, instr, m.each(get_target(R), act), sizes, act, True)
        came = shared_range(m, instr, m.each(get_source(R), act), sizes, act, False)
        bars = barrier_index(m, instr, get_barrier, R, act)
        rows = zip(
            act.idx.tolist(), to.tolist(), came.tolist(), bars.tolist(), sizes.tolist(), strict=True
        )
        for lane, start, source_at, bar, n in rows:
            copy = _copy(
                m, "bulk_shared", instr, lane, start, n, source_start=source_at, barrier=bar, op=op
            )
            data = _block_bytes(m, start, n), _block_bytes(m, source_at, n)
            m.copies.issue(copy, _mover(*data) if op is None else _reducer(*data, op, kind))

    return send


def _reducer(target: np.ndarray, source: np.ndarray, op: str, kind: str):
    """Element by element, `target` becomes `op` of itself and `source`."""
    dtype = np.dtype(f"u{WIDTH[kind] // 8}")

    def move() -> None:
        held = target.view(dtype)
        atomics.apply(held, np.arange(held.size), op, kind, source.view(dtype).copy())

    return move


@step("cp.async.bulk.global.shared::cta")
def build_store(instr: Instr, b: FunctionBuilder) -> Step:
    """`cp.async.bulk.global.shared::cta.bulk_group [d], [s], size`."""
    if "cp_mask" in instr.mods:
        raise unsupported(instr)
    return _out(instr, b, None, "")


def _out(instr: Instr, b: FunctionBuilder, op: str | None, kind: str) -> Step:
    target, source, size, *rest = instr.operands
    split_optional(b, instr, rest)
    get_target, get_source = address_of(b, target), address_of(b, source)
    get_size = b.read(size, "u32")

    def store(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        sizes = sizes_of(m, instr, get_size, R, act)
        came = shared_range(m, instr, m.each(get_source(R), act), sizes, act, False)
        to = global_range(m, instr, m.each(get_target(R), act), sizes, act, True)
        for lane, start, target_at, n in zip(
            act.idx.tolist(), came.tolist(), to.tolist(), sizes.tolist(), strict=True
        ):
            copy = _copy(
                m, "bulk_store" if op is None else "bulk_reduce", instr, lane, start, n,
                global_start=target_at, op=op, groups=m.groups_closed["bulk"][lane : lane + 1].copy(),
            )  # fmt: skip
            data = m.memory.buffer.u8[target_at : target_at + n], _block_bytes(m, start, n)
            m.copies.issue(copy, _mover(*data) if op is None else _reducer(*data, op, kind))

    return store


@step("cp.reduce.async.bulk")
def build_reduce(instr: Instr, b: FunctionBuilder) -> Step:
    """`cp.reduce.async.bulk.dst.src.completion.op.type`."""
    op = next((mod for mod in instr.mods if mod in REDUCTIONS), None)
    kind = instr.mods[-1]
    if op is None or kind not in WIDTH:
        raise unsupported(instr)
    if instr.mods[3] == "global":
        return _out(instr, b, op, kind)
    return _between(instr, b, op, kind)


@step("cp.async.bulk.prefetch.L2.global")
def build_prefetch(instr: Instr, b: FunctionBuilder) -> Step:
    """Nothing: there is no cache to fill."""
    address_of(b, instr.operands[0])
    return lambda m, R, mask: None


@step("cp.async.bulk.commit_group")
def build_commit(instr: Instr, b: FunctionBuilder) -> Step:
    """Close the bulk group."""
    return groups.commit(instr, "bulk")


@control("cp.async.bulk.wait_group")
def build_wait(instr: Instr, b: FunctionBuilder) -> Control:
    """`cp.async.bulk.wait_group{.read} n`: a copy here is read and written in one go."""
    (n,) = instr.operands
    if not isinstance(n, Imm) or isinstance(n, Reg):
        raise unsupported(instr)
    return groups.wait(instr, "bulk", int(n.value), "read" in instr.mods)
