"""The kernels with one mistake each: those that an H200 judged, and our own, with PTX recorded for
all.

`python -m tests.mistake_cases` compiles what is new and writes the recording. A source without one
is compiled where there is NVRTC.
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
import sys
from pathlib import Path

from lesson import compile as compiler
from lesson.check import check_case
from lesson.check_case import from_head
from lesson.errors import CompileError
from lesson.findings import Report

HERE = Path(__file__).parent
HANDED = HERE / "data" / "mistakes"
OWN = HERE / "mistakes"
RECORDED = HERE / "data" / "mistakes_ptx.json.xz"


def handed(*, broken: bool) -> list[str]:
    """Names of the handed kernels, broken or correct."""
    names = sorted(path.stem for path in HANDED.glob("*.cu"))
    return [name for name in names if name.startswith("ok-") != broken]


def own(*, broken: bool) -> list[str]:
    """Names of our own kernels, broken or correct."""
    names = sorted(path.stem for path in OWN.glob("*.cu"))
    return [name for name in names if name.startswith("ok-") != broken]


def path_of(name: str) -> Path:
    """The file of a kernel."""
    return next(p for p in (HANDED / f"{name}.cu", OWN / f"{name}.cu") if p.exists())


@functools.cache
def recorded() -> dict[str, str]:
    """sha256 of a source -> its PTX."""
    if not RECORDED.exists():
        return {}
    return json.loads(lzma.decompress(RECORDED.read_bytes()))


def key(source: str) -> str:
    """What a recording is found by."""
    return hashlib.sha256(source.encode()).hexdigest()


def ptx_of(name: str) -> compiler.Ptx:
    """The PTX of a kernel, recorded or compiled now."""
    source = path_of(name).read_text(encoding="utf-8")
    text = recorded().get(key(source))
    if text is None:
        return compiler.to_ptx(source, name=f"{name}.cu")
    return compiler.Ptx(text, f"{name}.cu", source, ("k",), "compute_90", (12, 9), "recorded", "")


@functools.cache
def report_on(name: str) -> Report:
    """What the check says of a kernel."""
    path = path_of(name)
    case = from_head(path.read_text(encoding="utf-8"), path.name, str(path))
    return check_case(case, ptx=None if is_refused(name) else ptx_of(name))


def is_refused(name: str) -> bool:
    """Whether nothing is compiled, because the map is refused first."""
    path = path_of(name)
    case = from_head(path.read_text(encoding="utf-8"), path.name, str(path))
    from lesson.tensor_map import check

    return any(check(tmap) for tmap in case.maps.values())


def main() -> int:
    """Compile what has no recording, and drop what is gone."""
    kept = {}
    for path in sorted([*HANDED.glob("*.cu"), *OWN.glob("*.cu")]):
        source = path.read_text(encoding="utf-8")
        try:
            kept[key(source)] = recorded().get(key(source)) or (
                compiler.to_ptx(source, name=path.name).text
            )
        except CompileError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            return 1
    packed = lzma.compress(json.dumps(kept, indent=0, sort_keys=True).encode(), preset=9)
    RECORDED.write_bytes(packed)
    print(f"{len(kept)} kernels, {len(packed)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
