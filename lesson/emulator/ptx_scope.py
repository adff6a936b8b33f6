"""Names in nested blocks: which register, variable or label a name means where it stands.

PTX ISA, "Identifiers" and "Directives: .reg". Parameterised registers (`%r<1000>`) are kept as a
range, so their declaration costs nothing whatever its size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lesson.emulator.ptx import Imm, Reg, Sym, Variable

_AXES = (
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
)
_SINGLE = (
    "laneid warpid nwarpid smid nsmid gridid is_explicit_cluster cluster_ctarank cluster_nctarank "
    "lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt clock clock_hi clock64 "
    "globaltimer "
    "globaltimer_lo globaltimer_hi total_smem_size aggr_smem_size dynamic_smem_size "
    "current_graph_exec "
    "reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap"
)
SPECIAL = frozenset(
    [f"%{name}.{axis}" for name in _AXES for axis in "xyzw"]
    + [f"%{name}" for name in _SINGLE.split()]
    + [f"%envreg{n}" for n in range(32)]
    + [f"%pm{n}{tail}" for n in range(8) for tail in ("", "_64")]
    + [f"%reserved_smem_offset_{n}" for n in range(2)]
)
_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d{0,9})", re.ASCII)


@dataclass(slots=True)
class Scope:
    """One pair of braces."""

    number: int
    parent: Scope | None
    registers: dict[str, tuple[Reg, str]] = field(default_factory=dict)
    ranges: dict[str, tuple[int, str]] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def register(self, name: str) -> tuple[Reg, str] | None:
        """The register of this name declared in this very scope, and its type."""
        found = self.registers.get(name)
        if found is None and self.ranges:
            parts = _NUMBERED.fullmatch(name)
            span = self.ranges.get(parts[1]) if parts else None
            if span and int(parts[2]) < span[0]:
                found = self.registers[name] = (Reg(self.unique(name)), span[1])
        return found

    def unique(self, name: str) -> str:
        """The name as it is known outside of the scope."""
        return name if self.number == 0 else f"{name}@{self.number}"


class Scopes:
    """The open scopes of the function being read; with none open, only module names are known."""

    def __init__(self) -> None:
        self.top: Scope | None = None
        self.count = 0
        self.depth = 0
        self.used: dict[str, str] = {}
        self.taken: set[str] = set()

    def begin(self) -> None:
        """Start a function."""
        self.top, self.count, self.depth = Scope(0, None), 0, 1
        self.used, self.taken = {}, set()

    def push(self) -> None:
        self.count += 1
        self.depth += 1
        self.top = Scope(self.count, self.top)

    def pop(self) -> None:
        if self.top is not None:
            self.depth -= 1
            self.top = self.top.parent

    def operand(self, name: str) -> Reg | Sym | Imm | None:
        """What a name means here; None for an undeclared register."""
        scope = self.top
        while scope is not None:
            found = scope.register(name)
            if found is not None:
                if scope is not self.top and self.top is not None:
                    self.top.registers[name] = found
                self.used[found[0].name] = found[1]
                return found[0]
            if name in scope.symbols:
                return Sym(scope.symbols[name])
            scope = scope.parent
        if name in SPECIAL:
            return Reg(name)
        if name == "WARP_SZ":
            return Imm(32)
        return None if name[0] == "%" else Sym(name)

    def add_symbol(self, variable: Variable) -> str:
        """Declare a variable in the innermost scope; returns its name in the function."""
        assert self.top is not None
        name = self._fresh(variable.name)
        self.top.symbols[variable.name] = name
        return name

    def add_label(self, name: str) -> str | None:
        """Declare a label; None if the scope has it already."""
        assert self.top is not None
        if name in self.top.labels:
            return None
        self.top.labels[name] = self._fresh(name)
        return self.top.labels[name]

    def _fresh(self, name: str) -> str:
        assert self.top is not None
        fresh = name if name not in self.taken else f"{name}@{self.top.number}"
        while fresh in self.taken:
            fresh += "'"
        self.taken.add(fresh)
        return fresh


def label_in(scope: Scope | None, name: str) -> str | None:
    """The label that a name means in a scope."""
    while scope is not None:
        if name in scope.labels:
            return scope.labels[name]
        scope = scope.parent
    return None
