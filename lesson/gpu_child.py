"""One kernel in a process of its own, so that a hang or a fault ends with that process.

The parent writes `request.pickle` into a fresh folder, starts Python on `serve`, and waits for
`answer.pickle`. The child bounds the kernel's time; the parent bounds the whole, and then kills.
Pickle is safe here: both ends are this package, in a folder that only this user can enter.

A child is started anew each time (a second or two): no state of CUDA outlives a kernel. Spawning
through multiprocessing would run the caller's main script again, and is not used for that reason.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lesson import gpu_device
from lesson.errors import DeviceFault, Hang, LessonError, TargetError
from lesson.gpu_args import Packed
from lesson.gpu_device import Launch
from lesson.gpu_status import Device

START_UP_LIMIT_S = 120.0  # to import CuPy, create a context and load the kernel

_REQUEST = "request.pickle"
_ANSWER = "answer.pickle"
_LOG = "log"
_POLL_SECONDS = 0.01
_COMMAND = (sys.executable, "-c", "import sys, lesson.gpu_child as c; c.serve(sys.argv[1])")


@dataclass(frozen=True, slots=True)
class Request:
    """What the parent asks for."""

    launch: Launch
    packed: Packed
    device: Device
    time_limit_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it: the buffers after the run, or an error of this package."""

    seconds: float
    packed: Packed | None = None
    error: LessonError | None = None


def ask_child(
    request: Request,
    command: Sequence[str] = _COMMAND,
    start_up_limit_s: float = START_UP_LIMIT_S,
) -> Answer:
    """Starts the child, waits for its answer, and ends it. Tests pass another command.

    Raises Hang when no answer came in time, TargetError when the child ended without one.
    """
    with tempfile.TemporaryDirectory(prefix="tma-lesson-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / _REQUEST).write_bytes(pickle.dumps(request))
        with (folder / _LOG).open("wb") as log:
            child = subprocess.Popen(
                [*command, str(folder)], stdout=log, stderr=log, env=_environment()
            )
            try:
                _wait(child, folder / _ANSWER, start_up_limit_s + request.time_limit_s)
                exit_status = child.poll()
            finally:
                child.kill()
                child.wait()
        if (folder / _ANSWER).exists():
            return pickle.loads((folder / _ANSWER).read_bytes())
        if exit_status is None:
            raise Hang(
                f"kernel {request.launch.kernel!r} must finish within {request.time_limit_s:g} s, "
                "got no answer from its process, which was ended. Run it in the emulator, which "
                "says who waits for what."
            )
        said = (folder / _LOG).read_text(errors="replace").strip().split("\n")[-1]
        raise TargetError(
            f"the process that runs {request.launch.kernel!r} must leave an answer, got exit "
            f"status {exit_status} and: {said or 'nothing'}. Run the kernel in the emulator."
        )


def serve(folder: str) -> None:
    """The child's side: leaves the answer where the parent looks for it."""
    request = pickle.loads((Path(folder) / _REQUEST).read_bytes())
    reply = _answer(request)
    partial = Path(folder) / f"{_ANSWER}.partial"
    partial.write_bytes(pickle.dumps(reply))
    partial.rename(Path(folder) / _ANSWER)  # the parent sees all of it or nothing
    if isinstance(reply.error, DeviceFault | Hang):
        os._exit(0)  # a context that hangs or has faulted cannot be tidied up


def _answer(request: Request) -> Answer:
    """Only errors that the lesson explains become an answer; others are in the child's log."""
    try:
        seconds = gpu_device.run(
            request.launch, request.packed, request.device, request.time_limit_s
        )
    except LessonError as error:
        return Answer(0.0, error=error)
    return Answer(seconds, request.packed)


def _wait(child: subprocess.Popen[bytes], answer: Path, limit_s: float) -> None:
    """Until there is an answer, the child has ended, or the limit has passed."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and not answer.exists() and child.poll() is None:
        time.sleep(_POLL_SECONDS)


def _environment() -> dict[str, str]:
    """This process's, with the package importable in a child that starts in another folder."""
    root = str(Path(__file__).resolve().parent.parent)
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
