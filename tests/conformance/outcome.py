"""What came of replaying one case, and how two answers are compared and shown."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lesson.errors import DeviceFault, Hang, LessonError, LimitExceeded

SHOWN_WORDS = 6
FLOATS = {"f16": (np.uint16, 0x7C00), "bf16": (np.uint16, 0x7F80), "f32": (np.uint32, 0x7F800000)}
FLOATS["f64"] = (np.uint64, 0x7FF0000000000000)
NO_ANSWER = ("timeout", "hang")
Run = Callable[..., object]
"""`lesson.emulator.launch`, its schedule chosen."""


@dataclass(frozen=True)
class Outcome:
    """`difference` is None where the emulator and the recording agree, else all there is to say."""

    case: str
    difference: str | None


def judge(case: str, difference: Callable[..., str | None], *args: Any) -> Outcome:
    """The outcome of one case; an exception is a difference too, and does not end the replay."""
    try:
        return Outcome(case, difference(*args))
    except Exception as error:  # noqa: BLE001 - whatever it is, the report says it
        last = traceback.format_exception(error)[-4:]
        return Outcome(case, f"must be replayed, got {type(error).__name__}\n{''.join(last)}")


def answer_of(run: Callable[[], object]) -> tuple[str, str]:
    """How a launch ended, in the words of the recordings, and why."""
    try:
        run()
    except DeviceFault as fault:
        return fault.cuda_error, str(fault)
    except (Hang, LimitExceeded) as error:
        return "hang", f"{type(error).__name__}: {error}"
    except LessonError as error:
        return type(error).__name__, str(error)
    return "ok", ""


def same_ending(recorded: str, got: str) -> bool:
    """Whether two endings are one: the driver and the runtime name an error differently.

    The recordings' `timeout` is a program that the chip never finished, and the emulator may say so
    by a hang or by the failure that stops it.
    """
    if recorded in NO_ANSWER:
        return got in ("hang", "CUDA_ERROR_LAUNCH_FAILED")
    return _plain(recorded) == _plain(got)


def _plain(error: str) -> str:
    letters = re.sub(r"^(cudaError|CUDA_ERROR_)", "", error).replace("_", "").lower()
    return "launchfailure" if letters == "launchfailed" else letters


def compare(
    got: np.ndarray, recorded: np.ndarray, kind: str = "", any_nan: bool = False
) -> str | None:
    """None for equal arrays, else the first words that differ, in hexadecimal.

    `any_nan`: a NaN equals every other of the type `kind`, in packed types lane by lane.
    """
    if got.shape != recorded.shape:
        return f"the output must have shape {recorded.shape}, got {got.shape}"
    if any_nan and kind.removesuffix("x2") in FLOATS:
        dtype, infinity = FLOATS[kind.removesuffix("x2")]
        got, recorded = got.view(dtype), recorded.view(dtype)
        infinite = dtype(infinity)
        nans = [(x & ~dtype(1 << (8 * x.itemsize - 1))) > infinite for x in (got, recorded)]
        differs = (got != recorded) & ~(nans[0] & nans[1])
    else:
        differs = got != recorded
    where = np.flatnonzero(differs)
    if not where.size:
        return None
    width = 2 * got.itemsize
    rows = [
        f"  word {k}: got {got[k]:#0{width + 2}x}, recorded {recorded[k]:#0{width + 2}x}"
        for k in where[:SHOWN_WORDS].tolist()
    ]
    return "\n".join([f"{where.size} of {got.size} words differ", *rows])


def excerpt(module: str, lines: int = 60) -> str:
    """The instructions of a PTX module, without its declarations."""
    kept = [
        line
        for line in module.splitlines()
        if line.strip() and not line.strip().startswith((".version", ".target", ".address", ".reg"))
    ]
    if len(kept) > lines:
        kept = [*kept[: lines // 2], f"\t... {len(kept) - lines} lines ...", *kept[-lines // 2 :]]
    return "\n".join(kept)
