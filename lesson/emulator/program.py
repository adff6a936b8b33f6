"""A parsed module linked for one kernel: flat blocks of compiled instructions.

Only functions that the kernel can reach are compiled. Nothing here depends on a launch, so a
program is kept and used again. PTX ISA, "Control Flow Instructions"; registers of clocks are traced
here for `progress`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from lesson.emulator import isa, isa_all
from lesson.emulator.isa import Control, Step
from lesson.emulator.isa_call import Site, no_body
from lesson.emulator.isa_control import build_skip, guarded
from lesson.emulator.layout import end_of, param_layout
from lesson.emulator.operands import Fill, FunctionBuilder
from lesson.emulator.ptx import Function, Instr, Label, Module, Sym, Variable, parse
from lesson.emulator.windows import FUNCTION_BASE, FUNCTION_STEP
from lesson.errors import LaunchError, PtxSyntaxError, UnsupportedPtx

__all__ = ["Block", "Code", "Program", "link"]
assert isa_all


@dataclass(slots=True)
class Block:
    """Instructions that run one behind the other; `control` says where next, None: fall through."""

    steps: tuple[Step, ...]
    control: Control | None
    count: int
    function: int
    first: Instr | None


@dataclass(slots=True)
class Code:
    """A compiled function. `clocked`: slots that depend on a clock."""

    function: Function
    entry: int = 0
    template: list = field(default_factory=list)
    fills: list[tuple[int, Fill]] = field(default_factory=list)
    clocked: frozenset[int] = frozenset()
    slots: dict[str, int] = field(default_factory=dict)


class Program:
    """A kernel with all that it calls."""

    def __init__(self, module: Module, kernel: str) -> None:
        self.module = module
        self.blocks: list[Block] = []
        self.functions: list[Code] = []
        self.numbers: dict[str, int] = {}
        self.used: dict[str, Variable] = {}
        self.shared_used: dict[str, tuple[Function | None, Variable]] = {}
        self.shared_offsets: dict[str, int] = {}
        self.frame_nbytes = 0
        self.reads_clock = False
        self.sites: dict[int, Site] = {}
        self.require(kernel)
        self.kernel = self.functions[0].function
        done = 0
        while done < len(self.functions):
            self._compile(done)
            done += 1
        self._lay_out_shared()

    # ------------------------------------------------------------------------ what is reachable
    def require(self, name: str) -> int:
        """Number of a function, which is compiled if it has not been."""
        name = self.module.aliases.get(name, name)
        found = self.numbers.get(name)
        if found is None:
            found = self.numbers[name] = len(self.functions)
            self.functions.append(Code(self.module.functions[name]))
        return found

    def use(self, variable: Variable) -> None:
        """Note a variable of global or constant memory, and those that it points to."""
        pending = [variable]
        while pending:
            each = pending.pop()
            if each.name in self.used:
                continue
            self.used[each.name] = each
            for item in each.init or ():
                if isinstance(item, Sym) and item.name in self.module.variables:
                    pending.append(self.module.variables[item.name])
                elif isinstance(item, Sym) and item.name in self.module.functions:
                    self.require(item.name)

    def function_at(self, address: int) -> int | None:
        """Number of the function at an address, or None."""
        number, rest = divmod(address - FUNCTION_BASE, FUNCTION_STEP)
        return number if rest == 0 and 0 <= number < len(self.functions) else None

    # ----------------------------------------------------------------------------- shared memory
    def shared_name(self, function: Function, variable: Variable) -> str:
        """The name of a shared variable in the whole program."""
        if variable.name in function.variables:
            return f"{function.name}::{variable.name}"
        return variable.name

    def use_shared(self, function: Function, variable: Variable) -> None:
        """Note a shared variable."""
        owner = function if variable.name in function.variables else None
        self.shared_used[self.shared_name(function, variable)] = (owner, variable)

    def _lay_out_shared(self) -> None:
        """Sized variables in the order of their declaration; unsized ones all start behind them."""
        order = sorted(self.shared_used.items(), key=lambda item: self._declared_at(*item[1]))
        sized = [replace(v, name=name) for name, (_, v) in order if v.nbytes]
        places = param_layout(sized)
        self.shared_offsets = {name: place.offset for name, place in places.items()}
        unsized = [(name, v) for name, (_, v) in order if not v.nbytes]
        align = max([16, *(v.align for _, v in unsized)])
        self.dynamic_offset = -(-end_of(places) // align) * align if unsized else end_of(places)
        self.shared_offsets |= {name: self.dynamic_offset for name, _ in unsized}

    def _declared_at(self, owner: Function | None, variable: Variable) -> tuple[int, int]:
        """Line of a declaration, and its place among the declarations of a line."""
        names = list(self.module.variables if owner is None else owner.variables)
        return variable.line, names.index(variable.name)

    def static_shared_nbytes(self, dynamic_nbytes: int) -> int:
        """Bytes of shared memory that a block has."""
        return self.dynamic_offset + dynamic_nbytes

    def shared_variables(self, dynamic_nbytes: int) -> list[tuple[str, int, int]]:
        """Name as in the source PTX, offset and bytes of every shared variable."""
        found = []
        for name, (_, variable) in self.shared_used.items():
            found.append(
                (variable.name, self.shared_offsets[name], variable.nbytes or dynamic_nbytes)
            )
        return sorted(found, key=lambda item: item[1])

    # ------------------------------------------------------------------------------- compiling
    def _compile(self, number: int) -> None:
        code = self.functions[number]
        function = code.function
        code.entry = len(self.blocks)
        if function.body is None:
            code.template = [0]
            self.blocks.append(Block((), no_body(function), 0, number, None))
            return
        builder = FunctionBuilder(self, function)
        pieces, builder.labels = _cut(function, code.entry)
        edges: list[tuple[set[int], set[int]]] = []
        for piece in pieces:
            builder.block = len(self.blocks)
            steps = tuple(self._built(instr, builder, edges) for instr in piece.plain)
            control = None
            if piece.skipped is not None:
                control = build_skip(piece.skipped, builder, builder.block + 2)
            elif piece.last is not None:
                control = self._built(piece.last, builder, edges)
            first = piece.plain[0] if piece.plain else piece.last or piece.skipped
            count = len(steps) + (control is not None and piece.skipped is None)
            self.blocks.append(Block(steps, control, count, number, first))
        code.template, code.fills = builder.template, builder.fills
        code.slots = builder.register_slots()
        code.clocked = _reached(builder.clock_slots, edges)
        self.reads_clock |= bool(builder.clock_slots)
        self.frame_nbytes = max(self.frame_nbytes, -(-end_of(builder.layout) // 16) * 16)

    def _built(
        self, instr: Instr, builder: FunctionBuilder, edges: list[tuple[set[int], set[int]]]
    ) -> Step | Control:
        """The step or control of an instruction; one that raises, if it is not modelled."""
        builder.line = instr.line
        builder.reads, builder.writes = set(), set()
        entry = isa.lookup(instr)
        try:
            made = entry.build(instr, builder)
            if not entry.is_control and instr.pred is not None:
                made = guarded(made, builder.source(instr.pred, "pred").slot, instr.pred_negated)
        except UnsupportedPtx as error:
            return _raises(error)
        except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
            text = (
                f"{instr.name} must have operands that fit it, got {len(instr.operands)} "
                f"({error}). PTX line {instr.line}."
            )
            raise PtxSyntaxError(text) from error
        edges.append((builder.reads, builder.writes))
        return made


@dataclass(slots=True)
class _Piece:
    """The instructions of one block. `skipped`: a guarded control, alone in the next block."""

    plain: list[Instr] = field(default_factory=list)
    last: Instr | None = None
    skipped: Instr | None = None


def _cut(function: Function, first_block: int) -> tuple[list[_Piece], dict[str, int]]:
    """The blocks of a function, and the block number of each label."""
    pieces: list[_Piece] = [_Piece()]
    labels: dict[str, int] = {}
    is_closed = False
    for item in (*(function.body or ()), Instr("ret", (), (), None, False, 0, None)):
        if isinstance(item, Label):
            if pieces[-1].plain or is_closed:
                pieces.append(_Piece())
                is_closed = False
            labels[item.name] = first_block + len(pieces) - 1
            continue
        if is_closed:
            pieces.append(_Piece())
        entry = isa.lookup(item)
        is_closed = entry.is_control
        if not entry.is_control:
            pieces[-1].plain.append(item)
        elif item.pred is None or entry.reads_guard:
            pieces[-1].last = item
        else:
            pieces[-1].skipped = item
            pieces.append(_Piece(last=replace(item, pred=None)))
    return pieces, labels


def _raises(error: UnsupportedPtx) -> Step:
    """A step, or a control, that refuses when a thread reaches it."""

    def refuse(*_: object) -> None:
        raise error

    return refuse


def _reached(start: Iterable[int], edges: list[tuple[set[int], set[int]]]) -> frozenset[int]:
    """All slots that a value of the first slots may flow to."""
    readers: dict[int, list[set[int]]] = {}
    for reads, writes in edges:
        for slot in reads:
            readers.setdefault(slot, []).append(writes)
    reached, pending = set(start), list(start)
    while pending:
        for writes in readers.pop(pending.pop(), ()):
            pending += writes - reached
            reached |= writes
    return frozenset(reached)


@lru_cache(maxsize=64)
def link(text: str, kernel: str | None) -> Program:
    """The program of a kernel of a PTX text; of its only kernel if none is named."""
    module = parse(text)
    entries = module.entries
    if kernel is None and len(entries) != 1:
        raise LaunchError(
            "the kernel must be named unless there is just one, "
            f"got {len(entries)}: {', '.join(entries)}."
        )
    name = entries[0] if kernel is None else kernel
    if name not in entries:
        raise LaunchError(
            f"the kernel must be an entry of the module, got {name!r}. "
            f"Entries: {', '.join(entries) or 'none'}. "
            'Declare it extern "C" to keep its name.'
        )
    return Program(module, name)
