"""Directives that may stand anywhere: source locations, file names, pragmas.

PTX ISA, "Debugging Directives" and "Directives: .pragma".
"""

from __future__ import annotations

from lesson.emulator.ptx import Loc
from lesson.emulator.ptx_cursor import Cursor


class DirectiveReader(Cursor):
    """Keeps the source location that the next instructions belong to."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.loc: Loc | None = None
        self.inlined: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.files: dict[int, str] = {}
        self._find_files()

    def _find_files(self) -> None:
        """Names of the source files; compilers write them behind the code that refers to them."""
        for at, token in enumerate(self.tokens):
            if token == ".file" and self.tokens[at + 1].isdigit() and len(self.tokens[at + 1]) < 10:
                self.files[int(self.tokens[at + 1])] = self.tokens[at + 2].strip('"')

    def common_directive(self, token: str) -> bool:
        """Read the rest of such a directive; False if `token` is none."""
        if token == ".loc":
            self._loc()
        elif token == ".file":
            self.integer("a file number")
            self.at += bool(self.token)
            while self.accept(","):
                self.integer("a part of .file")
        elif token == ".pragma":
            self.skip_past(";", ".pragma")
        else:
            return False
        return True

    def skip_past(self, close: str, thing: str) -> None:
        """Step over everything up to and with a token."""
        while not self.accept(close):
            if not self.token:
                self.fail(thing, f"closed with {close!r}")
            self.at += 1

    def _loc(self) -> None:
        """`.loc file line column [, function_name label[+n], inlined_at file line column]`."""
        place = self._place()
        parent: tuple[int, int, int] | None = None
        while self.accept(","):
            word = self.name("a part of .loc")
            if word == "inlined_at":
                parent = self._place()
            else:
                self.name("a function name")
                if self.token == "+":
                    self.integer("an offset")
        outer = place[:2] if parent is None else self.inlined.get(parent, parent[:2])
        self.inlined[place] = outer
        file, inner = (self.files.get(number, "") for number in (outer[0], place[0]))
        self.loc = Loc(file, outer[1], inner, place[1])

    def _place(self) -> tuple[int, int, int]:
        return (self.integer("a file number"), self.integer("a line"), self.integer("a column"))
