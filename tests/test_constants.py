"""Integer constants out of C++ text: C++'s own arithmetic, and an answer where it is not simple."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lesson.constants import Constants, blank_comments
from lesson.errors import SnippetError


def value(text: str, name: str = "k") -> int:
    return Constants(text, "toy.cu")[name]


def refusal(text: str, name: str = "k") -> str:
    with pytest.raises(SnippetError) as caught:
        value(text, name)
    return str(caught.value)


@pytest.mark.parametrize(
    "declaration, expected",
    [
        ("constexpr int k = 42;", 42),
        ("const int k = 42;", 42),
        ("static constexpr unsigned int k{42u};", 42),
        ("constexpr static int k = 42;", 42),
        ("inline constexpr std::size_t k = 42;", 42),
        ("constexpr cuda::std::uint32_t k = 0x2A;", 42),
        ("constexpr unsigned long long k = 4'2ULL;", 42),
        ("constexpr auto k = 052;", 42),
        ("constexpr int k = 0b101010;", 42),
        ("constexpr int a = 6, k = a * 7;", 42),
        ("constexpr int k = /* not 1 */ 42; // constexpr int k = 1;", 42),
        ("constexpr int\n  k =\n    42;", 42),
        ("constexpr int k = -7 / 2;", -3),
        ("constexpr int k = -7 % 3;", -1),
        ("constexpr int k = 2 + 3 * 4 - 1;", 13),
        ("constexpr int k = (2 + 3) * 4;", 20),
        ("constexpr int k = 100 / 10 / 5;", 2),
        ("constexpr int k = 1 << 3 | 1;", 9),
        ("constexpr int k = 6 & 3 ^ 1;", 3),
        ("constexpr int k = ~0 - -1;", 0),
        ("constexpr int k = 64 * sizeof(float);", 256),
        ("constexpr int k = sizeof( unsigned long long );", 8),
        ("constexpr size_t w = 8; constexpr size_t k = size_t{w} * static_cast<int>(w);", 64),
    ],
)
def test_a_simple_constant_has_the_value_that_cpp_gives_it(declaration: str, expected: int):
    assert value(declaration) == expected


def test_a_constant_may_stand_before_what_it_uses():
    assert value("constexpr int k = a + 1;\nconstexpr int a = 2;") == 3


def test_constants_are_a_mapping_of_those_with_a_value():
    found = Constants("constexpr int a = 1; const int b = f(); constexpr int c = 3;", "toy.cu")
    assert dict(found) == {"a": 1, "c": 3}
    assert "b" not in found
    assert len(found) == 2


def test_a_constant_knows_its_line():
    assert Constants("\n// constexpr int k = 9;\nconstexpr int k = 1;", "toy.cu").line("k") == 3


def test_an_unknown_name_lists_those_there_are():
    assert refusal("constexpr int a = 1; constexpr int b = 2;") == (
        "constant 'k' must be declared in toy.cu, got no such constant. It declares: a, b. "
        "Ask for one of these, or add `constexpr int k = ...;`."
    )


def test_a_repeated_constant_is_refused_with_its_lines():
    assert refusal("constexpr int k = 1;\nvoid f() { const int k = 2; }") == (
        "constant 'k' must be declared once, got 2 declarations. toy.cu, lines 1, 2. "
        "Give each its own name."
    )


@pytest.mark.parametrize(
    "expression, reason",
    [
        ("threadIdx.x", "`.x` is not an integer"),
        ("f(3)", "`f` has no known value"),
        ("1.5", "`1.5` is not an integer"),
        ("1 +", "it ends too early"),
        ("(1", "it ends too early"),
        ("(1}", "`(` is not closed"),
        ("1 2", "`2` is not expected there"),
        ("* 2", "`*` is not expected there"),
        ("1 / (3 - 3)", "division by zero"),
        ("1 << 64", "a shift by 64"),
        ("1 << -1", "a shift by -1"),
        ("089", "`0o89` is not a literal"),
        ("9999999999999999999 * 9999999999999999999", "a value of more than 64 bits"),
        ("1" * 5000, "a literal of more than 64 bits"),
        ("k + 1", "`k` has no known value"),
        ("(" * 60 + "1" + ")" * 60, "nested too deeply, or defined by itself"),
        ("sizeof(CUtensorMap)", "`sizeof` has no known value"),
    ],
)
def test_what_is_not_simple_is_refused_with_the_reason(expression: str, reason: str):
    says = refusal(f"\nconstexpr int k = {expression};")
    assert says.startswith("constant 'k' must be a simple integer expression, got `")
    assert reason in says
    assert "toy.cu, line 2." in says


def test_a_long_chain_of_doublings_is_quick():
    chain = "".join(f"const int x{i} = x{i + 1} + x{i + 1};\n" for i in range(40))
    assert value(chain + "const int x40 = 1;", "x0") == 1 << 40


def test_comments_and_literals_are_blanked_line_by_line():
    text = "a /* b\nc */ \"d // e\" f // g\nh '\"' 1'000;"
    blanked = blank_comments(text)
    assert blanked.split() == ["a", "f", "h", "1'000;"]
    assert [len(line) for line in blanked.split("\n")] == [len(x) for x in text.split("\n")]


expressions = st.recursive(
    st.integers(0, 1000).map(str),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*&|^"), inner),
    max_leaves=6,
)


@given(expressions)
def test_expressions_agree_with_python_where_the_two_languages_agree(expression: str):
    assert value(f"constexpr long long k = {expression};") == eval(expression)
