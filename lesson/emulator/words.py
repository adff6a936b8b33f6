"""Values in the words of an error: short, whatever they are."""

from __future__ import annotations

MAX_LENGTH = 80


def shown(value: object) -> str:
    """A value as text that fits in a sentence; Python refuses to spell out very long integers."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."
