"""Writes lesson/kernels/README.md from the evidence beside it.

    python -m tests.kernels_readme

Everything in that file that a compiler or GPU said comes out of evidence/gpu.json and
evidence/nvrtc.json; a test holds the file to what this module makes of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lesson import snippets

FOLDER = snippets.KERNEL_PATH.parent
README = FOLDER / "README.md"
GPU_RECORD = FOLDER / "evidence" / "gpu.json"
NVRTC_RECORD = FOLDER / "evidence" / "nvrtc.json"
Record = dict[str, Any]

HEAD = """\
# The kernels

| file | what it is |
| --- | --- |
| `tma_tile.cu` | the standalone program; the lesson quotes its marked regions |
| `record_writes.cuh` | an `out` that remembers its writers, for the measured heatmaps |
| `edges.cu` | one load and one store at the edges of a small matrix |
| `columns.cu` | reads a tile by rows or columns, to count bank conflicts |
| `bench/` | the kernels of `python -m lesson bench`; [what it found](../../docs/benchmark.md) |
| `evidence/` | what compilers and a GPU said of exactly these sources |

## Build and run

CUDA 12.6 or later; a GPU of compute capability 9.0 or later to run it.

```
nvcc -std=c++17 -O3 -arch=sm_90 -lineinfo -o tma_tile tma_tile.cu    # H100, H200
nvcc -std=c++17 -O3 -arch=sm_100 -lineinfo -o tma_tile tma_tile.cu   # B200
nvcc -std=c++17 -O3 -arch=sm_120 -lineinfo -o tma_tile tma_tile.cu   # RTX 50 series
./tma_tile
```

It needs no `-lcuda`: the driver's encode function is looked up at run time.

## Expected output

```
GPU: NAME (compute capability X.Y)
round trip: PASS. 65536 elements, 16 tiles of 64 x 64 floats, one cp.async.bulk.tensor per tile.
```

The exit status is 0. It is not 0, with one line that says why, where there is no such GPU, the
driver has no `cuTensorMapEncodeTiled` or refuses the map, a CUDA call fails, or an element differs.
"""

TAIL = """\
## Recording again

After an edit of a source here, the tests ask for new recordings:

```
python -m tests.record_ptx                       # PTX for machines without NVRTC (macOS)
python -m tests.record_nvrtc_versions            # NVRTC 12.6 to 13.5; needs the network
python -m tests.gpu.record_evidence FOLDER       # on a Hopper GPU; then copy gpu.json to evidence/
python -m tests.kernels_readme                   # this page
```
"""


def render(gpu: Record, nvrtc: Record) -> str:
    """The whole page."""
    return "\n".join([HEAD, _gpu_section(gpu), _nvrtc_section(nvrtc), TAIL])


def _gpu_section(gpu: Record) -> str:
    machine, python = gpu["machine"], gpu["python"]
    built = [arch for arch, done in gpu["builds"].items() if _is_clean(done)]
    lines = [
        f"## What a GPU said ({gpu['recorded']})",
        "",
        _sentence(machine),
        "",
        f"sha256 of `tma_tile.cu`: `{gpu['source_sha256']}`",
        "",
        f"nvcc, warnings as errors: {', '.join(built)} built without a word. The program printed:",
        "",
        "```",
        gpu["program"]["stdout"].rstrip(),
        "```",
        "",
        *_sanitizer(gpu),
        "The TMA load in machine code (SASS), the only one in the kernel:",
        "",
        "```",
        *gpu["sass"]["tma_loads"],
        "```",
        "",
        "The tensor map's 128 bytes from the C++ region and from Python: "
        + ("equal." if gpu["tensor_map"]["equal"] else "they differ."),
        "",
        "Through CuPy:",
        "",
        f"- round trip exact: {_yes(python['round_trip_exact'])}",
        f"- every element written once: {_yes(python['every_element_written_once'])}",
        f"- each by the block and thread that it should be: {_yes(python['writers_as_expected'])}",
        "",
        "Broken on purpose, in a process of its own, and then the right kernel again:",
        "",
        "| edit | what came of it | seconds | the next launch is exact |",
        "| --- | --- | --- | --- |",
        *(_broken(gpu[name]) for name in ("hang", "illegal_instruction")),
        "",
    ]
    return "\n".join(lines)


def _sanitizer(gpu: Record) -> list[str]:
    rows = [
        f"| {tool} | {found['summary']} | {found['exit_status']} |"
        for tool, found in gpu["sanitizer"].items()
    ]
    head = ["| tool | says | exit status |", "| --- | --- | --- |"]
    return ["compute-sanitizer on it:", "", *head, *rows, ""]


def _sentence(machine: Record) -> str:
    return (
        f"{machine['gpu']}, compute capability {machine['compute_capability']}, driver "
        f"{machine['driver']}; nvcc {machine['nvcc']}; NVRTC {machine['nvrtc']}, CuPy "
        f"{machine['cupy']}."
    )


def _nvrtc_section(nvrtc: Record) -> str:
    rows = []
    for version, found in nvrtc["versions"].items():
        archs = list(dict.fromkeys(each["arch"] for each in found["compiles"]))
        clean = all(each["outcome"] == "ok" and not each["log"] for each in found["compiles"])
        wheels = ", ".join(f"{wheel}" for wheel in found["wheels"])
        rows.append(f"| {version} | {', '.join(archs)} | {_yes(clean)} | {wheels} |")
    lines = [
        f"## Which NVRTC compiles the device half ({nvrtc['recorded']})",
        "",
        "Each with the headers of its own version alone. NVRTC 12.6 knows no chip after Hopper.",
        "",
        "| CUDA | architectures | without a warning | wheels |",
        "| --- | --- | --- | --- |",
        *rows,
        "",
    ]
    return "\n".join(lines)


def _broken(found: Record) -> str:
    ((old, new),) = found["edit"].items()
    outcome = found["outcome"].split(": ")[0]
    next_one = _yes(found["next_launch_exact"])
    return f"| `{old}` becomes `{new}` | {outcome} | {found['seconds']} | {next_one} |"


def _is_clean(done: Record) -> bool:
    return done["exit_status"] == 0 and not done["stdout"] and not done["stderr"]


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def load(path: Path) -> Record:
    return json.loads(path.read_text(encoding="utf-8"))


def main() -> None:
    text = render(load(GPU_RECORD), load(NVRTC_RECORD))
    README.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
