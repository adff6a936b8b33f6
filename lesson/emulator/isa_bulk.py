"""Bulk copies of one dimension: global to shared memory and back, between blocks of a cluster,
reductions.

PTX ISA, "Data Movement and Conversion Instructions: Bulk copy". The size is a multiple of 16 bytes,
and so are the addresses. Copies into shared memory complete on an mbarrier, those out of it in a
bulk group of the thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator import atomics, groups
from lesson.emulator.bulk_operands import (
    barrier_index,
    global_range,
    shared_range,
    sizes_of,
    split_optional,
    targets_of,
)
from lesson.emulator.isa import Control, Step, control, step, unsupported
from lesson.emulator.isa_memory import address_of
from lesson.emulator.lanes import Mask
from lesson.emulator.observe import Copy
from lesson.emulator.ptx import Instr
from lesson.emulator.registers import WIDTH

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder

REDUCTIONS = frozenset(["and", "or", "xor", "add", "inc", "dec", "min", "max"])


def _block_bytes(m: Machine, start: int, nbytes: int) -> np.ndarray:
    return m.shared.u8[start : start + nbytes]


@step("cp.async.bulk.shared::cluster.global", "cp.async.bulk.shared::cta.global")
def build_load(instr: Instr, b: FunctionBuilder) -> Step:
    """`cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [d], [s], size, [mbar]{,
    mask}`.
    """
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


def _mover(target: np.ndarray, source: np.ndarray) -> Callable[[], None]:
    def move() -> None:
        target[:] = source

    return move


@step("cp.async.bulk.shared::cluster.shared::cta")
def build_between(instr: Instr, b: FunctionBuilder) -> Step:
    """From the shared memory of the block to that of any block of the cluster, with an mbarrier
    there.
    """
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


def _reducer(target: np.ndarray, source: np.ndarray, op: str, kind: str) -> Callable[[], None]:
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
                global_start=target_at, op=op,
                groups=m.groups_closed["bulk"][lane : lane + 1].copy(),
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
    return groups.wait(instr, "bulk", groups.allowed(n), "read" in instr.mods)
