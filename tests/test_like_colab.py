"""The wheel and the notebook alone, beside a CuPy that was there before: as on Colab, but quickly.

`scripts/try_like_colab.py` does the same with real packages in a bare environment.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "notebooks" / "day76_tma_tile.ipynb"
# An older CuPy on a machine with a T4, as far as the lesson asks.
CUPY = """
__version__ = "13.3.0"


class cuda:
    class runtime:
        CUDARuntimeError = RuntimeError
        runtimeGetVersion = staticmethod(lambda: 12060)
        driverGetVersion = staticmethod(lambda: 12040)
        getDeviceCount = staticmethod(lambda: 1)
        getDeviceProperties = staticmethod(
            lambda index: {"name": b"Tesla T4", "major": 7, "minor": 5}
        )
"""
RUN = """
import json, sys
cells = json.load(open(sys.argv[1], encoding="utf-8"))["cells"]
code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
wanted = [code[0], next(c for c in code if "run_tile_kernel()" in c)]
names = {}
for source in wanted:
    exec(compile(source, "cell", "exec"), names)
print(names["helpers"].__file__)
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with the notebook; the wheel installed in a folder beside it."""
    folder = tmp_path_factory.mktemp("a machine in the cloud")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(build, check=True, timeout=100)
    wheel = next(folder.glob("*.whl"))
    target = folder / "site"
    install = [*pip, "install", "--no-deps", "--no-compile", "--target", target, wheel]
    subprocess.run(install, check=True, timeout=100)
    (target / "cupy.py").write_text(CUPY, encoding="utf-8")
    (folder / "alone").mkdir()
    (folder / "alone" / NOTEBOOK.name).write_bytes(NOTEBOOK.read_bytes())
    return folder


def test_the_wheel_beside_an_older_cupy_and_a_t4_names_the_gpu_and_runs_in_the_emulator(machine):
    ran = subprocess.run(
        [sys.executable, "-c", RUN, NOTEBOOK.name],
        cwd=machine / "alone",
        env={"PYTHONPATH": str(machine / "site"), "PATH": "", "HOME": str(machine)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    first, verdict, place = ran.stdout.splitlines()
    assert first.startswith("Runs on: the emulator, on the CPU. Why: the GPU must have compute")
    assert "got Tesla T4 (compute capability 7.5)" in first
    assert verdict.startswith("round trip: PASS. 65536 elements")
    assert place.startswith(str(machine / "site"))  # not this clone


def test_the_wheel_s_name_is_the_one_that_the_first_cell_asks_for(machine):
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    first = next("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    assert next(machine.glob("*.whl")).name in first
