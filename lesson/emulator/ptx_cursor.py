"""Reading tokens and operands: the lower half of the PTX parser.

PTX ISA, "Constants" and "Instruction Operands". A cursor never recurses, and every failure is a
`PtxSyntaxError` that names the line.
"""

from __future__ import annotations

from typing import NoReturn

from lesson.emulator.ptx import Addr, Imm, Not, Operand, Pair, Reg, Sink, Sym, TensorAddr, Vec
from lesson.emulator.ptx_lexer import tokenize
from lesson.emulator.ptx_scope import Scopes
from lesson.errors import PtxSyntaxError

MAX_VECTOR = 1024
_END = ""


def constant(token: str) -> Imm:
    """The constant that a token spells; ValueError where it spells none."""
    body = token[:-1] if token[-1:] == "U" else token
    head = body[:2]
    if head in ("0x", "0X"):
        value = int(body, 16)
    elif head in ("0f", "0F"):
        return Imm(_bits(token, 8), "f32bits")
    elif head in ("0d", "0D"):
        return Imm(_bits(token, 16), "f64bits")
    elif head in ("0b", "0B"):
        value = int(body, 2)
    elif "." in body or "e" in body or "E" in body:
        return Imm(float(body), "decimal")
    else:
        value = int(body, 8 if len(body) > 1 and body[0] == "0" else 10)
    if value >> 64:
        raise ValueError(token)
    return Imm(value)


def _bits(token: str, digits: int) -> int:
    """The bits of a 0f or 0d constant, which has exactly so many hexadecimal digits."""
    if len(token) != digits + 2:
        raise ValueError(token)
    return int(token[2:], 16)


def negated(value: Imm) -> Imm:
    """Minus a constant."""
    if value.kind == "f32bits":
        return Imm(int(value.value) ^ 1 << 31, "f32bits")
    if value.kind == "f64bits":
        return Imm(int(value.value) ^ 1 << 63, "f64bits")
    return Imm(-value.value, value.kind)


class Cursor:
    """A position in the tokens, with the readers of the small pieces."""

    def __init__(self, text: str) -> None:
        self.tokens, self.lines = tokenize(text)
        self.tokens.append(_END)
        self.lines.append(self.lines[-1] if self.lines else 1)
        self.at = 0
        self.scopes = Scopes()

    def fail(self, thing: str, rule: str) -> NoReturn:
        """Raise for the token at hand."""
        got = self.tokens[self.at][:60] or "the end of the text"
        raise PtxSyntaxError(
            f"{thing} must be {rule}, got {got!r}. PTX line {self.lines[self.at]}."
        )

    @property
    def token(self) -> str:
        return self.tokens[self.at]

    @property
    def line(self) -> int:
        return self.lines[self.at]

    def accept(self, token: str) -> bool:
        """Step over a token if it is next."""
        if self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str, thing: str) -> None:
        """Step over a token that must be next."""
        if not self.accept(token):
            self.fail(thing, f"followed by {token!r}")

    def name(self, thing: str) -> str:
        """A name without dots."""
        token = self.tokens[self.at]
        if not (token and (token[0].isalpha() or token[0] in "_$%")) or "." in token:
            self.fail(thing, "a name")
        self.at += 1
        return token

    def is_number(self) -> bool:
        return self.tokens[self.at][:1].isdigit()

    def number(self, thing: str) -> Imm:
        """A constant, with any signs before it."""
        minus = False
        while self.token in ("-", "+"):
            minus ^= self.token == "-"
            self.at += 1
        try:
            value = constant(self.token)
        except ValueError:
            self.fail(thing, "a number")
        self.at += 1
        return negated(value) if minus else value

    def integer(self, thing: str) -> int:
        """A whole number."""
        value = self.number(thing)
        if value.kind != "int":
            self.at -= 1
            self.fail(thing, "a whole number")
        return int(value.value)

    def plain(self) -> Operand:
        """A register, constant, symbol or sink."""
        token = self.token
        first = token[:1]
        if first.isdigit() or (first in ("-", "+") and token):
            return self.number("an operand")
        if not first or not (first.isalpha() or first in "_$%"):
            self.fail("an operand", "a register, a constant, a name or a list")
        self.at += 1
        if token == "_":
            return Sink()
        found = self.scopes.operand(token)
        if found is None:
            self.at -= 1
            self.fail("a register", "declared with .reg")
        if isinstance(found, Sym) and self.token in ("+", "-"):
            return Sym(found.name, self.integer("an offset"))
        return found

    def register(self, thing: str) -> Reg:
        """A register and nothing else."""
        found = self.plain()
        if not isinstance(found, Reg):
            self.at -= 1
            self.fail(thing, "a register")
        return found

    def list_until(self, close: str) -> Vec:
        """Plain operands with commas between, up to a closing bracket."""
        items: list[Operand] = []
        while not self.accept(close):
            if items:
                self.expect(",", "an item of a list")
            items.append(
                Not(self.register("what is negated")) if self.accept("!") else self.plain()
            )
            if len(items) > MAX_VECTOR:
                self.fail("a list", f"at most {MAX_VECTOR} operands long")
        return Vec(tuple(items))

    def address(self) -> Addr | TensorAddr:
        """What stands between square brackets; the opening one is behind the cursor."""
        base = self.plain()
        if not isinstance(base, Reg | Sym | Imm):
            self.fail("an address", "a register, a name or a constant")
        offset = self.integer("an offset") if self.token in ("+", "-") else 0
        if isinstance(base, Sym) and base.offset:
            base, offset = Sym(base.name), base.offset + offset
        if self.accept(","):
            self.expect("{", "a comma in an address")
            coords = self.list_until("}")
            self.expect("]", "an address")
            return TensorAddr(base, coords)
        self.expect("]", "an address")
        return Addr(base, offset)

    def operand(self) -> Operand:
        """Any operand of an instruction."""
        if self.accept("["):
            return self.address()
        if self.accept("{"):
            return self.list_until("}")
        if self.accept("("):
            return self.list_until(")")
        if self.accept("!"):
            return Not(self.register("what is negated"))
        first = self.plain()
        if self.accept("|"):
            return Pair(first, self.plain())
        return first
