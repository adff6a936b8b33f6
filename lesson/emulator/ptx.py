"""The records that PTX text becomes: operands, instructions, variables, functions, a module.

Follows the PTX ISA 8.0 to 9.x, chapters "Syntax", "State Spaces, Types, and Variables" and
"Instruction Operands". `parse(text)` gives a `Module`; the work is in `ptx_lexer` and `ptx_parser`.
Nothing here knows what an instruction means: an unknown opcode parses, and is refused when the
program is linked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

MAX_TEXT_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Loc:
    """A source position from `.loc`. `file` and `line` are those of the outermost call that was
    inlined, so in code inlined from a header they are the learner's own line; `inner_file` and
    `inner_line` are where the instruction itself was written.
    """

    file: str
    line: int
    inner_file: str = ""
    inner_line: int = 0


@dataclass(frozen=True, slots=True)
class Reg:
    """A register, `%tid.x` and its like included. Registers of a nested block carry `@block` in
    their name.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Imm:
    """A constant. `kind`: int, f32bits (0f3F800000), f64bits (0d...), decimal (1.5)."""

    value: int | float
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Sym:
    """The name of a variable, a function or a label, plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Addr:
    """`[base + offset]`."""

    base: Reg | Sym | Imm
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vec:
    """`{a, b}`, or the bracketed lists of a call."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """`!p`."""

    reg: Reg


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: a result and its predicate. Either side may be the sink."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: the result is dropped."""


@dataclass(frozen=True, slots=True)
class TensorAddr:
    """`[map, {x, y}]`."""

    base: Reg | Sym | Imm
    coords: Vec


Operand = Reg | Imm | Sym | Addr | Vec | Not | Pair | Sink | TensorAddr


@dataclass(frozen=True, slots=True)
class Instr:
    """One instruction. `line` counts the lines of the PTX text from 1."""

    opcode: str
    mods: tuple[str, ...]
    operands: tuple[Operand, ...]
    pred: Reg | None
    pred_negated: bool
    line: int
    loc: Loc | None

    @property
    def name(self) -> str:
        """Opcode and modifiers as written."""
        return ".".join((self.opcode, *self.mods))


@dataclass(frozen=True, slots=True)
class Label:
    """A place that branches may name."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a state space. `nbytes` is 0 for an unsized (extern shared) array.

    `init`: bytes-free initialiser, one item an element: int, float bits as `Imm`, or `Sym`; None if
    there is none.
    """

    name: str
    space: str
    type: str
    nbytes: int
    align: int
    init: tuple[Imm | Sym, ...] | None = None
    line: int = 0
    is_extern: bool = False


@dataclass(slots=True)
class Function:
    """An entry or a device function. `body` mixes labels and instructions in order.

    `registers`: type of every register that the body names. `tables`: label lists of
    `.branchtargets`. `directives`: `maxntid`, `reqntid`, `reqnctapercluster`, `explicitcluster`,
    ... with their numbers.
    """

    name: str
    is_entry: bool
    params: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()
    body: list[Instr | Label] | None = None
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, tuple[tuple[Variable, ...], tuple[Variable, ...]]] = field(
        default_factory=dict
    )
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    line: int = 0


@dataclass(slots=True)
class Module:
    """A parsed PTX text."""

    version: str = ""
    target: str = ""
    address_size: int = 64
    files: dict[int, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def entries(self) -> list[str]:
        """Names of the kernels."""
        return [f.name for f in self.functions.values() if f.is_entry and f.body is not None]


@lru_cache(maxsize=32)
def parse(text: str) -> Module:
    """The module that a PTX text describes; raises PtxSyntaxError or LimitExceeded."""
    from lesson.emulator.ptx_parser import Parser

    return Parser(text).module()
