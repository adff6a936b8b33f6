"""Groups of asynchronous copies that a thread closes and waits for.

PTX ISA, "cp.async.commit_group, cp.async.wait_group" and "cp.async.bulk.commit_group,
cp.async.bulk.wait_group". Each thread numbers its groups from 0; a copy belongs to the group that
its thread closes next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lesson.emulator.isa import Control, Step
from lesson.emulator.lanes import EMPTY, Mask
from lesson.emulator.ptx import Imm, Instr, Operand
from lesson.emulator.simt import Parked

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.simt import Group

MAX_GROUPS = 1 << 31


def commit(instr: Instr, family: str) -> Step:
    """Close the open group of each lane."""

    def run(m: Machine, R: list, mask: Mask | None) -> None:
        act = m.active(mask)
        m.groups_closed[family][act.idx] += 1
        for observer in m.observers:
            observer.commit(m, instr, act.idx)

    return run


def _free(m: Machine, mask: Mask, family: str, n: int) -> Mask:
    """The lanes that have at most `n` closed groups pending: EMPTY, the mask itself or a part."""
    lanes = mask.idx
    pending = m.copies.pending(family, lanes, m.groups_closed[family][lanes] - n - 1)
    if not pending.any():
        return mask
    bits = np.zeros(m.nlanes, np.bool_)
    bits[lanes[~pending]] = True
    found = Mask(bits)
    return found if found.n else EMPTY


def allowed(operand: Operand) -> int:
    """How many groups may be pending, as an instruction gives it."""
    if not isinstance(operand, Imm) or not 0 <= operand.value < MAX_GROUPS:
        raise ValueError(f"the groups that may be pending must be a constant, not {operand}")
    return int(operand.value)


def wait(instr: Instr, family: str, n: int, read: bool) -> Control:
    """Wait until at most `n` closed groups of each lane are pending; -1: for every copy of it."""

    def told(m: Machine, mask: Mask) -> None:
        for observer in m.observers:
            observer.wait_group(m, instr, mask.idx, n, read)

    def control(m: Machine, group: Group) -> bool:
        act = m.active(group.mask)
        going = _free(m, act, family, n) if m.copies.queue else act
        if going is act:
            told(m, act)
            group.block += 1
            return False
        parked = Parked(
            "group",
            group,
            act,
            instr,
            lambda mask: _free(m, mask, family, n),
            lambda mask, late: told(m, mask),
            {"family": family, "allowed": n},
        )
        m.simt.park(parked)
        m.simt.is_dirty = True
        return True

    return control
