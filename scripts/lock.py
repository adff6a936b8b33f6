"""Write the constraints files anew: `python3.11 scripts/lock.py` (the oldest that we support).

For each file: a fresh virtual environment in a temporary folder, this project with every extra that
goes into the file, and then what `pip freeze` says. The files hold names and versions, nothing
else: no download addresses and no hashes, so they serve any mirror and any platform.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# Exact versions of everything that the extras {extras} bring, theirs included.
# Use: pip install -c {name} '.[{extras}]'. Written by scripts/lock.py; do not edit.
"""
FILES = {
    # name: (extras, limits beyond those of pyproject.toml)
    "constraints.txt": ("cu12,notebook,test", []),
    # NVRTC 13.0, because a driver refuses PTX from a newer NVRTC than itself: this serves every
    # driver of the 13 line.
    "constraints-cu13.txt": ("cu13,notebook,test", ["cuda-toolkit<13.1", "cuda-python==13.3.1"]),
}


def frozen(extras: str, limits: list[str]) -> list[str]:
    """What a fresh environment holds once the project is installed with `extras`."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [str(Path(folder) / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", f".[{extras}]", *limits], check=True, cwd=ROOT)
        listed = [*pip, "freeze", "--exclude", "tma-lesson"]
        return subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\n")


def main() -> int:
    """Write both files."""
    for name, (extras, limits) in FILES.items():
        pins = [line for line in frozen(extras, limits) if "==" in line]
        text = HEAD.format(name=name, extras=extras) + "\n".join(pins) + "\n"
        (ROOT / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(pins)} pins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
