"""Atomic operations on memory: `atom` and `red`.

PTX ISA, "Parallel Synchronization and Communication Instructions: atom, red"; the arithmetic is in
`atomics`. Global, shared and generic addresses, every scalar and packed type, and the vector forms
of sm_90, whose elements are atomic one by one. Memory is the same for all at once, so semantics,
scopes and cache hints add nothing. The 128-bit forms and `multimem` are not modelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator import atomics
from lesson.emulator.isa import Step, step, unsupported
from lesson.emulator.isa_memory import LOCATE, address_of, by_space, observe
from lesson.emulator.isa_move import space_in
from lesson.emulator.lanes import Mask, scattered
from lesson.emulator.memory import Place
from lesson.emulator.operands import Dest, FunctionBuilder, Read, kind_of
from lesson.emulator.ptx import Instr, Operand, Sink, Vec
from lesson.emulator.registers import WIDTH

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine

_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas")
_SPACES = ("", "global", "shared", "shared::cluster")
_QUALIFIERS = frozenset(
    [
        *["relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys"],
        *["global", "shared", "shared::cta", "shared::cluster", "noftz", "L2::cache_hint"],
        *["v2", "v4", "v8"],
    ]
)


class Atomic:
    """One instruction: what it does to memory, and where its operands are."""

    def __init__(self, instr: Instr, f: FunctionBuilder) -> None:
        self.instr = instr
        self.kind = kind_of(instr)
        operations = [mod for mod in instr.mods if mod in _OPERATIONS]
        known = {self.kind, *operations, *_QUALIFIERS}
        space = "shared::cluster" if "shared::cluster" in instr.mods else space_in(instr)
        is_modelled = len(operations) == 1 and self.kind in WIDTH and space in _SPACES
        if not is_modelled or not known.issuperset(instr.mods):
            raise unsupported(instr)
        (self.op,) = operations
        self.size = WIDTH[self.kind] // 8
        target, address, *sources = (
            instr.operands if instr.opcode == "atom" else (None, *instr.operands)
        )
        wanted = 2 if self.op == "cas" else 1
        self.find, self.locate = address_of(f, address), LOCATE[space]
        self.sources = [self._reads(f, each) for each in sources[:wanted]]
        if len(self.sources) != wanted:
            raise unsupported(instr)
        self.count = len(self.sources[0])
        self.dests = self._results(f, target)
        atomics.check(self.op, self.kind)

    def _reads(self, f: FunctionBuilder, operand: Operand) -> list[Read]:
        items = operand.items if isinstance(operand, Vec) else (operand,)
        return [f.read(each, self.kind) for each in items]

    def _results(self, f: FunctionBuilder, target: Operand | None) -> list[Dest] | None:
        """Where old values go; None where nobody wants them."""
        if target is None or isinstance(target, Sink):
            return None
        items = target.items if isinstance(target, Vec) else (target,)
        if len(items) != self.count:
            raise unsupported(self.instr)
        return [f.dest(each, self.kind) for each in items]

    def run(self, m: Machine, R: list, mask: Mask | None) -> None:
        """Update memory for the lanes of a mask, space by space where generic addresses differ."""
        act = m.active(mask)
        addresses = m.of(self.find(R), act)
        nbytes = self.size * self.count
        place = self.locate(m, self.instr, addresses, nbytes, act, True)
        if place is None:
            for part, _ in by_space(m, addresses, act):
                self.run(m, R, part)
            return
        index = np.broadcast_to(place.index, act.n) // self.size
        for k in range(self.count):
            self._update(m, R, act, place, index + k, k)
        m.version += 1
        if m.observers:
            observe(m, self.instr, "atomic", place, act, nbytes)

    def _update(
        self, m: Machine, R: list, act: Mask, place: Place, index: atomics.Index, k: int
    ) -> None:
        """One element: the whole operand, or one of a vector."""
        operands = [m.of(source[k](R), act) for source in self.sources]
        old = atomics.apply(
            place.buffer.views[self.size],
            index,
            self.op,
            self.kind,
            *operands,
            flush=self.kind == "f32" and place.space == "global",
            wants_old=self.dests is not None,
        )
        if self.dests is not None:
            slot, widen = self.dests[k]
            old = old if widen is None else widen(old)
            R[slot] = old if act.n == m.nlanes else scattered(R[slot], old, act)


@step("atom", "red")
def build_atomic(instr: Instr, f: FunctionBuilder) -> Step:
    return Atomic(instr, f).run
