"""What comes of a kernel that may be broken, in words, from a run in the emulator.

Does: tells right, wrong, faulting and hanging runs apart, names the line, and for a hang what the
barrier still waits for.
Does not: run anything on a GPU, so the words are the same on both targets; or judge a run that came
out right, which may have been lucky.
"""

from __future__ import annotations

import textwrap

from lesson import barrier_story, targets
from lesson.errors import DeviceFault, Hang
from lesson.kernel_source import TileKernel
from lesson.targets import Name

WHEN = {"eager": "at once", "late": "as late as they can", "random": "at random times"}


def of(kernel: TileKernel, schedule: str) -> str:
    """Runs the kernel on a new matrix; `schedule` says when copies land.

    The first line gives nothing away: it is what JupyterLab shows of an output that is folded.
    """
    story = barrier_story.Story()
    try:
        run = targets.run_tile_kernel(
            kernel,
            targets.lesson_map(),
            targets.full_grid(),
            Name.EMULATOR,
            schedule=schedule,
            observers=(story,),
        )
    except Hang as hang:
        return _sentence(schedule, f"hang. {_waiting(hang, story)}")
    except DeviceFault as fault:
        words = fault.cuda_error.removeprefix("CUDA_ERROR_").replace("_", " ").lower()
        return _sentence(schedule, f"{words}: {_without_ptx(fault)}")
    if not run.wrong_elements:
        return _sentence(schedule, "all bits are right.")
    return _sentence(schedule, f"{run.wrong_elements} of {run.output.size} elements are wrong.")


def _sentence(schedule: str, what: str) -> str:
    body = textwrap.fill(what, 92, initial_indent="    ", subsequent_indent="    ")
    return f"If copies land {WHEN[schedule]}:\n{body}"


def _without_ptx(fault: DeviceFault) -> str:
    """The fault's words with the source line only: PTX lines differ from compiler to compiler."""
    where = getattr(fault, "where", None)
    if where is None:
        return str(fault)
    place = f"{where.file} line {where.line}, block {where.block}, thread {where.thread}"
    return str(fault).replace(str(where), place)


def _waiting(hang: Hang, story: barrier_story.Story) -> str:
    """Who waits where, and for what the watched barrier waits."""
    said = []
    if hang.waits:
        threads = sum(len(wait.lanes) for wait in hang.waits)
        where = hang.waits[0].where
        said.append(f"{threads} threads wait, the first at {where.file} line {where.line}.")
    if story.steps:
        last = story.steps[-1]
        said.append(
            f"The barrier of the first block still waits for {last.pending} arrivals and"
            f" {last.nbytes} bytes."
        )
    return " ".join(said)
