"""Changes to a text, token by token or byte by byte, so that most of it still makes sense."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

TOKEN = re.compile(r"\s+|[%$\w]+|[^\w\s]")
_NUMBERS = """
0 1 -1 3 31 32 127 0x7fffffff 4294967295 4294967296 -2147483648 18446744073709551615
18446744073709551616 0x 08 0b2 1e999 0f7F800000 0fG 0d7FF0000000000000 1.5 -
0xFFFFFFFFFFFFFFFFFFFFFFFF
"""
NUMBERS = (*_NUMBERS.split(), "9" * 60, "0x" + "F" * 5000, "9" * 5000)
_WORDS = """
{ } ( ) [ ] ; : , @ ! | % _ . + < > /* // \\ " é ０ ² %r %r99999999999 %p0 %tid %tid.x %nothing RZ
WARP_SZ k pm tile bar table .reg .b32 .u64 .pred .f16x2 .b128 .entry .func .param .shared .global
.const .local .align .section .loc .file .pragma .branchtargets .callprototype .extern .weak
.visible .alias .noreturn .maxntid .reqntid .reqnctapercluster .version .target .address_size ret
exit trap bra call bar.sync mov.b32 wgmma mma.sync tcgen05
"""
WORDS = (*_WORDS.split(), "\0", "\t", "\r", "\n", "\ud800", "\u2028")
MAX_LENGTH = 20_000

Mutation = Callable[[Random, list[str]], None]


def tokens_of(text: str) -> list[str]:
    """The text as words, numbers, signs and spaces; joined they are the text again."""
    return TOKEN.findall(text)


def mutated(random: Random, text: str, is_gentle: bool = False) -> str:
    """The text after one to four changes; gentle ones put a word in the place of its like."""
    tokens = tokens_of(text)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        if tokens:
            random.choice(GENTLE if is_gentle else MUTATIONS)(random, tokens)
    if is_gentle:
        return "".join(tokens)
    changed = "".join(tokens)
    if random.random() < 0.1:
        changed = random.choice(TEXT_MUTATIONS)(random, changed)
    return changed[:MAX_LENGTH]


def _place(random: Random, tokens: list[str]) -> int:
    """The number of a token that is no space, if one is found soon."""
    at = random.randrange(len(tokens))
    for _ in range(4):
        if not tokens[at].isspace():
            break
        at = random.randrange(len(tokens))
    return at


def delete(random: Random, tokens: list[str]) -> None:
    """A token is missing."""
    del tokens[_place(random, tokens)]


def delete_run(random: Random, tokens: list[str]) -> None:
    """Some tokens are missing."""
    at = _place(random, tokens)
    del tokens[at : at + random.randrange(1, 30)]


def duplicate(random: Random, tokens: list[str]) -> None:
    """A token stands twice."""
    at = _place(random, tokens)
    tokens.insert(at, tokens[at])


def duplicate_run(random: Random, tokens: list[str]) -> None:
    """Some tokens stand twice, or many times."""
    at = _place(random, tokens)
    run = tokens[at : at + random.randrange(1, 40)]
    tokens[at:at] = run * random.choice((1, 1, 2, 20))


def swap(random: Random, tokens: list[str]) -> None:
    """Two tokens have changed places."""
    a, b = _place(random, tokens), _place(random, tokens)
    tokens[a], tokens[b] = tokens[b], tokens[a]


def steal(random: Random, tokens: list[str]) -> None:
    """A token is another one of the text."""
    tokens[_place(random, tokens)] = tokens[_place(random, tokens)]


def replace(random: Random, tokens: list[str]) -> None:
    """A token is some word."""
    tokens[_place(random, tokens)] = random.choice(WORDS)


def insert(random: Random, tokens: list[str]) -> None:
    """Some word stands where none was."""
    tokens.insert(_place(random, tokens), random.choice(WORDS))


def renumber(random: Random, tokens: list[str]) -> None:
    """A number is another one."""
    numbers = [at for at, token in enumerate(tokens) if token[0].isdigit()]
    if numbers:
        tokens[random.choice(numbers)] = random.choice(NUMBERS)


def retype(random: Random, tokens: list[str]) -> None:
    """A modifier is another modifier of the text."""
    mods = [
        at for at, token in enumerate(tokens) if at and tokens[at - 1] == "." and token[0].isalpha()
    ]
    if mods:
        tokens[random.choice(mods)] = tokens[random.choice(mods)]


def nest(random: Random, tokens: list[str]) -> None:
    """Brackets around a token, many deep."""
    at = _place(random, tokens)
    left, right = random.choice(("()", "{}", "[]", "<>"))
    depth = random.choice((1, 3, 50, 3000))
    tokens[at] = left * depth + tokens[at] + right * random.choice((0, depth))


def cut(random: Random, tokens: list[str]) -> None:
    """The text ends early."""
    del tokens[_place(random, tokens) :]


def reregister(random: Random, tokens: list[str]) -> None:
    """A register is another one of the text."""
    names = [at for at, token in enumerate(tokens) if token[0] == "%"]
    if names:
        tokens[random.choice(names)] = tokens[random.choice(names)]


def _statements(tokens: list[str]) -> list[int]:
    return [at for at, token in enumerate(tokens) if token == ";"]


def delete_statement(random: Random, tokens: list[str]) -> None:
    """An instruction or a declaration is missing."""
    ends = _statements(tokens)
    if len(ends) > 1:
        at = random.randrange(1, len(ends))
        del tokens[ends[at - 1] : ends[at]]


def move_statement(random: Random, tokens: list[str]) -> None:
    """An instruction or a declaration stands elsewhere, or twice."""
    ends = _statements(tokens)
    if len(ends) > 1:
        at = random.randrange(1, len(ends))
        statement = tokens[ends[at - 1] : ends[at]]
        to = random.choice(ends)
        tokens[to:to] = statement


GENTLE: tuple[Mutation, ...] = (
    *[retype, reregister] * 2,
    *[renumber, delete_statement, move_statement],
)
MUTATIONS: tuple[Mutation, ...] = (
    *[delete, steal, replace, renumber, retype] * 2,
    *[delete_run, duplicate, duplicate_run, swap, insert, nest, cut],
)


def _noise(random: Random, text: str) -> str:
    """Some characters are any."""
    characters = list(text)
    for _ in range(random.randrange(1, 8)):
        if characters:
            characters[random.randrange(len(characters))] = chr(random.randrange(256))
    return "".join(characters)


def _lines(random: Random, text: str) -> str:
    """The lines stand in another order."""
    lines = text.split("\n")
    random.shuffle(lines)
    return "\n".join(lines)


def _carriage_returns(random: Random, text: str) -> str:
    """Line ends of another system."""
    return text.replace("\n", random.choice(("\r\n", "\r", "")))


TEXT_MUTATIONS: tuple[Callable[[Random, str], str], ...] = (
    _noise,
    _noise,
    _lines,
    _carriage_returns,
)
