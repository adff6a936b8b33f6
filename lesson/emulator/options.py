"""Are the options of a launch of their types, before anything is run with them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from lesson.emulator.copies import SCHEDULES
from lesson.errors import LaunchError


def check_options(
    args: Any, symbols: Any, schedule: Any, seed: Any, batch_blocks: Any
) -> tuple[int, int | None]:
    """Raises LaunchError for what no launch can be given; the seed and the blocks as ints."""
    if not isinstance(args, Sequence) or isinstance(args, str | bytes | bytearray):
        raise LaunchError(
            f"the arguments must be a list, got {type(args).__name__}. Pass [] if there are none."
        )
    if symbols is not None and not isinstance(symbols, Mapping):
        raise LaunchError(
            f"symbols must be a dictionary from name to contents, got {type(symbols).__name__}."
        )
    if not isinstance(schedule, str) or schedule not in SCHEDULES:
        raise LaunchError(f"schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}.")
    blocks = None if batch_blocks is None else _whole("batch_blocks", batch_blocks, 1)
    return _whole("seed", seed, 0), blocks


def _whole(name: str, value: Any, least: int) -> int:
    """A Python int that is not too small."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise LaunchError(f"{name} must be a whole number from {least}, got {value!r}.")
    return number
