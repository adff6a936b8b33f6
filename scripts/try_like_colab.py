"""Try the lesson as a reader on Colab would: `python scripts/try_like_colab.py`.

For each case: a bare virtual environment with what such a machine brings (a kernel, numpy,
matplotlib, a CuPy), no clone, and the notebook with the wheel in an otherwise empty folder. The
notebook runs before the package is there, which must end at the first cell with the way to get it;
then that way is taken, and the notebook runs from start to end. Packages come through pip from
wherever it is set up to look; nothing outside a temporary folder changes. Takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "notebooks" / "day76_tma_tile.ipynb"
KERNEL = "like-colab"
BASE = ("ipykernel==6.17.1", "ipython<8", "setuptools<81", "numpy==2.0.2", "matplotlib==3.10.0")


@dataclass(frozen=True)
class Case:
    """What a machine brings along, and the extra with which the wheel is installed."""

    name: str
    brings: tuple[str, ...]
    extra: str = ""


CASES = (
    Case("CuPy 13", ("cupy-cuda12x==13.6.0",)),
    Case("CuPy 14", ("cupy-cuda12x==14.2.0",)),
    Case("CuPy 13 and cuda-python 12", ("cupy-cuda12x==13.6.0", "cuda-python==12.9.4")),
    Case("CuPy 13, wheel[cu12]", ("cupy-cuda12x==13.6.0", "cuda-python==12.9.4"), "cu12"),
)


@dataclass(frozen=True)
class Outcome:
    """What the reader saw, and for how long."""

    case: str
    python: str
    without: str
    install_s: float
    run_s: float
    packages: str
    first_line: str
    round_trip: str


def quietly(*command: object) -> str:
    """Run a command to its end; its output is shown only if it fails."""
    ran = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def bare_environment(folder: Path, python: str, brings: tuple[str, ...]) -> Path:
    """A fresh virtual environment with a kernel in it; returns its Python."""
    quietly(python, "-m", "venv", folder)
    inner = folder / "bin" / "python"
    quietly(inner, "-m", "pip", "install", "-q", *BASE, *brings)
    spec = folder / "share" / "jupyter" / "kernels" / KERNEL / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [str(inner), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": KERNEL, "language": "python"}))
    return inner


def run_alone(environment: Path, folder: Path) -> tuple[nbformat.NotebookNode, str]:
    """Run the folder's notebook there. Returns it with outputs, and the first error, if any."""
    notebook = nbformat.read(folder / NOTEBOOK.name, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name=KERNEL,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--log-level=ERROR"],
    )
    hidden = ("PYTHONPATH", "LESSON_TARGET", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # an old kernel warns of it
    os.environ["JUPYTER_PATH"] = str(environment / "share" / "jupyter")
    try:
        client.execute(env=env)
    except CellExecutionError as error:
        return notebook, f"{error.ename}: {error.evalue}"
    return notebook, ""


def printed(notebook: nbformat.NotebookNode, pattern: str) -> str:
    """The first printed line that matches."""
    streams = (o.get("text", "") for c in notebook.cells for o in c.get("outputs", []))
    found = re.search(pattern, "\n".join(streams), re.MULTILINE)
    return found[0] if found else f"no line {pattern}"


def versions(inner: Path) -> str:
    """The packages that decide: CuPy, bindings, NVRTC, numpy."""
    lines = quietly(inner, "-m", "pip", "list", "--format=freeze").split()
    wanted = re.compile(r"(cupy|numpy|cuda-bindings|cuda-toolkit|nvidia-cuda-nvrtc)")
    return ", ".join(line.replace("==", " ") for line in lines if wanted.match(line))


def try_case(case: Case, python: str, wheel: Path, place: Path) -> Outcome:
    """One machine, from the bare environment to the round trip."""
    environment, alone = place / "env", place / "alone"
    inner = bare_environment(environment, python, case.brings)
    alone.mkdir()
    for file in (NOTEBOOK, wheel):
        shutil.copy(file, alone)
    _, without = run_alone(environment, alone)
    extra = f"[{case.extra}]" if case.extra else ""
    start = time.monotonic()
    quietly(inner, "-m", "pip", "install", "-q", f"{alone / wheel.name}{extra}")
    installed = time.monotonic()
    notebook, problem = run_alone(environment, alone)
    return Outcome(
        case=case.name,
        python=quietly(inner, "-c", "import platform; print(platform.python_version())").strip(),
        without=without,
        install_s=round(installed - start, 1),
        run_s=round(time.monotonic() - installed, 1),
        packages=versions(inner),
        first_line=printed(notebook, r"^Runs on: .*$"),
        round_trip=problem or printed(notebook, r"^round trip: .*$"),
    )


def main() -> int:
    """Try every case; status 1 if one did not end with the round trip."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", default="python3.12", help="makes the environments")
    parser.add_argument("--only", help="cases whose name holds this text")
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        quietly(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT)
        wheel = next(Path(folder).glob("*.whl"))
        for number, case in enumerate(CASES):
            if options.only and options.only not in case.name:
                continue
            place = Path(folder) / str(number)
            outcome = try_case(case, options.python, wheel, place)
            shutil.rmtree(place)
            for name, value in vars(outcome).items():
                print(f"{name + ':':12} {value}", flush=True)
            print(flush=True)
            good = good and outcome.round_trip.startswith("round trip: PASS")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
