"""Evaluates the short PTX sequences of the recorded ALU variants, straight from `alu.find`.

For tests of the instruction functions alone: it knows registers, immediates, guards, `{}` packing
and nothing else of PTX, and shares no code with the emulator's parser and core.
"""

from __future__ import annotations

import re
import struct

import numpy as np

from lesson.emulator import alu
from lesson.emulator.alu.forms import NBITS, storage

UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}
MEMBERS = {"p": 1, "h": 16, "r": 32, "l": 64}


def dtype_of(nbits: int) -> type[np.generic]:
    return np.bool_ if nbits == 1 else UNSIGNED[nbits]


class Registers:
    """Register names to bits, every register of a declared width."""

    def __init__(self, nbits: dict[str, int]) -> None:
        self.nbits, self.values = nbits, {}

    def width(self, name: str) -> int:
        return self.nbits.get(name) or MEMBERS[name[1]]

    def write(self, name: str, value: np.ndarray, kind: str) -> None:
        """Extend or cut a value of a type to the register: signed types by the sign."""
        nbits, width = NBITS[kind], self.width(name)
        if width > 1 and kind[0] == "s" and width > nbits and "x" not in kind:
            wide = value.astype(np.uint64) << np.uint64(64 - nbits)
            value = (wide.view(np.int64) >> np.int64(64 - nbits)).view(np.uint64)
        self.values[name] = value.astype(dtype_of(width))

    def read(self, text: str, kind: str) -> np.ndarray:
        if text[0] in "%!":
            value = self.values[text.lstrip("!")]
            value = ~value if text[0] == "!" else value
        else:
            value = np.array([immediate(text, kind)], np.uint64)
        if NBITS[kind] == 8:
            value = value.astype(np.uint16) & np.uint16(0xFF)
        return value.astype(storage(kind))


def immediate(text: str, kind: str) -> int:
    """The bits of a literal, as an operand of a type."""
    mask = (1 << NBITS[kind]) - 1
    if kind in ("f32", "f64"):
        if text[:2].lower() in ("0f", "0d"):
            return int(text[2:], 16)
        code = "f" if kind == "f32" else "d"
        return int.from_bytes(struct.pack("<" + code, float(text)), "little")
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text)
    digits = digits.rstrip("U")
    base = (
        16
        if digits[:2] in ("0x", "0X")
        else 2
        if digits[:2] == "0b"
        else 8
        if digits[0] == "0"
        else 10
    )
    return sign * int(digits, base) & mask


def split_operands(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^{]*\})", text)]


def evaluate(ptx: str, registers: Registers) -> None:
    """Run every statement; results go to the registers. Raises LookupError for an unknown form."""
    carry: np.ndarray | None = None
    for statement in filter(None, (s.strip() for s in ptx.split(";"))):
        guard, _, guarded = statement.partition(" ") if statement[0] == "@" else ("", "", statement)
        name, rest = guarded.split(" ", 1)
        opcode, *mods = name.split(".")
        before = dict(registers.values)
        if "{" in rest:
            move_vector(mods[0], split_operands(rest), registers)
        else:
            carry = step(opcode, tuple(mods), split_operands(rest), registers, carry)
        if guard:
            mask = registers.read(guard[1:], "pred")
            for register, value in before.items():
                registers.values[register] = np.where(mask, registers.values[register], value)


def step(
    opcode: str, mods: tuple[str, ...], operands: list[str], registers: Registers, carry: object
) -> object:
    """One instruction; returns the carry flag after it."""
    targets, sources = operands[0].split("|"), operands[1:]
    found = alu.find(opcode, mods, len(sources), len(targets))
    if found is None:
        raise LookupError(f"{opcode}.{'.'.join(mods)} with {len(sources)} operands is not known")
    values = [registers.read(s, kind) for s, kind in zip(sources, found.ins, strict=True)]
    if found.carry.startswith("in"):
        values.append(carry)
    results = found.fn(*values)
    results = list(results) if isinstance(results, tuple) else [results]
    if found.carry.endswith("out"):
        carry = results.pop()
    for target, value, kind in zip(targets, results, found.outs, strict=True):
        assert value.dtype == storage(kind), (opcode, mods, value.dtype)
        registers.write(target, value, kind)
    return carry


def move_vector(kind: str, operands: list[str], registers: Registers) -> None:
    """mov between a register and a vector of narrower ones."""
    target, source = operands
    if target[0] == "{":
        parts = [p.strip() for p in target.strip("{}").split(",")]
        nbits, whole = NBITS[kind] // len(parts), registers.read(source, kind).astype(np.uint64)
        for i, part in enumerate(parts):
            if part != "_":
                registers.write(
                    part, (whole >> np.uint64(i * nbits)).astype(dtype_of(nbits)), f"b{nbits}"
                )
        return
    parts = [p.strip() for p in source.strip("{}").split(",")]
    nbits, total = NBITS[kind] // len(parts), np.zeros(1, np.uint64)
    for i, part in enumerate(parts):
        total = total | (
            registers.read(part, f"b{nbits}").astype(np.uint64) << np.uint64(i * nbits)
        )
    registers.write(target, total, kind)
