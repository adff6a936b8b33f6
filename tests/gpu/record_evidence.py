"""Records what a Hopper GPU says of the very source that is shipped.

    python -m tests.gpu.record_evidence FOLDER

Writes FOLDER/gpu.json: the GPU, driver and compiler; the build of tma_tile.cu with warnings as
errors and what it printed; compute-sanitizer's four tools on it; the SASS line of its TMA load; the
128 bytes of the map from C++ and from Python; the kernel and its recording variant through
`lesson.gpu`; and what a hang and an illegal instruction in a child process cost. Copy the file to
lesson/kernels/evidence/, then run `python -m tests.kernels_readme`. Needs nvcc, compute-sanitizer,
cuobjdump, CuPy and cuda.bindings. A step that cannot run is recorded with its reason.
"""

from __future__ import annotations

import datetime
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lesson import compile as nvrtc
from lesson import gpu, harness, recorded, snippets
from tests.gpu import live

ARCHITECTURES = ("sm_90", "sm_100", "sm_120")
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
Record = dict[str, Any]


def run(*command: str, timeout_s: float = 120) -> Record:
    """One command's exit status and words; it runs beside the source, so that no path shows."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=timeout_s,
        cwd=snippets.KERNEL_PATH.parent,
    )
    return {"exit_status": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def step(record: Record, name: str, action: Callable[[], Any]) -> None:
    """Notes what a step found, or why it could not run; prints one line either way."""
    start = time.monotonic()
    try:
        record[name] = action()
        state = "done"
    except Exception as error:  # noqa: BLE001 - a failed step must not lose the other steps
        record[name] = {"failed": f"{type(error).__name__}: {error}"}
        state = "FAILED\n" + traceback.format_exc()
    print(f"{name}: {state} ({time.monotonic() - start:.1f} s)", flush=True)


def machine() -> Record:
    import cupy

    query = "name,driver_version,compute_cap"
    line = run("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader")["stdout"]
    name, driver, capability = (word.strip() for word in line.split("\n")[0].split(","))
    release = re.search(r"release .*", run("nvcc", "--version")["stdout"])
    return {
        "gpu": name,
        "driver": driver,
        "compute_capability": capability,
        "nvcc": release[0] if release else "",
        "python": platform.python_version(),
        "cupy": cupy.__version__,
        "nvrtc": "{}.{}".format(*nvrtc.nvrtc_version()),
        "status": gpu.status().says,
    }


def build(program: Path, arch: str) -> Record:
    flags = ["-std=c++17", "-O3", f"-arch={arch}", "-lineinfo"]
    strict = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]
    done = run("nvcc", *flags, *strict, "-o", str(program), snippets.KERNEL_PATH.name)
    return {"command": f"nvcc {' '.join([*flags, *strict])} -o tma_tile tma_tile.cu", **done}


def sanitize(program: Path, tool: str) -> Record:
    """What a tool reported: its summary line, and all of it when that is not clean."""
    done = run("compute-sanitizer", "--tool", tool, "--error-exitcode", "9", str(program))
    words = done["stdout"] + done["stderr"]
    summary = re.findall(r"=+ (.*(?:SUMMARY|summary).*)", words)
    return {
        "exit_status": done["exit_status"],
        "summary": summary[-1] if summary else "",
        "program_passed": "round trip: PASS." in words,
        "output": "" if done["exit_status"] == 0 else words,
    }


def sass(program: Path) -> Record:
    """The instructions that ask for a tile, as the disassembler prints them."""
    text = run("cuobjdump", "-sass", str(program))["stdout"]
    lines = [" ".join(line.split()) for line in text.split("\n") if "UTMALDG" in line]
    instructions = [re.sub(r"^/\*\w+\*/ | ?;.*$", "", line) for line in lines]
    return {"tma_loads": instructions, "lines": lines}


def maps() -> Record:
    found = live.map_bytes()
    return {
        "address": hex(found.address),
        "cpp_result": found.cpp_result,
        "cpp": found.cpp.hex(),
        "python": found.python.hex(),
        "equal": found.cpp == found.python,
    }


def through_python() -> Record:
    out = live.round_trip()
    recording, writes = live.record_writes()
    blocks, threads = live.expected_writers()
    return {
        "round_trip_exact": live.is_exact(out),
        "isolated_round_trip_exact": live.is_exact(live.round_trip(isolated=True)),
        "recording_exact": live.is_exact(recording),
        "every_element_written_once": bool((writes.write_counts == 1).all()),
        "writers_as_expected": bool(
            (writes.writer_blocks == blocks).all() and (writes.writer_threads == threads).all()
        ),
    }


def main(folder: Path) -> None:
    record: Record = {
        "recorded": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source_sha256": snippets.lesson_source().sha256,
        "recording_sha256": recorded.sha256(harness.recording_source().text),
    }
    with tempfile.TemporaryDirectory() as build_folder:
        program = Path(build_folder) / "tma_tile"
        step(record, "machine", machine)
        builds = {arch: program.with_name(arch) for arch in ARCHITECTURES}
        step(record, "builds", lambda: {a: build(path, a) for a, path in builds.items()})
        step(record, "program", lambda: run(str(builds["sm_90"])))
        record["sanitizer"] = {}
        for tool in TOOLS:
            step(record["sanitizer"], tool, lambda tool=tool: sanitize(builds["sm_90"], tool))
        step(record, "sass", lambda: sass(builds["sm_90"]))
    step(record, "tensor_map", maps)
    step(record, "python", through_python)
    step(record, "hang", lambda: live.isolation(live.HANGS))
    step(record, "illegal_instruction", lambda: live.isolation(live.ILLEGAL))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
