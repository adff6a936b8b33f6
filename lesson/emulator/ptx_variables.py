"""Declarations of variables and parameters: state space, alignment, type, shape, initialiser.

PTX ISA, "Variables" and "Parameter State Space". Sizes are counted, not allocated, so a declaration
of any size costs nothing here.
"""

from __future__ import annotations

from lesson.emulator.ptx import Imm, Sym, Variable
from lesson.emulator.ptx_cursor import Cursor

TYPE_NBYTES = {
    **{f"{kind}{8 * n}": n for kind in "bus" for n in (1, 2, 4, 8)},
    **{"b128": 16, "f16": 2, "f16x2": 4, "bf16": 2, "bf16x2": 4, "f32": 4, "f64": 8, "pred": 1},
    **{"e4m3": 1, "e5m2": 1, "texref": 8, "samplerref": 8, "surfref": 8},
}
SPACES = frozenset({".global", ".shared", ".local", ".const", ".param", ".tex"})
LINKAGE = frozenset({".visible", ".extern", ".weak", ".common"})
MAX_BYTES = 1 << 40
MAX_INIT = 1 << 22


def skip_attribute(cursor: Cursor) -> None:
    """Step over `.attribute(.managed)` and its like."""
    cursor.expect("(", "an attribute")
    while not cursor.accept(")"):
        if not cursor.token:
            cursor.fail("an attribute", "closed with ')'")
        cursor.at += 1


def declared_type(cursor: Cursor) -> tuple[str, int, int]:
    """Type name, bytes of an element (a vector counts whole) and alignment."""
    align, lanes = 0, 1
    while True:
        token = cursor.token
        cursor.at += 1
        if token == ".align":
            align = cursor.integer("an alignment")
            if align <= 0 or align & align - 1 or align > 1 << 20:
                cursor.fail("an alignment", "a power of two")
        elif token in (".v2", ".v4", ".v8"):
            lanes = int(token[2])
        elif token == ".attribute":
            skip_attribute(cursor)
        elif token[1:] in TYPE_NBYTES and token[0] == ".":
            nbytes = TYPE_NBYTES[token[1:]] * lanes
            return token[1:], nbytes, align or nbytes
        else:
            cursor.at -= 1
            cursor.fail("a declaration", "given a type")


def _pointer_attributes(cursor: Cursor) -> None:
    """Step over `.ptr .global .align 16` of a kernel parameter."""
    if cursor.accept(".ptr"):
        while cursor.token in SPACES:
            cursor.at += 1
        if cursor.accept(".align"):
            cursor.integer("an alignment")


def _shape(cursor: Cursor) -> int:
    """The number of elements that `[4][8]` says; 0 for `[]`, 1 for none."""
    count = 1
    while cursor.accept("["):
        if cursor.accept("]"):
            count = 0
            continue
        size = cursor.integer("the size of an array")
        if size < 0:
            cursor.fail("the size of an array", "0 or more")
        count *= size
        if count > MAX_BYTES:
            cursor.fail("the size of an array", f"at most {MAX_BYTES}")
        cursor.expect("]", "the size of an array")
    return count


def _init_item(cursor: Cursor) -> Imm | Sym:
    """One initialiser: a constant, or a symbol with an offset."""
    if cursor.is_number() or cursor.token in ("-", "+"):
        value = cursor.number("an initialiser")
        while value.kind == "int" and cursor.token in ("+", "-"):
            value = Imm(int(value.value) + cursor.integer("an initialiser"))
        return value
    wrapped = cursor.token == "generic"
    if wrapped:
        cursor.at += 1
        cursor.expect("(", "generic")
    name = cursor.name("an initialiser")
    offset = cursor.integer("an offset") if cursor.token in ("+", "-") else 0
    if wrapped:
        cursor.expect(")", "generic")
        offset += cursor.integer("an offset") if cursor.token in ("+", "-") else 0
    return Sym(name, offset)


def _initialiser(cursor: Cursor) -> tuple[Imm | Sym, ...]:
    """The items of an initialiser in order; inner braces only group them."""
    if not cursor.accept("{"):
        return (_init_item(cursor),)
    items: list[Imm | Sym] = []
    depth = 1
    while depth:
        if cursor.accept("{"):
            depth += 1
        elif cursor.accept("}"):
            depth -= 1
        elif items and cursor.accept(","):
            pass
        else:
            items.append(_init_item(cursor))
            if len(items) > MAX_INIT:
                cursor.fail("an initialiser", f"at most {MAX_INIT} items long")
    return tuple(items)


def variables(cursor: Cursor, space: str, is_extern: bool = False) -> list[Variable]:
    """The variables of one declaration, up to and with its semicolon."""
    kind, nbytes, align = declared_type(cursor)
    found: list[Variable] = []
    while True:
        line = cursor.line
        name = cursor.name("a variable")
        copies = 0
        if cursor.accept("<"):
            copies = cursor.integer("a count")
            cursor.expect(">", "a count")
            if not 0 < copies <= 4096:
                cursor.fail("a count of variables", "1 to 4096")
        count = _shape(cursor)
        init = _initialiser(cursor) if cursor.accept("=") else None
        if init is not None:
            count = max(count, len(init)) if count == 0 else count
            if len(init) > count * max(1, nbytes // TYPE_NBYTES[kind]):
                cursor.fail("an initialiser", "no longer than its variable")
        for each in [f"{name}{n}" for n in range(copies)] or [name]:
            found.append(Variable(each, space, kind, nbytes * count, align, init, line, is_extern))
        if cursor.accept(";"):
            return found
        cursor.expect(",", "a declaration")


def parameter(cursor: Cursor) -> Variable:
    """One formal parameter: `.param .align 8 .b8 s[24]`, `.param .u64 .ptr p` or `.reg .b32 %r`."""
    line, space = cursor.line, cursor.token
    if space not in (".param", ".reg"):
        cursor.fail("a parameter", ".param or .reg")
    cursor.at += 1
    kind, nbytes, align = declared_type(cursor)
    _pointer_attributes(cursor)
    name = cursor.name("a parameter")
    return Variable(name, space[1:], kind, nbytes * _shape(cursor), align, None, line)


def parameters(cursor: Cursor) -> tuple[Variable, ...]:
    """A bracketed list of formal parameters; the opening bracket is behind the cursor."""
    found: list[Variable] = []
    while not cursor.accept(")"):
        if found:
            cursor.expect(",", "a parameter")
        found.append(parameter(cursor))
        if len(found) > 4096:
            cursor.fail("a parameter list", "at most 4096 long")
    return tuple(found)
