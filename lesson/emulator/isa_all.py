"""Importing this fills the instruction table."""

from lesson.emulator import (
    isa_alu,
    isa_async,
    isa_atomic,
    isa_barrier,
    isa_bulk,
    isa_call,
    isa_control,
    isa_fence,
    isa_matrix,
    isa_mbarrier,
    isa_memory,
    isa_move,
    isa_store_async,
    isa_tensor,
    isa_warp,
)

__all__ = [
    "isa_alu",
    "isa_async",
    "isa_atomic",
    "isa_barrier",
    "isa_bulk",
    "isa_call",
    "isa_control",
    "isa_fence",
    "isa_matrix",
    "isa_mbarrier",
    "isa_memory",
    "isa_move",
    "isa_store_async",
    "isa_tensor",
    "isa_warp",
]
