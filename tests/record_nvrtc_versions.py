"""Records that the device half compiles with NVRTC and the headers of CUDA 12.6 to 13.5.

    python -m tests.record_nvrtc_versions

Installs each set of wheels (some 100 MB) into a temporary folder, compiles the shipped kernels for
three architectures in a fresh Python that sees nothing else, and writes the outcome to
lesson/kernels/evidence/nvrtc.json. The PTX for compute_90 is kept in tests/data/nvrtc_ptx, for
tests of the emulator. Needs the network; too large for CI, where a test checks that the record is
of the source that is shipped.
"""

from __future__ import annotations

import datetime
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from lesson import recorded, snippets
from tests.record_ptx import SHIPPED

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "lesson" / "kernels" / "evidence" / "nvrtc.json"
PTX_FOLDER = ROOT / "tests" / "data" / "nvrtc_ptx"
ARCHITECTURES = ("compute_90", "compute_100", "compute_120")
FIRST_TO_KNOW_ALL = (12, 8)  # before that NVRTC knows Hopper and nothing newer
KEPT = "compute_90"

WHEELS: dict[str, tuple[str, ...]] = {
    "12.6": (
        "nvidia-cuda-nvrtc-cu12==12.6.85",
        "nvidia-cuda-cccl-cu12==12.6.77",
        "nvidia-cuda-runtime-cu12==12.6.77",
        "cuda-bindings==12.9.10",
    ),
    "12.9": (
        "nvidia-cuda-nvrtc-cu12==12.9.86",
        "nvidia-cuda-cccl-cu12==12.9.27",
        "nvidia-cuda-runtime-cu12==12.9.79",
        "cuda-bindings==12.9.10",
    ),
    "13.0": (
        "nvidia-cuda-nvrtc==13.0.88",
        "nvidia-cuda-cccl==13.0.85",
        "nvidia-cuda-runtime==13.0.96",
        "nvidia-cuda-crt==13.0.88",
        "cuda-bindings==13.0.3",
    ),
    "13.5": (
        "nvidia-cuda-nvrtc==13.5.37",
        "nvidia-cuda-cccl==13.3.5.0.6",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-crt==13.5.37",
        "cuda-bindings==13.5.0",
    ),
}
ALWAYS = ("cuda-pathfinder==1.9.1",)

# Runs in the fresh Python: compiles, and prints one JSON object.
CHILD = """
import json, pathlib, sys
from lesson import compile as nvrtc
from lesson.errors import CompileError
from tests.record_ptx import SHIPPED
out, found = pathlib.Path(sys.argv[1]), []
for arch in sys.argv[2:]:
    for name, (_, kernel) in SHIPPED.items():
        try:
            ptx = nvrtc.to_ptx(kernel.text, name=kernel.name, arch=arch)
        except CompileError as error:
            found.append({"kernel": name, "arch": arch, "outcome": str(error)})
        else:
            assert not ptx.recorded
            found.append({"kernel": name, "arch": arch, "outcome": "ok", "log": ptx.log,
                          "nvrtc": "%d.%d" % ptx.nvrtc_version, "headers": ptx.headers})
            (out / f"{arch}-{name}.ptx").write_text(ptx.text)
print(json.dumps(found))
"""


def compile_with(version: str, folder: Path) -> list[dict]:
    """The outcome of each compile with the wheels of one CUDA version."""
    site, out = folder / "site", folder / "out"
    out.mkdir()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*pip, "--target", str(site), *WHEELS[version], *ALWAYS], check=True)
    for package in (Path(np.__file__).parent, Path(np.__file__).parent.parent / "numpy.libs"):
        if package.is_dir():
            (site / package.name).symlink_to(package)
    known = tuple(map(int, version.split("."))) >= FIRST_TO_KNOW_ALL
    command = [sys.executable, "-S", "-c", CHILD, str(out)]
    command += ARCHITECTURES if known else [KEPT]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(ROOT)))}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=600
    )
    for name in SHIPPED:
        ptx = out / f"{KEPT}-{name}.ptx"
        if ptx.is_file():
            packed = gzip.compress(ptx.read_bytes(), mtime=0)
            (PTX_FOLDER / f"nvrtc-{version}-{name}.ptx.gz").write_bytes(packed)
    return json.loads(done.stdout)


def main() -> None:
    PTX_FOLDER.mkdir(parents=True, exist_ok=True)
    record = {
        "recorded": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "source_sha256": snippets.lesson_source().sha256,
        "kernels": {name: recorded.sha256(kernel.text) for name, (_, kernel) in SHIPPED.items()},
        "versions": {},
    }
    for version, wheels in WHEELS.items():
        with tempfile.TemporaryDirectory() as folder:
            compiles = compile_with(version, Path(folder))
        record["versions"][version] = {"wheels": list(wheels), "compiles": compiles}
        print(version, sorted({each["outcome"][:200] for each in compiles}))
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
