"""What a class costs: `python benchmarks/classroom.py` runs the lesson in 30 kernels.

Each learner is a Jupyter kernel that runs the notebook's code cells from first to last, with the
emulator. "In turn" starts the kernels one after the other and keeps all of them, as a class does
that opens the lesson and leaves it open; "at once" starts and runs them together, the worst that
can happen. Linux only: memory comes from /proc. RSS counts the shared libraries in every kernel,
PSS shares them out; what the machine needs is the sum of PSS.

Does not measure JupyterLab itself, the browser, or a hub.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "notebooks" / "day76_tma_tile.ipynb"
MIB = 2**20


@dataclass(frozen=True)
class Learner:
    """One kernel after its lesson, still alive. Memory in bytes, times in seconds."""

    manager: KernelManager
    wall_s: float
    slowest_cell_s: float
    passed: bool
    error: str

    @property
    def pid(self) -> int:
        return self.manager.provisioner.process.pid

    def memory(self, name: str) -> int:
        """A line of smaps_rollup: Rss or Pss."""
        text = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return int(re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024

    def peak(self) -> int:
        """The highest RSS that the kernel ever had."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"^VmHWM:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024

    def processor_s(self) -> float:
        """Processor time of the kernel, over all of its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def code_cells() -> list[str]:
    """The source of the notebook's code cells."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def learn(cells: list[str], deadline: float) -> Learner:
    """Start a kernel and run the lesson in it."""
    start = time.monotonic()
    manager = KernelManager()
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # One thread a kernel for numpy, as a hub with limits would set it.
    env = {**os.environ, "PYTHONPATH": path, "LESSON_TARGET": "emulator", "OMP_NUM_THREADS": "1"}
    manager.start_kernel(env=env, extra_arguments=["--log-level=ERROR"])
    client = manager.blocking_client()
    client.start_channels()
    printed: list[str] = []
    slowest, error = 0.0, ""
    try:
        client.wait_for_ready(timeout=300)
        for source in cells:
            began = time.monotonic()
            error = run(client, source, printed, deadline - began)
            slowest = max(slowest, time.monotonic() - began)
            if error:
                break
    finally:
        client.stop_channels()
    passed = "round trip: PASS" in "".join(printed)
    return Learner(manager, time.monotonic() - start, slowest, passed, error)


def run(client: BlockingKernelClient, source: str, printed: list[str], left_s: float) -> str:
    """One cell. Its text goes to `printed`; returns the error's name, if any."""

    def keep(message: dict) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    reply = client.execute_interactive(source, timeout=max(left_s, 1), output_hook=keep)
    return reply["content"].get("ename", "")


def measure(learners: int, at_once: bool, limit_s: float) -> list[str]:
    """One class from the first kernel to the last lesson's end; the report's lines."""
    cells = code_cells()
    start = time.monotonic()
    with ThreadPoolExecutor(learners if at_once else 1) as pool:
        class_room = list(pool.map(lambda _: learn(cells, start + limit_s), range(learners)))
    wall_s = time.monotonic() - start
    try:
        return report(class_room, wall_s, "at once" if at_once else "in turn")
    finally:
        for learner in class_room:
            learner.manager.shutdown_kernel(now=True)


def report(class_room: list[Learner], wall_s: float, how: str) -> list[str]:
    """The figures, in words."""
    middle = statistics.median
    passed = sum(learner.passed and not learner.error for learner in class_room)
    walls = [learner.wall_s for learner in class_room]
    rss = [learner.memory("Rss") for learner in class_room]
    pss = [learner.memory("Pss") for learner in class_room]
    peak = max(learner.peak() for learner in class_room)
    processor = [learner.processor_s() for learner in class_room]
    slowest_s = max(learner.slowest_cell_s for learner in class_room)
    return [
        f"{len(class_room)} learners {how}: {passed} passed, {wall_s:.0f} s in all",
        f"  a lesson: median {middle(walls):.1f} s, slowest {max(walls):.1f} s (kernel start too)",
        f"  its slowest cell: {slowest_s:.1f} s",
        f"  processor time a lesson: median {middle(processor):.1f} s",
        f"  RSS of a kernel: median {middle(rss) / MIB:.0f} MiB, peak {peak / MIB:.0f} MiB",
        f"  PSS of a kernel: median {middle(pss) / MIB:.0f} MiB, all: {sum(pss) / MIB:.0f} MiB",
    ]


def machine() -> str:
    """The machine in one line."""
    info = Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*:\s*(.+)", info)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{date.today()}, {name[1] if name else platform.machine()}, {os.cpu_count()} processors,"
        f" {total:.0f} GiB, Python {platform.python_version()}; load before: {load:.1f}"
    )


def main() -> None:
    """Measure both classes and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--learners", type=int, default=30)
    parser.add_argument("--how", choices=["both", "in-turn", "at-once"], default="both")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for one class")
    options = parser.parse_args()
    print(machine(), flush=True)
    for at_once in (False, True):
        if options.how in ("both", "at-once" if at_once else "in-turn"):
            print("\n".join(measure(options.learners, at_once, options.limit)), flush=True)


if __name__ == "__main__":
    main()
