"""One case of the fuzzer: what is made from a seed, how it is run, and what may come of it."""

from __future__ import annotations

import signal
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import FrameType
from typing import Any

import numpy as np

from lesson import snippets
from lesson.emulator import Limits, launch
from lesson.emulator.ordering import Ordering
from lesson.emulator.trace import Trace
from lesson.errors import LessonError
from lesson.tensor_map import TensorMap, check, refuse
from tests.fuzz import values
from tests.fuzz.modules import STARTS, Start
from tests.fuzz.mutate import mutated

LIMITS = Limits(steps=20_000, seconds=2.0, memory_bytes=64 << 20)
PATIENCE_SECONDS = 20
SCHEDULES = ("eager", "late", "random")
SOURCE = snippets.KERNEL_PATH.read_text(encoding="utf-8")


class Overdue(BaseException):
    """A case has run for much longer than its limits allow."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case: `kind` of input, `result` in a word, the traceback of a failure."""

    kind: str
    result: str
    failure: str = ""


def run_module(random: Random, start: Start, ptx: str, **changes: Any) -> None:
    """Launch a text as its start says; now and then with the checks or a trace looking on."""
    given = {
        "grid": start.grid,
        "block": start.block,
        "shared_bytes": start.shared_bytes,
        **changes,
    }
    args = given.pop("args", None)
    if args is None:
        args = start.args()
    kernel = given.pop("kernel", "k")
    grid, block = given.pop("grid"), given.pop("block")
    given.setdefault("schedule", random.choice(SCHEDULES))
    watch = random.choice((None, None, Ordering, Trace))
    given["observers"] = (watch(),) if watch else ()
    launch(ptx, kernel, grid, block, args, limits=LIMITS, **given)


def malformed_ptx(random: Random) -> None:
    """A module in which some tokens are wrong."""
    start = random.choice(STARTS)
    run_module(random, start, mutated(random, start.ptx), kernel=random.choice(("k", None)))


def unlikely_ptx(random: Random) -> None:
    """A module whose registers, types, numbers and instructions are not those that were meant."""
    start = random.choice(STARTS)
    run_module(random, start, mutated(random, start.ptx, is_gentle=True))


def spliced_ptx(random: Random) -> None:
    """A body of instructions taken from all modules in any order."""
    start = random.choice(STARTS)
    lines = [line for each in STARTS for line in each.ptx.split(";")]
    head, tail = start.ptx.split("mov.u32 %r10, bar;")[0], "st.global.u32 [%l1], %r2; ret; }"
    body = ";".join(random.choice(lines) for _ in range(random.randrange(1, 12)))
    text = f"{head}mov.u32 %r10, bar;\n{body};\n{tail}"
    run_module(random, start, mutated(random, text) if random.random() < 0.3 else text)


def malformed_launch(random: Random) -> None:
    """A good module launched in a bad way."""
    start = random.choice(STARTS)
    changes: dict[str, Any] = {}
    makers: dict[str, Callable[[], Any]] = {
        "grid": lambda: values.extent(random),
        "block": lambda: values.extent(random),
        "cluster": lambda: values.extent(random),
        "shared_bytes": lambda: values.number(random),
        "kernel": lambda: random.choice(("k", "", "twice", None, 5, b"k", "K")),
        "schedule": lambda: random.choice(("eager", "late", "random", "", "EAGER", None, 3)),
        "seed": lambda: values.number(random),
        "batch_blocks": lambda: values.number(random),
        "symbols": lambda: {random.choice(("table", "place", "none")): values.argument(random)},
        "args": lambda: _arguments(random, start),
    }
    for name in random.sample(sorted(makers), random.choice((1, 1, 2, 3))):
        changes[name] = makers[name]()
    run_module(random, start, start.ptx, **changes)


def _arguments(random: Random, start: Start) -> Any:
    """Arguments of which one or two are wrong, or too many, or none."""
    given = start.args()
    for _ in range(random.choice((1, 1, 2))):
        given[random.randrange(len(given))] = values.argument(random)
    roll = random.random()
    if roll < 0.1:
        return given[: random.randrange(len(given))]
    if roll < 0.2:
        return [*given, values.argument(random)]
    return random.choice((None, 5, "args", (), {})) if roll < 0.25 else given


def malformed_map(random: Random) -> None:
    """A tensor map of any values: the rules judge it, and a kernel copies through it."""
    likely = random.random() < 0.6
    fields = (values.likely_map_fields if likely else values.tensor_map_fields)(random)
    tmap = TensorMap(**fields)
    for broken in check(tmap):
        str(broken)
    if not likely:
        refuse(tmap)
    start = random.choice([each for each in STARTS if each.name.startswith("tensor")])
    args = start.args()
    args[2] = tmap
    run_module(
        random, start, start.ptx, args=args, shared_bytes=random.choice((64, 16384, 200_000))
    )


def malformed_array_map(random: Random) -> None:
    """A tensor map read from an array that may not be one."""
    base = values.array(random) if random.random() < 0.8 else random.choice(values.ODDITIES)
    refuse(TensorMap.from_array(base, box=values.entries(random, random.randrange(1, 4))))


def malformed_markers(random: Random) -> None:
    """The lesson's source with wrong markers and constants."""
    lines = SOURCE.split("\n")
    marks = [at for at, line in enumerate(lines) if "snippet" in line or "constexpr" in line]
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.choice(marks)
        lines[at] = random.choice((mutated(random, lines[at]), "", lines[random.choice(marks)]))
    text = "\n".join(lines)
    source = snippets.parse(mutated(random, text) if random.random() < 0.2 else text)
    for snippet in source.snippets:
        snippet.dedented()
    for name in list(source.constants):
        source.constant(name)


KINDS: tuple[tuple[Callable[[Random], None], int], ...] = (
    (malformed_ptx, 35),
    (unlikely_ptx, 25),
    (spliced_ptx, 10),
    (malformed_launch, 13),
    (malformed_map, 10),
    (malformed_array_map, 2),
    (malformed_markers, 5),
)


def run_case(seed: int, number: int) -> Outcome:
    """Make and run the case; a failure is anything but a result or a LessonError."""
    random = Random(f"{seed}:{number}")
    make = random.choices([each for each, _ in KINDS], [weight for _, weight in KINDS])[0]
    return judged(make.__name__, lambda: make(random))


def judged(kind: str, run: Callable[[], None]) -> Outcome:
    """Run something with warnings as errors and a clock, and say what came of it."""
    before = np.geterr()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run()
    except LessonError as error:
        if not str(error).strip():
            return Outcome(kind, "failure", f"{type(error).__name__} says nothing")
        return Outcome(kind, type(error).__name__)
    except (Exception, Overdue):  # noqa: BLE001 - whatever it is, it is what a fuzzer looks for
        return Outcome(kind, "failure", traceback.format_exc())
    if np.geterr() != before:
        return Outcome(kind, "failure", "numpy's error state has been changed")
    return Outcome(kind, "result")


def start_clock() -> None:
    """From here on `tick` makes a case that runs for too long raise Overdue."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Overdue(f"more than {PATIENCE_SECONDS} s")

    signal.signal(signal.SIGALRM, ring)


def tick(seconds: int = PATIENCE_SECONDS) -> None:
    """The next case starts."""
    signal.alarm(seconds)
