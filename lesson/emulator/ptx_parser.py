"""Module level of the PTX parser: variables, entries and functions, module directives.

PTX ISA, "PTX Source Format" and "Directives". Accepts what NVRTC, nvcc (-O3 and -G) and Triton
write. What steers only the back end (`.pragma`, `.maxnreg`, debug directives) is read and kept or
dropped; an unknown directive is a syntax error, since it might change what the text means.
"""

from __future__ import annotations

from lesson.emulator.ptx import Function, Module
from lesson.emulator.ptx_body import BodyReader
from lesson.emulator.ptx_variables import LINKAGE, SPACES, parameters, skip_attribute, variables


class Parser(BodyReader):
    """Reads one text into one module."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.result = Module(files=self.files)

    def module(self) -> Module:
        """The whole text."""
        while self.token:
            self._item()
        return self.result

    def _item(self) -> None:
        is_extern = False
        while self.token in LINKAGE:
            is_extern |= self.token == ".extern"
            self.at += 1
        token = self.token
        self.at += bool(token)
        if token in SPACES:
            for variable in variables(self, token[1:], is_extern):
                self.result.variables[variable.name] = variable
        elif token in (".entry", ".func"):
            self._function(token == ".entry")
        elif token in (".version", ".target", ".address_size"):
            self._head(token)
        elif token == ".alias":
            name = self.name("an alias")
            self.expect(",", "an alias")
            self.result.aliases[name] = self.name("an alias")
            self.expect(";", "an alias")
        elif token != ";" and not self.common_directive(token):
            self.at -= bool(token)
            self.fail("a line outside of functions", "a directive of the PTX ISA")

    def _head(self, token: str) -> None:
        """`.version 8.8`, `.target sm_90a, debug`, `.address_size 64`."""
        value = self.token
        self.at += bool(value)
        if token == ".version":
            self.result.version = value
        elif token == ".target":
            self.result.target = value
            while self.accept(","):
                self.name("a target option")
        elif value != "64":
            self.at -= bool(value)
            self.fail("the address size", "64 bits")

    def _function(self, is_entry: bool) -> None:
        """An entry or function; the keyword is behind the cursor."""
        line = self.line
        if self.accept(".attribute"):
            skip_attribute(self)
        returns = parameters(self) if self.accept("(") else ()
        name = self.name("a function")
        params = parameters(self) if self.accept("(") else ()
        function = Function(name, is_entry, params, returns, line=line)
        while self.token[:1] == ".":
            self._function_directive(function)
        if not self.accept(";"):
            self.expect("{", "the head of a function")
            self.read_body(function)
        known = self.result.functions.get(name)
        if known is None or known.body is None:
            self.result.functions[name] = function
        elif function.body is not None:
            self.fail(f"the function {name}", "defined once")

    def _function_directive(self, function: Function) -> None:
        """`.reqntid 128, 1, 1`, `.noreturn` and so on."""
        token = self.token
        self.at += 1
        if self.common_directive(token):
            return
        numbers: list[int] = []
        if self.is_number():
            numbers.append(self.integer("a number"))
            while self.accept(","):
                numbers.append(self.integer("a number"))
        function.directives[token[1:]] = tuple(numbers[:3])
