"""Importing this fills the instruction table."""

from lesson.emulator import (
    isa_alu,
    isa_barrier,
    isa_call,
    isa_control,
    isa_memory,
    isa_move,
    isa_warp,
)

__all__ = [
    "isa_alu",
    "isa_barrier",
    "isa_call",
    "isa_control",
    "isa_memory",
    "isa_move",
    "isa_warp",
]
