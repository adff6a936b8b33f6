"""Fences and memory barriers.

PTX ISA, "membar, fence". Memory is sequentially consistent here, so a fence changes nothing;
observers are told, because who may see what an asynchronous copy writes does depend on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lesson.emulator.isa import Step, step, unsupported
from lesson.emulator.lanes import Mask
from lesson.emulator.ptx import Instr

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.operands import FunctionBuilder

_PLAIN = frozenset(
    [
        "sc",
        "acq_rel",
        "acquire",
        "release",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "cl",
        "gl",
        "mbarrier_init",
        "proxy",
        "alias",
        "async",
        "tensormap::generic",
        "async::generic",
        "sync_restrict::shared::cta",
        "sync_restrict::shared::cluster",
        "global",
        "shared::cta",
        "shared::cluster",
        "tensormap",
    ]
)


@step("fence", "membar")
def build_fence(instr: Instr, b: FunctionBuilder) -> Step:
    """Any fence."""
    if not _PLAIN.issuperset(instr.mods):
        raise unsupported(instr)

    def fence(m: Machine, R: list, mask: Mask | None) -> None:
        if m.observers:
            lanes = m.active(mask).idx
            for observer in m.observers:
                observer.fence(m, instr, lanes)

    return fence
