"""Bounds of a run, always enforced."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """`steps`: instructions issued, each for a group of lanes. `seconds`: wall clock.
    `memory_bytes`: arrays, shared and local memory, registers.
    """

    steps: int = 50_000_000
    seconds: float = 120.0
    memory_bytes: int = 2 << 30
