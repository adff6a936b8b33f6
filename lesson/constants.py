"""Integer constants out of C++ text, by name.

Reads `constexpr` and `const` integers at any scope, with simple initialisers: literals (decimal,
hex, binary, octal, digit separators, suffixes), other constants, `sizeof` of a fundamental type,
casts to an integer type, the operators + - * / % << >> & | ^ ~ and parentheses. Values are exact
integers; division truncates towards zero, as C++ has it. Not read: macros, templates, enums; no
overflow is modelled. An initialiser that is not simple is an error only for who asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lesson.errors import SnippetError

_INT_TYPE = (
    r"(?:std::|cuda::std::|::)*(?:(?:unsigned|signed)(?:\s+(?:int|long\s+long|long|short|char))?"
    r"|int|long\s+long|long|short|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t|cuuint(?:32|64)_t|auto)"
)
_DECLARATION = re.compile(
    r"\b(?:constexpr|const)\s+(?:(?:static|inline|__device__)\s+)*"
    rf"{_INT_TYPE}\s+(?P<rest>[A-Za-z_]\w*\s*(?:=|\{{)[^;]*);"
)
_DECLARATOR = re.compile(
    r"\s*(?P<name>[A-Za-z_]\w*)\s*(?:=\s*(?P<plain>.+)|\{(?P<braced>.*)\}\s*)$", re.S
)
_CAST = re.compile(rf"(?:static_cast\s*<\s*{_INT_TYPE}\s*>\s*(?=\()|{_INT_TYPE}\s*(?=[({{]))")
_SIZEOF = re.compile(r"sizeof\s*\(\s*([a-z][\w\s]*?)\s*\)")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)(?P<suffix>[uUlLzZ]*)(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<operator><<|>>|[-+*/%&|^~(){}]))"
)
_SIZES = {
    "char": 1, "bool": 1, "signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2,
    "int": 4, "unsigned": 4, "unsigned int": 4, "float": 4, "double": 8, "long long": 8,
    "unsigned long long": 8, "size_t": 8, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2,
    "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8,
}  # fmt: skip
_PRECEDENCE = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
_MAX_DEPTH = 50  # of parentheses, operators and constants in constants, all together
_MAX_BITS = 64  # what a C++ integer holds; also keeps a hostile shift from filling memory


@dataclass(frozen=True, slots=True)
class Constant:
    """One declaration: the text of its initialiser and the line of the file it stands on."""

    name: str
    expression: str
    line: int


class Constants(Mapping[str, int]):
    """Constants of one source text by name; iterating yields the names that have a value."""

    def __init__(self, text: str, source_name: str) -> None:
        self._source_name = source_name
        self._found: dict[str, list[Constant]] = {}
        self._values: dict[str, int] = {}
        for constant in _declarations(blank_comments(text)):
            self._found.setdefault(constant.name, []).append(constant)

    def __getitem__(self, name: str) -> int:
        constant = self._declaration(name)
        try:
            return self._value(name, 0)
        except _NotSimpleError as problem:
            raise SnippetError(
                f"constant {name!r} must be a simple integer expression, got "
                f"`{_shortened(constant.expression)}` ({problem}). {self._source_name}, line "
                f"{constant.line}. Write it with integers, other constants and + - * / %."
            ) from None

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._found if self._has_value(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._found and self._has_value(name)

    def line(self, name: str) -> int:
        """The line, counted from 1, that declares `name`."""
        return self._declaration(name).line

    def _has_value(self, name: str) -> bool:
        try:
            self._value(name, 0)
        except _NotSimpleError:
            return False
        return True

    def _declaration(self, name: str) -> Constant:
        found = self._found.get(name, [])
        if not found:
            known = ", ".join(self) or "none"
            raise SnippetError(
                f"constant {name!r} must be declared in {self._source_name}, got no such constant. "
                f"It declares: {known}. Ask for one of these, or add `constexpr int {name} = ...;`."
            )
        if len(found) > 1:
            lines = ", ".join(str(one.line) for one in found)
            raise SnippetError(
                f"constant {name!r} must be declared once, got {len(found)} declarations. "
                f"{self._source_name}, lines {lines}. Give each its own name."
            )
        return found[0]

    def _value(self, name: str, depth: int) -> int:
        found = self._found.get(name, [])
        if len(found) != 1:
            raise _NotSimpleError(f"`{name}` is not declared exactly once")
        if name not in self._values:
            self._values[name] = _Evaluator(found[0].expression, self._value).run(depth)
        return self._values[name]


class _NotSimpleError(Exception):
    """Says what of an expression this module does not read."""


class _Evaluator:
    """Precedence climbing over one expression."""

    def __init__(self, expression: str, look_up: Callable[[str, int], int]) -> None:
        self._tokens = list(_tokens(expression))
        self._next = 0
        self._look_up = look_up

    def run(self, depth: int) -> int:
        value = self._binary(0, depth)
        if self._next < len(self._tokens):
            raise _NotSimpleError(f"`{self._tokens[self._next]}` is not expected there")
        return value

    def _binary(self, least: int, depth: int) -> int:
        if depth > _MAX_DEPTH:
            raise _NotSimpleError("nested too deeply, or defined by itself")
        left = self._unary(depth)
        while (operator := self._peek()) in _PRECEDENCE and _PRECEDENCE[operator] > least:
            self._next += 1
            left = _apply(operator, left, self._binary(_PRECEDENCE[operator], depth + 1))
        return left

    def _unary(self, depth: int) -> int:
        signs = []
        while self._peek() in ("-", "+", "~"):
            signs.append(self._take())
        value = self._primary(depth)
        for sign in reversed(signs):
            value = {"-": -value, "+": value, "~": ~value}[sign]
        return value

    def _primary(self, depth: int) -> int:
        token = self._take()
        if isinstance(token, int):
            return token
        if token in ("(", "{"):
            value = self._binary(0, depth + 1)
            if self._take() != {"(": ")", "{": "}"}[token]:
                raise _NotSimpleError(f"`{token}` is not closed")
            return value
        if not (token[0].isalpha() or token[0] == "_"):
            raise _NotSimpleError(f"`{token}` is not expected there")
        try:
            return self._look_up(token, depth + 1)
        except _NotSimpleError:
            raise _NotSimpleError(f"`{token}` has no known value") from None

    def _peek(self) -> int | str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> int | str:
        if self._next >= len(self._tokens):
            raise _NotSimpleError("it ends too early")
        self._next += 1
        return self._tokens[self._next - 1]


def _tokens(expression: str) -> Iterator[int | str]:
    expression = _SIZEOF.sub(_size_literal, expression)
    expression = _CAST.sub("", expression)
    position = 0
    while expression[position:].strip():
        match = _TOKEN.match(expression, position)
        if not match:
            rest = _shortened(expression[position:].strip())
            raise _NotSimpleError(f"`{rest}` is not an integer")
        position = match.end()
        if match["number"]:
            yield _literal(match["number"].replace("'", ""))
        else:
            yield match["name"] or match["operator"]


def _size_literal(match: re.Match[str]) -> str:
    spelled = " ".join(match[1].split())
    return str(_SIZES[spelled]) if spelled in _SIZES else match[0]


def _literal(digits: str) -> int:
    if len(digits) > _MAX_BITS + 2:
        raise _NotSimpleError("a literal of more than 64 bits")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        digits = "0o" + digits[1:]
    try:
        return int(digits, 0)
    except ValueError:
        raise _NotSimpleError(f"`{digits}` is not a literal") from None


def _apply(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%"):
        if right == 0:
            raise _NotSimpleError("division by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    if operator in ("<<", ">>"):
        if not 0 <= right < _MAX_BITS:
            raise _NotSimpleError(f"a shift by {right}")
        return left << right if operator == "<<" else left >> right
    value = {"+": left + right, "-": left - right, "*": left * right}.get(operator)
    if value is None:
        value = {"&": left & right, "|": left | right, "^": left ^ right}[operator]
    if value.bit_length() > _MAX_BITS:
        raise _NotSimpleError("a value of more than 64 bits")
    return value


def _declarations(code: str) -> Iterator[Constant]:
    for match in _DECLARATION.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        for part in _split_at_commas(match["rest"]):
            declarator = _DECLARATOR.match(part)
            if declarator:
                expression = declarator["plain"] or declarator["braced"] or ""
                yield Constant(declarator["name"], expression.strip(), line)


def _split_at_commas(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for i, char in enumerate(text):
        depth += (char in "({[") - (char in ")}]")
        if char == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    yield text[start:]


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


_COMMENT_OR_STRING = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"  # comments
    r'|"(?:[^"\\\n]|\\.)*"?|(?<![0-9A-Za-z_])\'(?:[^\'\\\n]|\\.)*\'?',  # literals
    re.S,
)


def blank_comments(text: str) -> str:
    """`text` with comments and literals turned to spaces: every character keeps its line."""
    return _COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
