"""Check a kernel: compile it, run it under every schedule of the copies, name what is wrong.

`check` takes any kernel, as a path or as text, with its launch in arguments or in head comments
(`check_case`). The map's rules come first, then the launch, then the runs in the emulator with the
checks of `emulator.ordering`; a fault or a hang becomes a finding with its cause (`check_faults`,
`check_hangs`), and an output that is not what the head says is explained (`check_outputs`). Code
that no run reaches is not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lesson import check_words_places, check_words_stores, emulator
from lesson import compile as compiler
from lesson.check_case import MAP, Case, from_head, merged, read_source, tensor_map
from lesson.check_faults import explain_fault
from lesson.check_hangs import explain_hang
from lesson.check_launch import opt_in, refused_launch, refused_maps
from lesson.check_outputs import explain_output
from lesson.check_scene import Scene
from lesson.check_words import WORDS
from lesson.emulator.ordering import Ordering
from lesson.emulator.ordering_global import WEAK
from lesson.emulator.ordering_notes import Note
from lesson.errors import (
    DeviceFault,
    Hang,
    LaunchError,
    LessonError,
    LimitExceeded,
    PtxSyntaxError,
    UnsupportedPtx,
)
from lesson.finding_kinds import FAULT, KINDS
from lesson.findings import Finding, Outcome, Report

__all__ = ["SCHEDULES", "Report", "check", "check_case"]
assert check_words_places
assert check_words_stores
SCHEDULES = ("eager", "late", "random")
# What does not add up where each of many threads expects and brings the whole.
SUMS = ("bytes-not-expected", "too-few-bytes-expected", "too-many-bytes-expected")
OnGpu = Callable[[Case, "compiler.Ptx | None", list[Outcome]], "Outcome | None"]


def check(
    source_or_path: Any,
    *,
    kernel: str | None = None,
    grid: Any = None,
    block: Any = None,
    args: Sequence[Any] | None = None,
    tensor_maps: Mapping[str, Any] | None = None,
    shared_bytes: int | None = None,
    cluster: Any = None,
    expect: Any = None,
    schedules: Sequence[str] = SCHEDULES,
    name: str | None = None,
    first_line: int = 1,
    gpu: OnGpu | None = None,
) -> Report:
    """Everything that is wrong with a kernel, as far as runs of it show.

    `source_or_path`: CUDA C++ or PTX text, or the path of a file. What is None is taken from the
    head comments. `args`: arrays, numbers, TensorMaps, or names of those in the head ("in", "out",
    "map") and of `tensor_maps` (name -> TensorMap, or a dict of what differs from the default one).
    `expect`: the right contents of the first array that is written, or a dict from the position or
    name of an argument. `gpu`: `check_gpu.on_the_gpu`, to run it on a Hopper GPU as well, if there
    is one. Raises a LessonError where the kernel cannot be compiled or run at all.
    """
    source, known_as, path = read_source(source_or_path)
    case = from_head(source, name or known_as, path)
    case = _given(case, kernel, grid, block, args, tensor_maps, shared_bytes, cluster, expect)
    return check_case(case, schedules, first_line, gpu)


def _given(
    case: Case, kernel: str | None, grid: Any, block: Any, args: Sequence[Any] | None,
    tensor_maps: Mapping[str, Any] | None, shared_bytes: int | None, cluster: Any, expect: Any,
) -> Case:  # fmt: skip
    """The case with what the caller said in place of what the head says."""
    changes = {
        key: value
        for key, value in dict(
            kernel=kernel, grid=grid, block=block, shared_bytes=shared_bytes, cluster=cluster
        ).items()
        if value is not None
    }
    case = replace(case, **changes)
    for name, given in (tensor_maps or {}).items():
        tmap = given
        if isinstance(given, Mapping):
            tmap = tensor_map(merged(dict(given), name, MAP, "tensor_maps"), case.arrays)
        case = replace(case, maps={**case.maps, name: tmap})
    if args is not None:
        case = _with_args(case, args)
    if expect is not None:
        case = replace(case, expected=_expected(case, expect))
    return case


def _with_args(case: Case, args: Sequence[Any]) -> Case:
    """Arrays and maps among the arguments get names."""
    arrays, maps, named = dict(case.arrays), dict(case.maps), []
    if not any(isinstance(arg, str) for arg in args):
        arrays, maps = {}, {}
    for n, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            name = next((k for k, v in arrays.items() if v is arg), f"argument {n}")
            arrays[name] = arg
            named.append(name)
        elif hasattr(arg, "strides_bytes") and hasattr(arg, "box"):
            maps[f"map {n}"] = arg
            named.append(f"map {n}")
            if isinstance(arg.base, np.ndarray) and not any(v is arg.base for v in arrays.values()):
                arrays[f"the tensor of map {n}"] = arg.base
        elif isinstance(arg, str) and arg not in arrays and arg not in maps:
            raise LaunchError(
                "an argument must be an array, a map, a number or one of "
                f"{', '.join([*arrays, *maps])}, got {arg!r}."
            )
        else:
            named.append(arg)
    width = next((a.shape[-1] for a in arrays.values() if a.ndim > 1), case.width)
    return replace(case, args=tuple(named), arrays=arrays, maps=maps, expected={}, width=width)


def _expected(case: Case, expect: Any) -> dict[str, np.ndarray]:
    if isinstance(expect, Mapping):
        return {
            (case.args[key] if isinstance(key, int) else str(key)): np.asarray(value)
            for key, value in expect.items()
        }
    names = [arg for arg in case.args if isinstance(arg, str) and arg in case.arrays]
    target = "out" if "out" in names else names[-1] if names else "out"
    return {target: np.asarray(expect)}


# ------------------------------------------------------------------------------------- the runs
def check_case(
    case: Case,
    schedules: Sequence[str] = SCHEDULES,
    first_line: int = 1,
    gpu: OnGpu | None = None,
    ptx: compiler.Ptx | None = None,
) -> Report:
    """The report on a case; `ptx` is that of its source, where it is known already."""
    nothing = Scene(case, Ordering(), "launch")
    refused = refused_maps(case, nothing)
    if refused:
        outcome = Outcome("launch", "error", "CUDA_ERROR_INVALID_VALUE")
        return Report(case.name, tuple(refused), (), (outcome,))
    compiled = ptx
    if compiled is None and not case.is_ptx:
        folder = str(Path(case.path).resolve().parent) if case.path else None
        compiled = compiler.to_ptx(
            case.source, name=case.name, first_line=first_line, folder=folder
        )
    text = case.source if compiled is None else compiled.text
    no_opt_in = opt_in(case, nothing)
    if no_opt_in is not None:
        outcome = Outcome("launch", "error", "CUDA_ERROR_INVALID_VALUE")
        return Report(case.name, (no_opt_in,), (), (outcome,))
    seen: list[Finding] = []
    outcomes: list[Outcome] = []
    for schedule in schedules:
        found, outcome = run_once(case, text, schedule)
        seen += found
        outcomes.append(outcome)
    if gpu is not None:
        outcomes += filter(None, [gpu(case, compiled, outcomes)])
    findings, also = choose(seen)
    return Report(case.name, findings, also, tuple(outcomes))


def run_once(case: Case, ptx: str, schedule: str) -> tuple[list[Finding], Outcome]:
    """What one run shows: findings, causes first, and its outcome."""
    observer = Ordering(compares_values=not case.expected)
    args, arrays = case.fresh()
    error: LessonError | None = None
    try:
        emulator.launch(
            ptx, case.kernel, case.grid, case.block, args, shared_bytes=case.shared_bytes,
            cluster=case.cluster, schedule=schedule, observers=(observer,),
        )  # fmt: skip
    except (UnsupportedPtx, PtxSyntaxError):
        raise
    except LessonError as caught:
        error = caught
    scene = Scene(case, observer, schedule)
    wrong = 0 if error else sum(_wrong(arrays[n], want) for n, want in case.expected.items())
    last = _consequence(error, arrays, scene)
    is_wrong = bool(wrong or error)
    notes = [note for note in observer.notes if is_mistake(note, scene, is_wrong)]
    found = [WORDS[note.kind](note, scene) for note in notes] + last
    return found, _outcome(schedule, error, wrong)


def _wrong(got: np.ndarray, want: np.ndarray) -> int:
    """How many elements differ in a bit."""
    want = np.ascontiguousarray(want.astype(got.dtype).reshape(got.shape))
    bits = f"u{got.itemsize}"
    return int(np.count_nonzero(np.ascontiguousarray(got).view(bits) != want.view(bits)))


def is_mistake(note: Note, scene: Scene, is_wrong: bool) -> bool:
    """Whether a note is a mistake of the kernel, rather than of a library or of no consequence."""
    if note.kind == "barrier-not-published" and "tensor" not in note.instr.mods:
        return "memcpy_async" not in scene.case.source  # libcu++ answers for its own copies
    if note.kind == "read-uninitialised" and note.instr is not None and note.instr.loc is not None:
        return note.instr.loc.file.rsplit("/", 1)[-1] == scene.case.name
    if note.kind != "written-by-several-blocks":
        return True
    if scene.observer.global_shadow.is_exempt:
        return False
    return is_wrong or (note.facts["how"] != WEAK and not scene.case.expected)


def _consequence(
    error: LessonError | None, arrays: dict[str, np.ndarray], scene: Scene
) -> list[Finding]:
    """What the end of the run shows."""
    if isinstance(error, Hang):
        return [explain_hang(error, scene)]
    if isinstance(error, DeviceFault):
        return [explain_fault(error, scene)]
    if isinstance(error, LimitExceeded):
        says = f"The kernel did not finish: {error}"
        return [scene.finding(None, "no-end", 0, says, "Look for a loop that cannot end.")]
    if isinstance(error, LaunchError):
        return [refused_launch(str(error), scene)]
    if error is not None:
        raise error
    found = []
    for name, want in scene.case.expected.items():
        got = arrays[name]
        found += explain_output(name, got, want.astype(got.dtype).reshape(got.shape), scene)
    return found


def _outcome(schedule: str, error: LessonError | None, wrong: int) -> Outcome:
    if error is None:
        return Outcome(schedule, "wrong" if wrong else "ok", "", wrong)
    kind = (
        "hang"
        if isinstance(error, Hang)
        else "limit"
        if isinstance(error, LimitExceeded)
        else "error"
    )
    return Outcome(schedule, kind, getattr(error, "cuda_error", "") or str(error).split(". ")[0])


# ----------------------------------------------------------------------------- cause and effect
def choose(
    seen: Sequence[Finding],
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The mistakes, and what most likely follows from them. One finding a mistake, over all
    schedules."""
    merged: dict[tuple[object, ...], Finding] = {}
    for finding in seen:
        before = merged.get(finding.key)
        if before is None:
            merged[finding.key] = finding
        elif finding.schedules[0] not in before.schedules:
            schedules = before.schedules + finding.schedules
            merged[finding.key] = replace(before, schedules=schedules)
    if not merged:
        return (), ()
    every = list(merged.values())
    root = _root(every)
    return (root,), tuple(each for each in every if each is not root)


def _root(every: list[Finding]) -> Finding:
    """The most likely cause: by rank, then the first that was seen."""
    proved = next((each for each in every if each.is_proved), None)
    if proved is not None:
        return proved
    ranked = sorted(every, key=lambda f: KINDS[f.kind].rank)
    if KINDS[ranked[0].kind].rank >= FAULT:
        return ranked[0]
    first = next(f for f in every if KINDS[f.kind].rank < FAULT)
    if first.kind in ("read-before-wait", "read-uninitialised"):
        first = next((each for each in every if each.kind == "wait-wrong-parity"), first)
    if first.kind in SUMS:
        first = next((each for each in every if each.kind == "every-thread-issues"), first)
    return min((each for each in every if each.kind == first.kind), key=lambda each: each.line)
