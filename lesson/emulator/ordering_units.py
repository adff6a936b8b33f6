"""The units that shadows of shared memory are kept in: as wide as the kernel's narrowest access."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lesson.emulator.program import Program


@lru_cache(maxsize=16)
def narrowest_store(program: Program) -> int:
    """Bytes of the narrowest store or load that may touch shared memory: 1, 2 or 4."""
    widths = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2}
    unit = 4
    for code in program.functions:
        for item in code.function.body or ():
            mods = getattr(item, "mods", ())
            is_access = getattr(item, "opcode", "") in ("st", "ld") and mods
            if (
                is_access
                and mods[-1] in widths
                and not {"param", "global", "local", "const"} & set(mods)
            ):
                unit = min(unit, widths[mods[-1]])
    return unit


def units(index: np.ndarray, nbytes: int, shift: int) -> tuple[np.ndarray, int]:
    """The units of some accesses, and how many each has."""
    first = index >> shift
    count = max(nbytes >> shift, 1)
    if count == 1:
        return first, 1
    return (first[:, None] + np.arange(count)).reshape(-1), count
