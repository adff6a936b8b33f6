"""Text that is not PTX gives an error that names its line, soon, and nothing else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lesson.emulator.ptx import MAX_TEXT_BYTES, parse
from lesson.errors import LessonError, LimitExceeded, PtxSyntaxError
from tests.emulator.ptx_text import HEAD, module

BROKEN = [
    (".entry k() { ret }", "an operand must be a register, a constant, a name or a list, got '}'"),
    (".entry k() {\nmov.u32 %r1, 0;\n}", "must be declared with .reg, got '%r1'. PTX line 5"),
    (".entry k() { .reg .b32 %r<4>; mov.u32 %r4, 0; }", "a register must be declared with .reg"),
    (".entry k() { L: L: ret; }", "the label L must be defined once in a block"),
    (".entry k() { .frob; }", "a directive in a function must be one of the PTX ISA, got '.frob'"),
    (".frob", "a line outside of functions must be a directive of the PTX ISA, got '.frob'"),
    (".entry k() {", "an instruction, a directive or a label, got 'the end of the text'"),
    (".entry k() { .reg .q32 %r; }", "a register must be given a scalar type, got '.q32'"),
    (".global .u32 x[-1];", "the size of an array must be 0 or more"),
    (".global .u32 x[2] = {1,2,3};", "an initialiser must be no longer than its variable"),
    (".global .align 3 .u32 x;", "an alignment must be a power of two"),
    (".entry k() {ret;} .entry k() {ret;}", "the function k must be defined once"),
    (".address_size 32", "the address size must be 64 bits, got '32'"),
    ("/* never closed", "a comment must be closed"),
    (".section .debug_str {", "a .section must end with a closing brace"),
    (".entry k() { .reg .b64 %d; mov.u64 %d, 0x1FFFFFFFFFFFFFFFF; }", "must be a number"),
    (".entry k() { .reg .b32 %r; mov.f32 %r, 0f3F80; }", "an operand must be a number"),
    (".entry k() { .loc 1 x; }", "a line must be a number"),
]  # fmt: skip


@pytest.mark.parametrize("text,words", BROKEN, ids=[text for text, _ in BROKEN])
def test_a_broken_text_names_what_is_wrong_and_where(text: str, words: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(HEAD + text)
    assert words in str(caught.value)
    assert "PTX line" in str(caught.value)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(PtxSyntaxError, match=r"PTX must be text, got bytes"):
        parse(b".version 8.0")  # type: ignore[arg-type]


def test_a_text_beyond_the_bound_is_refused() -> None:
    with pytest.raises(LimitExceeded, match=r"PTX text must be at most"):
        parse(" " * (MAX_TEXT_BYTES + 1))


DEEP = [
    "{" * 100_000,
    ".global .u32 x[4] = " + "{" * 100_000,
    "/*" * 100_000,
    ".section .a {" * 20_000,
    ".entry k() { mov.u32 " + "{" * 50_000,
    ".entry k() { add.u32 " + "-" * 100_000 + "1;",
    ".entry k() { .reg .b32 %r<9>; mov.u32 %r" + "1" * 200_000 + ", 0; }",
    "." + "a::" * 100_000,
    ".file " * 100_000,
    '"' * 100_001,
]


@pytest.mark.parametrize("text", DEEP, ids=[text[:24] for text in DEEP])
def test_long_nonsense_is_refused_in_linear_time(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(LessonError):
        parse(HEAD + text)
    assert time.perf_counter() - start < 5


VOCABULARY = [
    *[
        ".entry",
        ".func",
        ".reg",
        ".param",
        ".shared",
        ".global",
        ".b32",
        ".u64",
        ".pred",
        ".align",
        ".loc",
        ".file",
    ],
    *[
        "k",
        "out",
        "%r1",
        "%p1",
        "%rd1",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        ",",
        ";",
        ":",
        "@",
        "!",
        "|",
        "+",
        "-",
        "=",
        "_",
        "0",
        "1",
        "4",
        "0x",
        "0f3F800000",
        "1.5",
    ],
    *[
        "ret",
        "bra",
        "mov.u32",
        "ld.global.u32",
        "call",
        "L1",
        ".branchtargets",
        "//",
        "/*",
        "*/",
        "é",
    ],
    *('"x"', "\n", "\0"),
]


def parses(text: str) -> bool:
    """Whether a text is PTX; anything but a LessonError escapes, and fails the test."""
    try:
        parse(text)
    except LessonError as error:
        return not str(error)
    return True


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(VOCABULARY), max_size=60))
def test_any_row_of_tokens_parses_or_is_refused(words: list[str]) -> None:
    assert parses(HEAD + " ".join(words)) in (True, False)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_kernel_parses_or_is_refused(data: st.DataObject) -> None:
    text = module(
        "@%p1 bra L; ld.global.v2.u32 {%r1, %r2}, [%out+8]; L: st.global.u32 [%out], %r1;"
    )
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 12)))
    patch = data.draw(st.text(max_size=6))
    assert parses(text[:start] + patch + text[stop:]) in (True, False)
