"""Every error that this package raises on purpose.

One grammar: the *thing* must be *rule*, got *value*; then where; then the cure. A caller who wants
to catch "anything the lesson can explain" catches `LessonError`; nothing else should ever reach a
reader.
"""

from __future__ import annotations


class LessonError(Exception):
    """Root of all errors that the lesson explains in words."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the words, without the lesson's own frames above them."""
        return [f"{type(self).__name__}: {self}"]


class SnippetError(LessonError):
    """A marked region or constant of a .cu file is missing, repeated, nested, unclosed or empty."""


class CompileError(LessonError):
    """NVRTC refused the source, or there is no NVRTC; the message carries NVRTC's log.

    `log` is that log, empty without NVRTC; `errors` holds a record of each place it complains of.
    """

    def __init__(self, message: str, log: str = "", errors: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.log = log
        self.errors = errors


class TensorMapError(LessonError):
    """A tensor map that the driver refuses. `broken` lists every broken rule."""

    def __init__(self, message: str, broken: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.broken = broken


class TargetError(LessonError):
    """No target can run this: no GPU, one that is too old, no driver, no CuPy."""


class LaunchError(LessonError):
    """The launch itself is wrong: kernel name, grid, block, arguments, shared memory."""


class PtxSyntaxError(LessonError):
    """Text that is not PTX as the grammar has it."""


class UnsupportedPtx(LessonError):
    """Valid PTX that the emulator does not model. It never guesses: it names the line."""


class LimitExceeded(LessonError):
    """A bound on steps, time or memory was reached before the kernel finished."""


class Hang(LessonError):
    """Every live thread waits, no copy is in flight and nothing can change any more.

    `waits` holds plain records of who waits where, for `diagnosis` to speak of.
    """

    def __init__(self, message: str, waits: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.waits = waits


class DeviceFault(LessonError):
    """What the chip reports as a sticky CUDA error. `cuda_error` is the driver's name for it."""

    cuda_error = "CUDA_ERROR_LAUNCH_FAILED"


class IllegalInstruction(DeviceFault):
    """The chip raises this for, among others, a tensor copy that starts off a 16-byte boundary."""

    cuda_error = "CUDA_ERROR_ILLEGAL_INSTRUCTION"


class IllegalAddress(DeviceFault):
    """An access outside every allocation, or to a space that the instruction cannot reach."""

    cuda_error = "CUDA_ERROR_ILLEGAL_ADDRESS"


class MisalignedAddress(DeviceFault):
    """An address that is not a multiple of what the instruction needs."""

    cuda_error = "CUDA_ERROR_MISALIGNED_ADDRESS"


class LaunchFailure(DeviceFault):
    """`unspecified launch failure`: too many arrivals, say, or an mbarrier never initialised."""


class NotebookError(LessonError):
    """The notebook is not there, is not one, or did not run to its end."""
