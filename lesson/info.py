"""What was found on this machine: `python -m lesson info`, ready to paste into a bug report.

Reads versions from the packages' metadata, asks `nvidia-smi` for the GPUs, NVRTC for its version,
and the lesson itself which target it would take and why. It changes nothing. The home folder is
shortened to ~, so that no user name gets into a report.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from lesson import __version__
from lesson.errors import LessonError

CUPY = ("cupy-cuda12x", "cupy-cuda13x", "cupy")
GPU_FIELDS = "name,compute_cap,memory.total,driver_version"
NONE = "not installed"


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Register `info`."""
    parser = commands.add_parser(
        "info", help="what was found here, for a bug report", description=__doc__
    )
    parser.add_argument("--json", action="store_true", help="the same as one JSON object")
    parser.add_argument(
        "--require", choices=["gpu"], help="exit with status 1 unless the lesson runs on a GPU"
    )
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Print the report; status 1 only when what was required is not there."""
    facts = report()
    if options.json:
        print(json.dumps(facts, indent=1))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name + ':':{width + 1}} {value}")
    return 1 if options.require == "gpu" and not facts["target"].startswith("gpu:") else 0


def report() -> dict[str, str]:
    """The facts in the order in which they are printed."""
    return {
        "tma-lesson": f"{__version__} in {tilde(Path(__file__).resolve().parent)}",
        "Python": f"{platform.python_version()} ({tilde(Path(sys.executable))})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": str(os.cpu_count()),
        "numpy": version("numpy"),
        "matplotlib": version("matplotlib"),
        "Jupyter": jupyter(),
        "CuPy": cupy(),
        "cuda-bindings": version("cuda-bindings"),
        "NVRTC": nvrtc(),
        "headers": headers(),
        "GPU": gpus(),
        "target": target(),
    }


def tilde(path: Path) -> str:
    """The path, with the home folder as ~."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def version(package: str) -> str:
    """The installed version of a package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return NONE


def jupyter() -> str:
    """What shows the notebook, and what runs it."""
    return ", ".join(f"{name} {version(name)}" for name in ("jupyterlab", "ipykernel"))


def cupy() -> str:
    """CuPy's distributions; two at once break each other, so all are named."""
    found = [f"{name} {version(name)}" for name in CUPY if version(name) != NONE]
    return " and ".join(found) or NONE


def nvrtc() -> str:
    """The version of the NVRTC that compiles here, or why none does."""
    from lesson import compile as compiler

    try:
        return "{}.{}".format(*compiler.nvrtc_version())
    except LessonError as error:
        return str(error)


def headers() -> str:
    """Where the CUDA headers come from that go with this NVRTC."""
    from lesson import compile as compiler
    from lesson import cuda_headers

    try:
        return cuda_headers.describe(cuda_headers.choose(compiler.nvrtc_version()))
    except LessonError as error:
        return str(error)


def target() -> str:
    """Where the lesson would run, and why there."""
    from lesson import targets

    try:
        chosen = targets.choose()
    except LessonError as error:
        return f"none: {error}"
    return f"{chosen.name}: {chosen.why}"


def gpus() -> str:
    """Name, compute capability, memory and driver of each GPU, as `nvidia-smi` says."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "none: no nvidia-smi here, so no NVIDIA driver"
    command = [tool, f"--query-gpu={GPU_FIELDS}", "--format=csv,noheader"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown: nvidia-smi did not answer ({type(error).__name__})"
    lines = ran.stdout.strip().splitlines()
    if ran.returncode != 0 or not lines:
        return f"unknown: nvidia-smi failed ({(lines or ['no output'])[0]})"
    return "; ".join(map(describe_gpu, lines))


def describe_gpu(line: str) -> str:
    """One line of nvidia-smi's table in words."""
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 4:
        return line
    name, capability, memory, driver = fields
    return f"{name} (compute capability {capability}, {memory}, driver {driver})"
