"""Where the state spaces lie in the generic address space, as 64-bit numbers.

PTX ISA, "State Spaces" and "Generic Addressing". The numbers are this emulator's own, but for one
fact of Hopper: shared memory addresses are 32 bits, the block's rank in its cluster in the top
byte, and the first variable at 0x400.
"""

from __future__ import annotations

import numpy as np

SHARED_FIRST = 0x400
SHARED_RANK_SHIFT = 24
SHARED_OFFSET_MASK = (1 << SHARED_RANK_SHIFT) - 1
SHARED_WINDOW = 0x7A00_0000_0000
LOCAL_WINDOW = 0x7B00_0000_0000
WINDOW_NBYTES = 1 << 32
GLOBAL_BASE = 0x7F00_0000_0000
FUNCTION_BASE = 0x10_0000
FUNCTION_STEP = 0x80
CALL_PARAM_BASE = 1 << 24
"""Parameters of device functions lie in local memory; in .param space they start here."""

SHARED_WINDOW_U64 = np.uint64(SHARED_WINDOW)
LOCAL_WINDOW_U64 = np.uint64(LOCAL_WINDOW)
GLOBAL_BASE_U64 = np.uint64(GLOBAL_BASE)
