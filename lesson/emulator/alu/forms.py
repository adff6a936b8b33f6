"""An ALU instruction: its form (opcode, modifiers, types) and the function that computes it.

Models the split of a PTX opcode into a name, flags and types, and the tables in which each file of
this package defines its instructions. Does no arithmetic. Follows the PTX ISA, "Instruction
Statements" and "Types".

Values are raw bits. An operand is an array of shape (n,) or (1,) in the type's storage: `uint16`
for 8- and 16-bit types, `uint32`, `uint64`, or `bool` for a predicate. An 8-bit value is
zero-extended, as an operand and as a result. Functions are pure, and expect their caller to have
set `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

Fn = Callable[..., object]

NBITS = {
    **{f"{kind}{n}": n for kind in "usb" for n in (8, 16, 32, 64)},
    **{"pred": 1, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "tf32": 32},
    **{"u16x2": 32, "s16x2": 32, "f16x2": 32, "bf16x2": 32, "f32x2": 64},
    **{"e4m3x2": 16, "e5m2x2": 16, "u4": 4, "s4": 4, "u2": 2, "s2": 2},
}

INT16 = ("u16", "s16")
INT32_64 = ("u32", "s32", "u64", "s64")
INTS = INT16 + INT32_64
BITS = ("b16", "b32", "b64")

UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}
SIGNED = {16: np.int16, 32: np.int32, 64: np.int64}

# Modifiers that make another instruction of an opcode, rather than another flavour of the same one.
SELECTORS = frozenset({"lo", "hi", "wide", "cc", "l", "r", "pack"})
COMPARISONS = frozenset({"setp", "set"})  # there `lo` and `hi` are comparisons


def storage(kind: str) -> type[np.generic]:
    """The dtype that holds a value of a PTX type."""
    return np.bool_ if kind == "pred" else UNSIGNED[max(NBITS[kind], 16)]


def is_signed(kind: str) -> bool:
    return kind.startswith("s")


@dataclass(frozen=True, slots=True)
class Alu:
    """A computable instruction: `fn` on raw bits, and the PTX types of what goes in and comes out.

    `carry` is "in", "out" or "inout" for the instructions that read or write CC.CF: a bool array is
    then the last argument, or the last of the results.
    """

    fn: Fn
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    carry: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write an instruction: `mul.hi.s32` has name `mul.hi` and type `s32`."""

    name: str
    flags: frozenset[str]
    types: tuple[str, ...]
    nargs: int
    nouts: int

    @classmethod
    def parse(cls, opcode: str, mods: tuple[str, ...], nargs: int, nouts: int) -> Form:
        types = tuple(m for m in mods if m in NBITS)
        others = [m for m in mods if m not in NBITS]
        chosen = [] if opcode in COMPARISONS else [m for m in others if m in SELECTORS]
        flags = frozenset(m for m in others if m not in chosen)
        return cls(".".join([opcode, *chosen]), flags, types, nargs, nouts)

    @property
    def type(self) -> str:
        return self.types[-1]

    @property
    def nbits(self) -> int:
        return NBITS[self.types[-1]]

    @property
    def signed(self) -> bool:
        return is_signed(self.types[-1])

    def choice(self, *names: str, default: str = "") -> str:
        """The one of these modifiers that is present."""
        return next((name for name in names if name in self.flags), default)


@dataclass(frozen=True, slots=True)
class Signature:
    """Operand and result types, as in `T T u32 -> W`.

    T is the opcode's last type, U the last but one, W is twice as wide as T.
    """

    ins: tuple[str, ...]
    outs: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        ins, outs = text.split("->")
        return cls(tuple(ins.split()), tuple(outs.split()))

    def resolve(self, types: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The types of operands and results, for a form's types."""
        last = types[-1]
        names = {"T": last, "U": types[-2] if len(types) > 1 else ""}
        if "W" in self.ins + self.outs:
            names["W"] = last[0] + str(2 * int(last[1:]))
        ins = tuple(names.get(kind, kind) for kind in self.ins)
        return ins, tuple(names.get(kind, kind) for kind in self.outs)


@dataclass(frozen=True, slots=True)
class Definition:
    """An entry of a table: builds the function of every form that has these flags and operands."""

    build: Callable[[Form], Fn | None]
    signatures: tuple[Signature, ...]
    flags: frozenset[str]
    ntypes: int

    def alu(self, form: Form) -> Alu | None:
        if not form.flags <= self.flags or len(form.types) != self.ntypes:
            return None
        for signature in self.signatures:
            if (len(signature.ins), len(signature.outs)) == (form.nargs, form.nouts):
                fn = self.build(form)
                if fn is not None:
                    return Alu(fn, *signature.resolve(form.types), carry_of(form.name))
        return None


def carry_of(name: str) -> str:
    """How an instruction of this name uses CC.CF."""
    opcode, _, selectors = name.partition(".")
    reads, writes = opcode in ("addc", "subc", "madc"), selectors.endswith("cc")
    return "in" * reads + "out" * writes


@dataclass
class Table:
    """The instructions that one file defines, by name and last type."""

    entries: dict[tuple[str, str], list[Definition]] = field(default_factory=dict)

    def define(
        self, names: str, types: Iterable[str], *signatures: str, flags: str = "", ntypes: int = 0
    ) -> Callable[[Callable[[Form], Fn | None]], Callable[[Form], Fn | None]]:
        """Register the builder below it for every name and type.

        `types` are those that may come last in the opcode, which names `ntypes` of them: by default
        two if a signature has a U, else one. A builder returns None for a combination of flags and
        types that PTX does not have.
        """
        parsed = tuple(Signature.parse(text) for text in signatures)
        count = ntypes or (2 if any("U" in s.ins + s.outs for s in parsed) else 1)

        def register(build: Callable[[Form], Fn | None]) -> Callable[[Form], Fn | None]:
            definition = Definition(build, parsed, frozenset(flags.split()), count)
            for name in names.split():
                for kind in types:
                    self.entries.setdefault((name, kind), []).append(definition)
            return build

        return register


def on_signed(fn: Fn, nbits: int) -> Fn:
    """A function of two or three signed arrays, seen as one of raw bits."""
    inner, outer = SIGNED[nbits], UNSIGNED[nbits]

    def run(a: np.ndarray, b: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        return fn(a.view(inner), b.view(inner), *(c.view(inner) for c in rest)).view(outer)

    return run


def on_lanes(fn: Fn, lane: type[np.generic]) -> Fn:
    """A function of scalars, applied to each lane of packed values."""

    def run(*packed: np.ndarray) -> np.ndarray:
        whole = packed[0].dtype
        lanes = [np.ascontiguousarray(p).view(lane).reshape(len(p), -1) for p in packed]
        return np.ascontiguousarray(fn(*lanes)).view(whole).reshape(-1)

    return run
