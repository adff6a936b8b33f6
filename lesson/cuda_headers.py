"""The headers that NVRTC needs: where they lie, of which CUDA version, and those it lacks.

Three kinds of place hold libcu++ and the CUDA runtime headers: the CUDA wheels (`nvidia/cuda_cccl`
and `nvidia/cuda_runtime` for 12, `nvidia/cu13` for 13), a system or conda toolkit, and CuPy, which
ships a libcu++ of its own. NVRTC, the runtime headers and libcu++ must be of one CUDA version:
mixed, they fail far from the cause. `choose` therefore compares versions, takes both kinds of
header out of one place, and never takes another major version than NVRTC's.

Host headers (`cuda.h`, `stdint.h` ...) cannot be compiled by NVRTC. `VIRTUAL_HEADERS` stands in for
those that hold nothing a kernel needs beyond fixed-width integers, `printf` and `assert`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lesson.errors import CompileError

Version = tuple[int, int]

PRELUDE_NAME = "lesson_prelude.h"
SYSTEM_ROOTS = (Path(sys.prefix), Path("/usr/local/cuda"))  # a conda environment; a toolkit

# libcu++ declares `struct CUtensorMap_st` and leaves it incomplete; the driver's cuda.h, which
# would complete it, wants host headers. Its alignment is 64 in CUDA 12 and 128 in CUDA 13. The
# guard macro is cuda.h's own, so that source which asks for it sees that the type is there.
PRELUDE = """\
#if !defined(__cuda_cuda_h__)
#define __cuda_cuda_h__
typedef struct alignas(__CUDACC_VER_MAJOR__ >= 13 ? 128 : 64) CUtensorMap_st {
    unsigned long long opaque[16];
} CUtensorMap;
#endif
"""

_FIXED_WIDTH = "".join(
    f"using cuda::std::{kind}_t;\n"
    for kind in (
        *(f"{sign}int{width}" for width in (8, 16, 32, 64) for sign in ("", "u")),
        "intptr",
        "uintptr",
    )
)
_STDINT = f"#pragma once\n#include <cuda/std/cstdint>\n{_FIXED_WIDTH}"
_CSTDINT = f"#pragma once\n#include <stdint.h>\nnamespace std {{\n{_FIXED_WIDTH}}}\n"

VIRTUAL_HEADERS: dict[str, str] = {
    PRELUDE_NAME: PRELUDE,
    "stdint.h": _STDINT,
    "cstdint": _CSTDINT,
    # NVRTC declares printf, assert, size_t and the mathematical functions by itself.
    **dict.fromkeys(
        ("cuda.h", "cudaTypedefs.h", "stdio.h", "cstdio", "stdlib.h"), "#pragma once\n"
    ),
    **dict.fromkeys(("cstdlib", "assert.h", "cassert", "stddef.h", "math.h"), "#pragma once\n"),
}


@dataclass(frozen=True, slots=True)
class Headers:
    """One place's include folders. `cuda_version` is None where it fits every version (CuPy's)."""

    origin: str
    include_dirs: tuple[Path, ...]
    cuda_version: Version | None


def choose(nvrtc_version: Version, candidates: list[Headers] | None = None) -> Headers:
    """The headers that fit an NVRTC: same version first, then CuPy's, then same major version."""
    candidates = find_all() if candidates is None else candidates

    def distance(headers: Headers) -> float:
        if headers.cuda_version is None:
            return 0.5
        return abs(headers.cuda_version[1] - nvrtc_version[1])

    fitting = [
        headers
        for headers in candidates
        if headers.cuda_version is None or headers.cuda_version[0] == nvrtc_version[0]
    ]
    if not fitting:
        found = ", ".join(describe(headers) for headers in candidates) or "none"
        major = nvrtc_version[0]
        raise CompileError(
            f"CUDA headers must be of NVRTC's major version ({major}), got: {found}. "
            f'Install them: pip install "cuda-toolkit[cccl,cudart]=={major}.{nvrtc_version[1]}.*".'
        )
    return min(fitting, key=distance)


def describe(headers: Headers) -> str:
    """One phrase for messages and bug reports."""
    version = ".".join(map(str, headers.cuda_version)) if headers.cuda_version else "any version"
    return f"{headers.origin} ({version})"


def find_all() -> list[Headers]:
    """Every place on this machine that holds libcu++, wheels first."""
    return [*_from_wheels(), *_from_toolkits(), *_from_cupy()]


def _from_wheels() -> Iterator[Headers]:
    spec = importlib.util.find_spec("nvidia")
    for root in map(Path, (spec and spec.submodule_search_locations) or ()):
        for folder in sorted(root.glob("cu[0-9]*"), reverse=True):
            yield from _tree(f"the CUDA wheels in nvidia/{folder.name}", folder / "include")
        dirs = (root / "cuda_cccl" / "include", root / "cuda_runtime" / "include")
        version = _runtime_version(dirs[1])
        if _has_libcudacxx(dirs[0]) and version:
            yield Headers("the CUDA 12 wheels", dirs, version)


def _from_toolkits() -> Iterator[Headers]:
    roots = [os.environ.get(name) for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX")]
    seen: set[Path] = set()
    for root in (*(Path(each) for each in roots if each), *SYSTEM_ROOTS):
        for include in (root / "include", *sorted(root.glob("targets/*/include"))):
            real = include.resolve()
            if real not in seen:
                seen.add(real)
                yield from _tree(f"the CUDA toolkit in {root}", include)


def _from_cupy() -> Iterator[Headers]:
    spec = importlib.util.find_spec("cupy")  # found, not imported: importing it loads a driver
    for root in map(Path, (spec and spec.submodule_search_locations) or ()):
        include = root / "_core" / "include" / "cupy" / "_cccl" / "libcudacxx"
        if _has_libcudacxx(include):
            yield Headers("CuPy's own copy", (include,), None)


def _tree(origin: str, include: Path) -> Iterator[Headers]:
    """A toolkit's include folder; since CUDA 13 libcu++ lies in its subfolder `cccl`."""
    version = _runtime_version(include)
    dirs = [each for each in (include / "cccl", include) if _has_libcudacxx(each)]
    if version and dirs:
        yield Headers(origin, tuple(dict.fromkeys((dirs[0], include))), version)


def _has_libcudacxx(include: Path) -> bool:
    return (include / "cuda" / "ptx").is_file()


def _runtime_version(include: Path) -> Version | None:
    """From CUDART_VERSION, which is 1000 * major + 10 * minor."""
    try:
        text = (include / "cuda_runtime_api.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"^\s*#\s*define\s+CUDART_VERSION\s+(\d+)", text, re.MULTILINE)
    return (int(found[1]) // 1000, int(found[1]) % 1000 // 10) if found else None
