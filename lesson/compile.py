"""CUDA C++ text to PTX with NVRTC, on a machine with no GPU and no driver.

Goes through `cuda.bindings.nvrtc` (NVRTC manual, "User Interface"), always with line information,
so that every PTX instruction knows the line of the .cu file or notebook cell that it came from. The
source is compiled as it is: what NVRTC lacks comes in by `--pre-include`, which shifts no line.
Paths in the PTX are cut to the part that does not depend on the machine.

Not done here: linking and host code. Where there is no NVRTC (macOS), `lesson.recorded` serves
PTX that was recorded for known source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import ModuleType

from lesson import compile_nvrtc, compile_pch, cuda_headers, recorded
from lesson.compile_log import compile_error, places
from lesson.constants import blank_comments
from lesson.cuda_headers import Headers, Version
from lesson.errors import CompileError

DEFAULT_ARCH = "compute_90"
STANDARDS = ("c++17", "c++20")

_ARCH = re.compile(r"(?:compute_|sm_)?(\d{2,3}[af]?)\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")
_OWN_MAP = re.compile(r"\bstruct\s+(?:alignas\s*\([^)]*\)\s*)?CUtensorMap(?:_st)?\s*\{")
_ENTRY = re.compile(r"^\s*(?:\.\w+\s+)*\.entry\s+([\w$]+)", re.MULTILINE)
_FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"([^"]*)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ptx:
    """PTX text and where it came from. `source` is the text that was compiled."""

    text: str = field(repr=False)
    source_name: str
    source: str = field(repr=False)
    kernels: tuple[str, ...]
    arch: str
    nvrtc_version: Version
    headers: str  # in words
    log: str = field(repr=False)  # warnings
    first_line: int = 1
    options: tuple[str, ...] = field(default=(), repr=False)  # NVRTC's, but for headers
    recorded: bool = False  # served from a recording, not compiled here


@dataclass(frozen=True, slots=True)
class _Job:
    """All that the PTX depends on, and so the key of the cache."""

    source: str
    name: str
    first_line: int
    options: tuple[str, ...]
    arch: str
    folder: str = ""


def to_ptx(
    source: str,
    *,
    name: str = "kernel.cu",
    first_line: int = 1,
    arch: str = DEFAULT_ARCH,
    macros: Mapping[str, str | int | None] | None = None,
    std: str = "c++17",
    debug: bool = False,
    folder: str | None = None,
) -> Ptx:
    """Compiles CUDA C++ for a virtual architecture such as "compute_90" (or "sm_90", "90a").

    `name` and `first_line` say what errors and PTX lines call the text's first line: a notebook
    cell passes its own. `macros` are defined first (None: as nothing). `debug` is nvcc's -G.
    `folder` is where an #include "..." of the text is looked for.
    Raises CompileError with NVRTC's log. A second call with the same text costs nothing.
    """
    job = replace(
        _job(source, name, first_line, arch, macros or {}, std, debug), folder=folder or ""
    )
    try:
        nvrtc, version = compile_nvrtc.load()
    except CompileError as no_nvrtc:
        found = recorded.find(source, job.arch) if _is_plain(job) else None
        if found is None:
            raise recorded.refusal(name, str(no_nvrtc)) from None
        return Ptx(
            text=found.text,
            source_name=name,
            source=source,
            kernels=kernel_names(found.text),
            arch=job.arch,
            nvrtc_version=found.nvrtc_version,
            headers="recorded",
            log="",
            recorded=True,
        )
    return _compiled(job, version, _headers(version), nvrtc)


def to_cubin(ptx: Ptx, arch: str) -> bytes:
    """Machine code for one chip ("sm_90") from the same source and options.

    For a driver that is older than NVRTC: it cannot translate NVRTC's PTX, and runs its machine
    code all the same, within one major version.
    """
    return _cubin(ptx.source, ptx.source_name, ptx.first_line, ptx.options, arch)


def source_to_cubin(
    source: str, *, name: str, arch: str, macros: Mapping[str, str | int | None] | None = None
) -> bytes:
    """Machine code for one chip ("sm_90") in one compile, where nobody asks for the PTX."""
    job = _job(source, name, 1, arch, macros or {}, "c++17", False)
    return _cubin(job.source, job.name, job.first_line, job.options, arch)


def _cubin(source: str, name: str, first_line: int, options: tuple[str, ...], arch: str) -> bytes:
    nvrtc, version = compile_nvrtc.load()
    options = tuple(o for o in options if not o.startswith("--gpu-architecture="))
    job = _Job(
        source=source,
        name=name,
        first_line=first_line,
        options=(f"--gpu-architecture={arch}", *options),
        arch=arch,
    )
    image, log = _attempts(nvrtc, job, _headers(version), ())
    if image is None:
        lines = places(job.source, job.name, job.first_line)
        raise compile_error(job.name, arch, version, log, lines)
    return image.cubin


def kernel_names(ptx: str) -> tuple[str, ...]:
    """The entry points of PTX text, in order."""
    return tuple(_ENTRY.findall(ptx))


def nvrtc_version() -> Version:
    """The version of the NVRTC that compiles here; CompileError says why there is none."""
    return compile_nvrtc.load()[1]


def _is_plain(job: _Job) -> bool:
    return (
        job.first_line == 1
        and not job.folder
        and job.options == _options(job.arch, {}, "c++17", False)
    )


def _job(
    source: str,
    name: str,
    first_line: int,
    arch: str,
    macros: Mapping[str, str | int | None],
    std: str,
    debug: bool,
) -> _Job:
    """Checks the arguments one by one."""
    if not isinstance(source, str) or "\0" in source:
        got = "a NUL character in it" if isinstance(source, str) else type(source).__name__
        raise CompileError(f"source must be text, got {got}. Pass the CUDA C++ itself, not a path.")
    try:
        source.encode()
    except UnicodeEncodeError:
        raise CompileError(
            "source must be text that UTF-8 can hold, got a lone surrogate. Type it anew."
        ) from None
    if not name or not name.isprintable() or '"' in name or "\\" in name:
        raise CompileError(
            f'name must be printable, without " and \\, got {name!r}. Pass a file name.'
        )
    if first_line < 1:
        raise CompileError(f"first_line must be 1 or more, got {first_line}. Lines count from 1.")
    if std not in STANDARDS:
        raise CompileError(f"std must be one of {', '.join(STANDARDS)}, got {std!r}. Pass one.")
    found = _ARCH.match(str(arch))
    if not found:
        raise CompileError(
            f"arch must be a virtual architecture, got {arch!r}. For Hopper pass compute_90."
        )
    arch = f"compute_{found[1]}"
    return _Job(source, name, first_line, _options(arch, macros, std, debug), arch)


def _options(
    arch: str, macros: Mapping[str, str | int | None], std: str, debug: bool
) -> tuple[str, ...]:
    definitions = []
    for macro, value in macros.items():
        if not _IDENTIFIER.match(macro) or "\0" in str(value):
            raise CompileError(
                f"a macro must be an identifier with a value, got {macro!r}. Rename it."
            )
        definitions.append(f"-D{macro}=" + ("" if value is None else str(value)))
    lines = "--device-debug" if debug else "--generate-line-info"
    return (f"--gpu-architecture={arch}", f"--std={std}", lines, *definitions)


@lru_cache(maxsize=4)
def _headers(version: Version) -> Headers:
    return cuda_headers.choose(version)


@lru_cache(maxsize=128)
def _compiled(job: _Job, version: Version, headers: Headers, nvrtc: ModuleType) -> Ptx:
    image, log = _attempts(nvrtc, job, headers, compile_pch.options(version, job.source))
    if image is None:
        lines = places(job.source, job.name, job.first_line)
        raise compile_error(job.name, job.arch, version, log, lines)
    return Ptx(
        text=_portable(image.ptx, job, headers),
        source_name=job.name,
        source=job.source,
        kernels=kernel_names(image.ptx),
        arch=job.arch,
        nvrtc_version=version,
        headers=cuda_headers.describe(headers),
        log=log,
        first_line=job.first_line,
        options=job.options,
    )


def _attempts(
    nvrtc: ModuleType, job: _Job, headers: Headers, extra: tuple[str, ...]
) -> tuple[compile_nvrtc.Image | None, str]:
    """One compile. Source that completes CUtensorMap itself is tried without the prelude first."""
    own_map = bool(_OWN_MAP.search(blank_comments(job.source)))
    source = job.source
    if job.first_line > 1:
        source = f'#line {job.first_line} "{job.name}"\n{source}'
    folders = [*filter(None, [job.folder]), *headers.include_dirs]
    options = [*job.options, *extra, *(f"--include-path={each}" for each in folders)]
    first_log = ""
    for prelude in (False, True) if own_map else (True,):
        image, log = compile_nvrtc.run(nvrtc, source, job.name, options, prelude=prelude)
        first_log = first_log or log
        if image:
            return image, log
    return None, first_log


def _portable(ptx: str, job: _Job, headers: Headers) -> str:
    """PTX whose `.file` paths do not depend on the machine: header names, and the source's name."""
    names = {job.name, *(name for name, _ in places(job.source, job.name, job.first_line))}
    roots = [f"{each}/" for each in (*headers.include_dirs, *filter(None, [job.folder]))]

    def shorten(match: re.Match[str]) -> str:
        path = match[2]
        for root in roots:
            if path.startswith(root):
                return f'{match[1]}"{path[len(root) :]}"'
        for name in names:
            if path.endswith(f"/{name}"):
                return f'{match[1]}"{name}"'
        return match[0]

    return _FILE.sub(shorten, ptx) + "\n"
