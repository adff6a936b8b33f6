"""A PTX emulator on numpy: threads of a Hopper GPU in lockstep, one array a register.

`launch(ptx, kernel, grid, block, args)` runs a kernel. What is modelled and what is not stands in
docs/emulator.md.
"""

from lesson.emulator.launch import Result, launch
from lesson.emulator.limits import Limits
from lesson.emulator.observe import Copy, Observer
from lesson.emulator.trace import Event, Trace

__all__ = ["Copy", "Event", "Limits", "Observer", "Result", "Trace", "launch"]
