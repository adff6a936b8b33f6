"""One call of NVRTC through cuda.bindings: bytes in, bytes out.

Finds NVRTC, of the major version of cuda.bindings where there is a choice; hands it the source, the
stand-in headers and the options (NVRTC manual, "User Interface"). What the text means, what the log
says and what is cached is the business of `lesson.compile`.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from lesson.cuda_headers import PRELUDE_NAME, VIRTUAL_HEADERS, Version
from lesson.errors import CompileError


@dataclass(frozen=True, slots=True)
class Image:
    """What a successful compile leaves: PTX, and machine code if a real chip was named."""

    ptx: str
    cubin: bytes


def load() -> tuple[ModuleType, Version]:
    """cuda.bindings' NVRTC module, and the version of the library that it found."""
    cure = 'Install both: pip install "tma-lesson[cu13]" (or [cu12]).'
    try:
        bindings = importlib.import_module("cuda.bindings")
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        _prefer_wheel(int(bindings.__version__.split(".")[0]))
        result, major, minor = nvrtc.nvrtcVersion()
    except ImportError as error:
        raise CompileError(f"cuda.bindings must be installed, got: {error}. {cure}") from None
    except RuntimeError as error:  # the bindings are there, the library is not
        first = str(error).strip().split("\n")[0]
        raise CompileError(f"NVRTC must be installed, got: {first}. {cure}") from None
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC must tell its version, got {result.name}. {cure}")
    return nvrtc, (major, minor)


@lru_cache(maxsize=4)
def _prefer_wheel(major: int) -> None:
    """Loads the wheels' NVRTC of the bindings' own major version, if none is loaded yet.

    Left alone, cuda.bindings takes the newest NVRTC that it finds in any wheel, so that 12's would
    meet 13's where both are installed. It takes one that the process has loaded before all others.
    """
    if sys.platform != "linux":
        return
    soname = f"libnvrtc.so.{major}"
    for folder in _wheel_folders(major):
        if (folder / soname).is_file() and not _is_loaded(soname):
            for library in (
                *sorted(folder.glob(f"libnvrtc-builtins.so.{major}.*")),
                folder / soname,
            ):
                ctypes.CDLL(str(library), os.RTLD_NOW | os.RTLD_GLOBAL)


def _wheel_folders(major: int) -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    inside = "cuda_nvrtc/lib" if major == 12 else f"cu{major}/lib"
    return [Path(each) / inside for each in (spec and spec.submodule_search_locations) or ()]


def _is_loaded(soname: str) -> bool:
    try:
        ctypes.CDLL(soname, os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


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
        with _interrupts_held_off():
            (result,) = nvrtc.nvrtcCompileProgram(
                program, len(options), [o.encode() for o in options]
            )
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


@contextmanager
def _interrupts_held_off() -> Iterator[None]:
    """While NVRTC compiles, an interrupt does nothing; afterwards it does what it did before.

    NVRTC handles SIGINT itself meanwhile, unless it is ignored, and then allocates memory in its
    handler: a cell that is interrupted during a compile would hang, or end the kernel.
    """
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or handler is None:  # Python may not change it here, or did not set it
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


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
