"""From the operands of one function to slots of its register frame.

Every operand becomes a slot: registers, constants, special registers and addresses of variables
alike. So a compiled instruction only indexes a list. What depends on the launch is filled in when a
frame is made.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lesson.emulator.lanes import UNDEFINED, Mask, merged
from lesson.emulator.layout import Place, frame_layout, param_layout
from lesson.emulator.ptx import Function, Imm, Instr, Not, Operand, Reg, Sink, Sym, Variable
from lesson.emulator.ptx_scope import SPECIAL
from lesson.emulator.registers import BOOL, Convert, Values, cut, extend, immediate, storage
from lesson.emulator.special import CLOCKS, SPECIALS
from lesson.emulator.windows import CALL_PARAM_BASE, FUNCTION_BASE, FUNCTION_STEP
from lesson.errors import PtxSyntaxError, UnsupportedPtx

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.program import Program

Fill = Callable[["Machine", int], Values]
Read = Callable[[list], Values]
Write = Callable[[list, Values, Mask | None], None]


class Source(NamedTuple):
    """Where an operand comes from. `adapt` turns the register's bits into the type's; None: they
    are.
    """

    slot: int
    adapt: Convert | None


class Dest(NamedTuple):
    """Where a result goes. `widen` turns the type's bits into the register's; None: they are."""

    slot: int
    widen: Convert | None


def bind(R: list, slot: int, values: Values, mask: Mask | None) -> None:
    """Give a register a new value in the lanes of a mask."""
    R[slot] = values if mask is None else merged(R[slot], values, mask)


class FunctionBuilder:
    """Slots of one function while it is compiled. `block`: number of the block being built."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program, self.function = program, function
        self.template: list[Any] = [0]
        self.fills: list[tuple[int, Fill]] = []
        self.layout = frame_layout(function)
        self.params = param_layout(function.params) if function.is_entry else {}
        self.labels: dict[str, int] = {}
        self.block = 0
        self.line = function.line
        self.reads: set[int] = set()
        self.writes: set[int] = set()
        self.clock_slots: set[int] = set()
        self._slots: dict[object, int] = {}
        self._dtypes: dict[int, np.dtype] = {}

    # ------------------------------------------------------------------------------- slots
    def _new(self, key: object, value: Values) -> int:
        slot = self._slots[key] = len(self.template)
        self.template.append(value)
        self._dtypes[slot] = value.dtype
        return slot

    def register(self, reg: Reg) -> int:
        """Slot of a declared register."""
        slot = self._slots.get(reg.name)
        if slot is None:
            kind = self.function.registers.get(reg.name)
            if kind is None:
                raise PtxSyntaxError(
                    f"a register must be declared, got {reg.name}. PTX line {self.line}."
                )
            if kind == "b128":
                raise UnsupportedPtx(
                    f"a register must have at most 64 bits, got .b128. PTX line {self.line}."
                )
            slot = self._new(reg.name, UNDEFINED[storage(kind)])
        return slot

    def register_slots(self) -> dict[str, int]:
        """Slot of every register that is in use."""
        return {key: slot for key, slot in self._slots.items() if isinstance(key, str)}

    def hidden(self, name: str, dtype: np.dtype) -> int:
        """Slot of a register that PTX does not name, such as the carry flag."""
        key = ("hidden", name, dtype)
        found = self._slots.get(key)
        return self._new(key, UNDEFINED[dtype]) if found is None else found

    def constant(self, values: Values) -> int:
        """Slot of a constant."""
        key = ("constant", values.dtype, values.tobytes())
        found = self._slots.get(key)
        return self._new(key, values) if found is None else found

    def filled(self, key: object, dtype: np.dtype, fill: Fill) -> int:
        """Slot of a value that is known when the frame is made."""
        found = self._slots.get((key, dtype))
        if found is None:
            found = self._new((key, dtype), np.zeros(1, dtype))
            self.fills.append((found, lambda m, depth: fill(m, depth).astype(dtype, copy=False)))
        return found

    def _special(self, reg: Reg) -> int:
        family = reg.name[1:].partition(".")[0]
        if reg.name in CLOCKS or family not in SPECIALS:
            raise UnsupportedPtx(
                f"a special register must be one that is modelled here, got {reg.name}. PTX line "
                f"{self.line}."
            )
        name = reg.name
        dtype = (
            np.dtype(np.uint64)
            if family in ("gridid", "current_graph_exec")
            else np.dtype(np.uint32)
        )
        if family == "is_explicit_cluster":
            dtype = BOOL
        return self.filled(name, dtype, lambda m, depth: m.special(name))

    # ---------------------------------------------------------------------------- operands
    def source(self, operand: Operand, kind: str) -> Source:
        """An operand read as a type."""
        if isinstance(operand, Imm):
            return Source(self.constant(immediate(operand, kind)), None)
        if isinstance(operand, Sym):
            return Source(self.address(operand, storage(kind)), None)
        negate = isinstance(operand, Not)
        reg = operand.reg if isinstance(operand, Not) else operand
        if not isinstance(reg, Reg):
            raise UnsupportedPtx(
                f"an operand must be a register or a constant, got {operand}. PTX line {self.line}."
            )
        is_special = reg.name in SPECIAL and reg.name not in self.function.registers
        slot = self._special(reg) if is_special else self.register(reg)
        self.reads.add(slot)
        self._same_class(slot, kind)
        if negate:
            return Source(slot, np.logical_not)
        return Source(slot, cut(self._dtypes[slot], kind))

    def _same_class(self, slot: int, kind: str) -> None:
        if (self._dtypes[slot] == BOOL) != (kind == "pred"):
            raise PtxSyntaxError(
                f"a predicate must meet .pred and nothing else, got .{kind}. PTX line {self.line}."
            )

    def read(self, operand: Operand, kind: str) -> Read:
        """A function from a frame to an operand's values."""
        slot, adapt = self.source(operand, kind)
        if adapt is None:
            return itemgetter(slot)
        return lambda R: adapt(R[slot])

    def dest(self, operand: Operand, kind: str) -> Dest:
        """A register that takes a result of a type; the sink takes any."""
        if isinstance(operand, Sink):
            return Dest(self.hidden("sink", storage(kind)), None)
        if not isinstance(operand, Reg) or (
            operand.name in SPECIAL and operand.name not in self.function.registers
        ):
            raise PtxSyntaxError(
                f"a result must go to a register, got {operand}. PTX line {self.line}."
            )
        slot = self.register(operand)
        self.writes.add(slot)
        self._same_class(slot, kind)
        return Dest(slot, extend(kind, self._dtypes[slot]))

    def write(self, operand: Operand, kind: str) -> Write:
        """A function that gives a register a result of a type."""
        slot, widen = self.dest(operand, kind)
        if widen is None:
            return lambda R, values, mask: bind(R, slot, values, mask)
        return lambda R, values, mask: bind(R, slot, widen(values), mask)

    def width_of(self, reg: Reg) -> str:
        """The untyped PTX type that fits a register: b16, b32, b64 or pred."""
        dtype = self._dtypes[self.register(reg)]
        return "pred" if dtype == BOOL else f"b{8 * dtype.itemsize}"

    # --------------------------------------------------------------------------- variables
    def variable(self, sym: Sym) -> Variable | None:
        """The variable that a name means in this function."""
        name = sym.name
        if name in self.function.variables:
            return self.function.variables[name]
        for formal in (*self.function.params, *self.function.returns):
            if formal.name == name:
                return formal
        return self.program.module.variables.get(name)

    def place(self, name: str) -> Place:
        """Where a parameter or local variable lies in the frame of the function."""
        return self.layout[name]

    def address(self, sym: Sym, dtype: np.dtype) -> int:
        """Slot with the address of a variable or function, in its own state space."""
        name, offset = sym.name, sym.offset
        variable = self.variable(sym)
        key = ("address", name, offset)
        if variable is None:
            if (
                name not in self.program.module.functions
                and name not in self.program.module.aliases
            ):
                raise PtxSyntaxError(f"a name must be declared, got {name}. PTX line {self.line}.")
            number = self.program.require(name)
            return self.constant(np.array([FUNCTION_BASE + FUNCTION_STEP * number], dtype))
        if variable.space in ("global", "const"):
            self.program.use(variable)
            return self.filled(key, dtype, lambda m, depth: _one(m.global_addresses[name] + offset))
        if variable.space == "shared":
            self.program.use_shared(self.function, variable)
            unique = self.program.shared_name(self.function, variable)
            return self.filled(
                key,
                dtype,
                lambda m, depth: m.shared_first + _one(m.shared_offsets[unique] + offset),
            )
        if name in self.params:
            return self.constant(
                np.array([self.params[name].offset + offset & (1 << 32) - 1], dtype)
            )
        if name in self.layout:
            base = (
                self.layout[name].offset
                + offset
                + (CALL_PARAM_BASE if variable.space == "param" else 0)
            )
            frame = self.program
            return self.filled(key, dtype, lambda m, depth: _one(base + depth * frame.frame_nbytes))
        raise UnsupportedPtx(
            f"a variable must lie in a state space that is modelled, got {name} in "
            f".{variable.space}. PTX line {self.line}."
        )

    def space_of(self, sym: Sym) -> str:
        """State space of a named variable."""
        variable = self.variable(sym)
        return variable.space if variable is not None else ""

    def target(self, operand: Operand) -> int:
        """Block number of a label."""
        name = operand.name if isinstance(operand, Sym) else ""
        if name not in self.labels:
            raise PtxSyntaxError(
                f"a branch target must be a label of the function, got {name!r}. PTX line "
                f"{self.line}."
            )
        return self.labels[name]


def _one(value: int) -> Values:
    return np.array([value & (1 << 64) - 1], np.uint64)


def kind_of(instr: Instr) -> str:
    """The type of an instruction: its last modifier that is one."""
    for mod in reversed(instr.mods):
        if mod in ("pred",) or mod in _TYPES:
            return mod
    raise UnsupportedPtx(f"{instr.name} must have a type. PTX line {instr.line}.")


_TYPES = frozenset(f"{kind}{width}" for kind in "bus" for width in (8, 16, 32, 64)) | {
    "f16", "bf16", "f16x2", "bf16x2", "f32", "f64", "b128",
}  # fmt: skip
