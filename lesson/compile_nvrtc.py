"""One call of NVRTC through cuda.bindings: bytes in, bytes out.

Finds NVRTC and sees to it that it is of the major version of cuda.bindings; hands it the source,
the stand-in headers and the options (NVRTC manual, "User Interface"). What the text means, what the
log says and what is cached is the business of `lesson.compile`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from lesson.cuda_headers import PRELUDE_NAME, VIRTUAL_HEADERS, Version
from lesson.errors import CompileError


@dataclass(frozen=True, slots=True)
class Image:
    """What a successful compile leaves: PTX, and machine code if a real chip was named."""

    ptx: str
    cubin: bytes


def load() -> tuple[ModuleType, Version]:
    """The module and the version of the library that it found: both of one major version."""
    cure = 'Install both: pip install "tma-lesson[cu13]" (or [cu12]).'
    try:
        bindings = importlib.import_module("cuda.bindings")
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        result, major, minor = nvrtc.nvrtcVersion()
    except ImportError as error:
        raise CompileError(f"cuda.bindings must be installed, got: {error}. {cure}") from None
    except RuntimeError as error:  # the bindings are there, the library is not
        first = str(error).strip().split("\n")[0]
        raise CompileError(f"NVRTC must be installed, got: {first}. {cure}") from None
    expected = int(bindings.__version__.split(".")[0])
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS or major != expected:
        raise CompileError(
            f"NVRTC must be of the major version of cuda.bindings ({expected}), got "
            f"{major}.{minor}. {cure}"
        )
    return nvrtc, (major, minor)


def run(
    nvrtc: ModuleType, source: str, name: str, options: Sequence[str], *, prelude: bool
) -> tuple[Image | None, str]:
    """What came out (None when refused), and the log."""
    if prelude:
        options = [*options, f"--pre-include={PRELUDE_NAME}"]
    program = _checked(
        nvrtc,
        nvrtc.nvrtcCreateProgram(
            source.encode(),
            name.encode(),
            len(VIRTUAL_HEADERS),
            [text.encode() for text in VIRTUAL_HEADERS.values()],
            [header.encode() for header in VIRTUAL_HEADERS],
        ),
    )
    try:
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        log = _fetched(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        text = log.rstrip(b"\0 \n").decode("utf-8", errors="replace")
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return None, text or f"{name}(1): error: {result.name}"
        ptx = _fetched(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        cubin = b""
        if any(option.startswith("--gpu-architecture=sm_") for option in options):
            cubin = _fetched(nvrtc, program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        return Image(ptx.rstrip(b"\0 \n").decode("utf-8", errors="replace"), cubin), text
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _fetched(nvrtc: ModuleType, program: object, size_of: Callable, read: Callable) -> bytes:
    """NVRTC hands out bytes in two calls: how many, then the bytes.

    NVRTC writes into the bytes object, so it must be one that nobody else holds: Python shares
    every bytes object of length 1, and an empty log is that long. Hence one byte more.
    """
    size = _checked(nvrtc, size_of(program))
    buffer = bytes(size + 1)
    _checked(nvrtc, read(program, buffer))
    return buffer[:size]


def _checked(nvrtc: ModuleType, answer: tuple) -> object:
    result, *values = answer
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC must answer NVRTC_SUCCESS, got {result.name}. Reinstall it.")
    return values[0] if values else None
