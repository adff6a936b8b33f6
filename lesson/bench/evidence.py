"""What was measured, as one file: the GPU, its driver, versions, the date, sources, raw samples.

`load` reads the recorded file of an H200; `stale` names the sources that changed since.
"""

from __future__ import annotations

import datetime
import json
import platform
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from lesson.bench import variants
from lesson.errors import LessonError

Record = dict[str, Any]
FORMAT = 1
RECORDED = variants.FOLDER.parent / "evidence" / "bench_h200.json"
_PACKAGES = ("numpy", "cupy-cuda12x", "cupy-cuda13x", "torch", "triton", "cuda-bindings")


def load(path: Path | None = None) -> Record:
    """The record in a file, or the recorded one; LessonError says what is wrong with the file."""
    path = path or RECORDED
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LessonError(
            f"evidence must be a file that can be read, got {path.name}: {error.strerror}. Measure "
            "on a Hopper GPU: python -m lesson bench."
        ) from None
    except ValueError as error:
        raise LessonError(
            f"evidence must be JSON, got {path.name}: {error}. Take it anew."
        ) from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        got = record.get("format") if isinstance(record, dict) else type(record).__name__
        raise LessonError(
            f"evidence must be of format {FORMAT}, got {got!r}. {path.name}. Measure anew."
        )
    return record


def stale(record: Record) -> list[str]:
    """Files of kernels/bench/ that are not what was measured."""
    now, then = variants.source_hashes(), record["sources"]
    return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))


def save(record: Record, path: Path) -> None:
    """Writes a record: a line for each key, and each list of samples on one line."""
    text = json.dumps(record, indent=1)
    text = re.sub(r"\[\s+(-?\d[\d\s,.\-]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)
    path.write_text(text + "\n", encoding="utf-8")


def heading(properties: dict[str, Any]) -> Record:
    """All but the numbers. `properties` are the device's, from the CUDA runtime."""
    name = properties["name"]
    return {
        "format": FORMAT,
        "recorded": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "gpu": {
            "name": name.decode() if isinstance(name, bytes) else str(name),
            "compute_capability": f"{properties['major']}.{properties['minor']}",
            "multiprocessors": int(properties["multiProcessorCount"]),
            "l2_bytes": int(properties["l2CacheSize"]),
            "memory_bytes": int(properties["totalGlobalMem"]),
        },
        "driver": _smi("driver_version"),
        "clocks_before": clocks(),
        "versions": {"python": platform.python_version(), **_versions()},
        "sources": variants.source_hashes(),
    }


def clocks() -> str:
    """Clocks, power and temperature as nvidia-smi tells them now."""
    return _smi("clocks.sm,clocks.mem,power.draw,temperature.gpu")


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    from lesson import compile as nvrtc

    found["nvrtc"] = "{}.{}".format(*nvrtc.nvrtc_version())
    return found


def _smi(fields: str) -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    command = [tool, f"--query-gpu={fields}", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""
