"""Function bodies: declarations, labels and instructions in nested blocks.

PTX ISA, "Statements" and "Control Flow Directives".
"""

from __future__ import annotations

from dataclasses import replace

from lesson.emulator.ptx import Function, Instr, Label, Operand, Reg, Sym, Variable, Vec
from lesson.emulator.ptx_directives import DirectiveReader
from lesson.emulator.ptx_scope import Scope, label_in
from lesson.emulator.ptx_variables import LINKAGE, SPACES, TYPE_NBYTES, parameters, variables

MAX_NESTING = 256
_BRANCHES = frozenset({"bra", "brx", "call"})


class BodyReader(DirectiveReader):
    """Reads one function body after another."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.function = Function("", False)
        self.body: list[Instr | Label] = []
        self.branches: list[tuple[int, Scope]] = []
        self.table_scopes: dict[str, Scope] = {}

    @property
    def scope(self) -> Scope:
        """The innermost open block."""
        assert self.scopes.top is not None
        return self.scopes.top

    def read_body(self, function: Function) -> None:
        """Everything up to the brace that closes the function; the opening one is behind the
        cursor.
        """
        self.function, self.body, self.loc = function, [], None
        self.branches, self.table_scopes = [], {}
        self.inlined.clear()
        self.scopes.begin()
        for formal in (*function.params, *function.returns):
            if formal.space == "reg":
                self._declare_register(formal.name, formal.type)
                function.registers[formal.name] = formal.type
            else:
                self.scopes.add_symbol(formal)
        while self.scopes.depth:
            self._statement()
        function.registers.update(self.scopes.used)
        self._resolve_labels()
        function.body = self.body
        self.scopes.top = None

    def _statement(self) -> None:
        token = self.token
        if token == "{":
            self.at += 1
            self.scopes.push()
            if self.scopes.depth > MAX_NESTING:
                self.fail("nested blocks", f"at most {MAX_NESTING} deep")
        elif token == "}":
            self.at += 1
            self.scopes.pop()
        elif token == ";":
            self.at += 1
        elif token[:1] == ".":
            self._directive(token)
        elif token and self.tokens[self.at + 1] == ":":
            self._label()
        else:
            self._instruction()

    def _directive(self, token: str) -> None:
        self.at += 1
        is_extern = False
        while token in LINKAGE:
            is_extern |= token == ".extern"
            token = self.token
            self.at += 1
        if token == ".reg":
            self._registers()
        elif token in SPACES:
            for variable in variables(self, token[1:], is_extern):
                self._declare_variable(variable)
        elif not self.common_directive(token):
            self.at -= 1
            self.fail("a directive in a function", "one of the PTX ISA")

    def _declare_variable(self, variable: Variable) -> None:
        name = self.scopes.add_symbol(variable)
        self.function.variables[name] = replace(variable, name=name)

    def _registers(self) -> None:
        """The names of one `.reg` declaration."""
        kind = self.token[1:]
        if self.token[:1] != "." or kind not in TYPE_NBYTES:
            self.fail("a register", "given a scalar type")
        self.at += 1
        while True:
            name = self.name("a register")
            if self.accept("<"):
                count = self.integer("a count of registers")
                self.expect(">", "a count of registers")
                self.scope.ranges[name] = (count, kind)
            else:
                self._declare_register(name, kind)
            if self.accept(";"):
                return
            self.expect(",", "a register")

    def _declare_register(self, name: str, kind: str) -> None:
        self.scope.registers[name] = (Reg(self.scope.unique(name)), kind)

    def _label(self) -> None:
        """`name:`, maybe of a table of branch targets or of a prototype."""
        written = self.name("a label")
        self.at += 1
        name = self.scopes.add_label(written)
        if name is None:
            self.fail(f"the label {written}", "defined once in a block")
        if self.token in (".branchtargets", ".calltargets"):
            self.at += 1
            names = [self.name("a target")]
            while self.accept(","):
                names.append(self.name("a target"))
            self.expect(";", "a list of targets")
            self.function.tables[name] = tuple(names)
            self.table_scopes[name] = self.scope
        elif self.accept(".callprototype"):
            self.function.prototypes[name] = self._prototype()
        else:
            self.body.append(Label(name))

    def _prototype(self) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
        """`(.param .b32 _) _ (.param .b64 _) .noreturn;`: results and parameters."""
        returns = parameters(self) if self.accept("(") else ()
        self.name("a prototype")
        params = parameters(self) if self.accept("(") else ()
        self.skip_past(";", "a prototype")
        return returns, params

    def _instruction(self) -> None:
        line, pred, is_negated = self.line, None, False
        if self.accept("@"):
            is_negated = self.accept("!")
            pred = self.register("a guard")
        opcode, *mods = self.token.split(".")
        if not opcode or not (opcode[0].isalpha() or opcode[0] == "_"):
            self.fail("a statement", "an instruction, a directive or a label")
        self.at += 1
        operands: list[Operand] = []
        while not self.accept(";"):
            if operands:
                self.expect(",", "an operand")
            operands.append(self.operand())
        if opcode == "call":
            operands = self._call_operands(operands)
        if opcode in _BRANCHES:
            self.branches.append((len(self.body), self.scope))
        self.body.append(
            Instr(opcode, tuple(mods), tuple(operands), pred, is_negated, line, self.loc)
        )

    def _call_operands(self, given: list[Operand]) -> list[Operand]:
        """Results, target, arguments and maybe a prototype, whichever were written."""
        rest = list(given)
        results = rest.pop(0) if rest and isinstance(rest[0], Vec) else Vec(())
        if not rest:
            self.fail("a call", "given a function")
        target = rest.pop(0)
        arguments = rest.pop(0) if rest and isinstance(rest[0], Vec) else Vec(())
        return [results, target, arguments, *rest]

    def _resolve_labels(self) -> None:
        """Replace the labels that branches name by those that they mean in their block."""
        for name, scope in self.table_scopes.items():
            targets = self.function.tables[name]
            self.function.tables[name] = tuple(label_in(scope, each) or each for each in targets)
        for at, scope in self.branches:
            instr = self.body[at]
            assert isinstance(instr, Instr)
            found = tuple(
                Sym(label_in(scope, each.name) or each.name, each.offset)
                if isinstance(each, Sym)
                else each
                for each in instr.operands
            )
            self.body[at] = replace(instr, operands=found)
