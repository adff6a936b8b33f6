"""Stores and reductions into the shared memory of another block that count on its mbarrier.

PTX ISA, "Data Movement and Conversion Instructions: st.async" and "Parallel Synchronization and
Communication Instructions: red.async", with `.shared::cluster` and
`.mbarrier::complete_tx::bytes`. Each lane's store is a copy of its own in the queue; its source is
a register, read at once. The forms on global memory (`.mmio`, sm_100) are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator import atomics
from lesson.emulator.bulk_operands import barrier_index
from lesson.emulator.isa import Step, step, unsupported
from lesson.emulator.isa_bulk import REDUCTIONS
from lesson.emulator.isa_memory import address_of
from lesson.emulator.lanes import Mask
from lesson.emulator.memory import shared_place
from lesson.emulator.observe import Copy
from lesson.emulator.operands import kind_of
from lesson.emulator.ptx import Instr, Vec
from lesson.emulator.registers import WIDTH

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder

_NEEDED = {"async", "shared::cluster", "mbarrier::complete_tx::bytes"}
_COUNTS = {"v2": 2, "v4": 4}
_KINDS = frozenset(["b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"])


@step("st.async")
def build_store(instr: Instr, b: FunctionBuilder) -> Step:
    """`st.async{.weak}.shared::cluster.mbarrier::complete_tx::bytes{.vec}.type [d], v, [mbar]`."""
    return _built(instr, b, None, {"weak", *_COUNTS})


@step("red.async")
def build_reduce(instr: Instr, b: FunctionBuilder) -> Step:
    """`red.async{.relaxed.cluster}.shared::cluster.mbarrier::complete_tx::bytes.op.type ...`."""
    op = next((mod for mod in instr.mods if mod in REDUCTIONS), None)
    if op is None:
        raise unsupported(instr)
    atomics.check(op, kind_of(instr))
    return _built(instr, b, op, {"relaxed", "cluster", op})


def _built(instr: Instr, b: FunctionBuilder, op: str | None, optional: set[str]) -> Step:
    kind, mods = kind_of(instr), set(instr.mods)
    count = next((_COUNTS[mod] for mod in instr.mods if mod in _COUNTS), 1)
    if not (mods > _NEEDED and mods - _NEEDED - {kind} <= optional and kind in _KINDS):
        raise unsupported(instr)
    target, source, barrier = instr.operands
    sources = source.items if isinstance(source, Vec) else (source,)
    if len(sources) != count:
        raise unsupported(instr)
    reads = [b.read(each, kind) for each in sources]
    get_target, get_barrier = address_of(b, target), address_of(b, barrier)
    size = WIDTH[kind] // 8
    nbytes = size * count

    def send(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        to = shared_place(m, instr, m.each(get_target(R), act), nbytes, act, True).index
        bars = barrier_index(m, instr, get_barrier, R, act)
        values = np.stack([m.each(read(R), act) for read in reads], axis=1)
        rows = zip(act.idx.tolist(), to.tolist(), bars.tolist(), values, strict=True)
        for lane, start, bar, value in rows:
            copy = Copy(
                0, "st_async", instr, lane, start // m.shared_stride, nbytes=nbytes, barrier=bar,
                smem_start=start, smem_stop=start + nbytes, op=op, lanes=np.array([lane]),
            )  # fmt: skip
            target = m.shared.views[size][start // size : start // size + count]
            m.copies.issue(copy, _mover(target, value, op, kind))

    return send


def _mover(target: np.ndarray, value: np.ndarray, op: str | None, kind: str) -> Callable[[], None]:
    """Writes `value`, or reduces one element by it."""

    def move() -> None:
        if op is None:
            target[:] = value
        else:
            atomics.apply(target, np.zeros(1, np.int64), op, kind, value, wants_old=False)

    return move
