"""Make `.venv` ready for what a make target needs, quickly when it already is.

    python3 scripts/setup_env.py --extras notebook,test

Creates the virtual environment, installs this project into it (editable) with the extras asked for
and the pins of a constraints file, and remembers that in `.venv/lesson-setup.json`. While nothing
that matters changes (pyproject.toml, the pins, the Python, the place of the clone), a second call
does no work. An NVIDIA driver adds the extra cu12 or cu13, after the CUDA version that `nvidia-smi`
prints.

Standard library only: it runs before anything is installed. It never touches the system's packages.
`check_python.py`, which runs before it, has refused a Python that is too old.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STAMP = "lesson-setup.json"
CUDA_EXTRAS = {"cu12", "cu13"}
THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class SetupError(Exception):
    """What stands in the way, and the command that removes it."""


@dataclass(frozen=True)
class Plan:
    """What the environment should hold."""

    root: Path
    extras: tuple[str, ...]
    constraints: Path | None
    venv_args: tuple[str, ...] = ()

    @property
    def venv(self) -> Path:
        """The environment's folder, in the clone."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        windows = sys.platform == "win32"
        return self.venv / ("Scripts/python.exe" if windows else "bin/python")

    def fingerprint(self) -> str:
        """Changes exactly when an installation would come out differently."""
        digest = hashlib.sha256()
        digest.update((self.root / "pyproject.toml").read_bytes())
        if self.constraints is not None:
            digest.update(self.constraints.read_bytes())
        place = [str(self.root), sys.version, *self.venv_args]
        digest.update("\0".join(place).encode())
        return digest.hexdigest()


def check_venv_module() -> None:
    """Debian and Ubuntu ship Python without `ensurepip`; venv's own message hides what to do."""
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        package = f"python3.{sys.version_info.minor}-venv"
        raise SetupError(
            f"{sys.executable} cannot make a virtual environment: it has no module {missing[0]}. "
            f"On Debian and Ubuntu: sudo apt install python3-venv (or {package}). "
            "Or use a Python that has everything installed: make NO_INSTALL=1 ..."
        )


def driver_cuda_version() -> tuple[int, int] | None:
    """The newest CUDA that the NVIDIA driver serves, after `nvidia-smi`; None without a driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    try:
        report = subprocess.run([tool], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_cuda_version(report.stdout) if report.returncode == 0 else None


def parse_cuda_version(report: str) -> tuple[int, int] | None:
    """`... CUDA Version: 13.0 ...` -> (13, 0)."""
    found = re.search(r"CUDA (?:UMD )?Version:\s*(\d+)\.(\d+)", report)
    return (int(found[1]), int(found[2])) if found else None


def cuda_extra(choice: str, driver: tuple[int, int] | None) -> str | None:
    """The extra that brings CuPy: `choice` if it names one, else what suits the driver, if any."""
    if choice in CUDA_EXTRAS:
        return choice
    if choice == "none" or driver is None or driver < (12, 0):
        return None
    return "cu13" if driver >= (13, 0) else "cu12"


def record(plan: Plan) -> dict[str, Any]:
    """What an earlier set-up wrote down about the environment; empty when there is none."""
    stamp = plan.venv / STAMP
    return json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}


def is_ready(plan: Plan) -> bool:
    """Whether the environment holds all that the plan asks for."""
    written = record(plan)
    same = written.get("fingerprint") == plan.fingerprint()
    return same and plan.python.exists() and set(plan.extras) <= set(written["extras"])


def must_start_over(plan: Plan) -> bool:
    """No environment, its Python gone or of another version, or CuPy of another CUDA in it."""
    written = record(plan)
    present = CUDA_EXTRAS & set(written.get("extras", ()))
    other_cuda = present and CUDA_EXTRAS & set(plan.extras) - present
    other_python = written.get("python", THIS_PYTHON) != THIS_PYTHON
    return bool(other_cuda or other_python or not plan.python.exists())


def run(command: list[str], what: str, folder: Path) -> None:
    """Run a command; a failure becomes one sentence below the command's own output."""
    if subprocess.run(command, check=False, cwd=folder).returncode != 0:
        raise SetupError(f"{what} failed; its own words stand above. It was: {shlex.join(command)}")


def install(plan: Plan) -> None:
    """Create the environment if need be, install, and write the stamp last."""
    stamp = plan.venv / STAMP
    if must_start_over(plan):
        check_venv_module()
        command = [sys.executable, "-m", "venv", "--clear", *plan.venv_args, str(plan.venv)]
        run(command, "creating .venv", plan.root)
    stamp.unlink(missing_ok=True)
    command = [str(plan.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if plan.constraints is not None:
        command += ["--constraint", str(plan.constraints)]
    extras = f"[{','.join(plan.extras)}]" if plan.extras else ""
    run([*command, "--editable", f".{extras}"], "pip install", plan.root)
    written = {"fingerprint": plan.fingerprint(), "python": THIS_PYTHON, "extras": plan.extras}
    stamp.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def with_present(plan: Plan) -> Plan:
    """The plan with the extras that are there already, unless it starts over."""
    present = () if must_start_over(plan) else record(plan).get("extras", ())
    return replace(plan, extras=tuple(sorted({*plan.extras, *present})))


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line; the Makefile passes its variables through it."""
    parser = argparse.ArgumentParser(description="Make .venv ready for the lesson.")
    parser.add_argument("--extras", default="", help="comma-separated, as in pyproject.toml")
    parser.add_argument("--cuda", default="auto", choices=["auto", "cu12", "cu13", "none"])
    parser.add_argument("--constraints", default="auto", help="a file of pins, or 'none'")
    parser.add_argument("--venv-args", default="", help="passed on to python -m venv")
    return parser.parse_args(arguments)


def make_plan(options: argparse.Namespace, root: Path = ROOT) -> Plan:
    """What the command line and this machine's GPU ask for."""
    driver = driver_cuda_version() if options.cuda == "auto" else None
    cuda = cuda_extra(options.cuda, driver)
    extras = {name for name in (*options.extras.split(","), cuda) if name}
    name = options.constraints
    if name == "auto":
        name = "constraints-cu13.txt" if cuda == "cu13" else "constraints.txt"
    constraints = None if name == "none" else root / name
    if constraints is not None and not constraints.is_file():
        raise SetupError(f"--constraints must be a file or 'none', got {name}.")
    return Plan(root, tuple(sorted(extras)), constraints, tuple(shlex.split(options.venv_args)))


def main(arguments: list[str] | None = None) -> int:
    """Set up, or say in one sentence why not."""
    try:
        plan = make_plan(parse(sys.argv[1:] if arguments is None else arguments))
        if is_ready(plan):
            return 0
        plan = with_present(plan)
        print(
            f"setting up .venv ({', '.join(plan.extras) or 'base'}); minutes at the first time ..."
        )
        start = time.monotonic()
        install(plan)
        print(f".venv is ready after {time.monotonic() - start:.0f} s", flush=True)
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
