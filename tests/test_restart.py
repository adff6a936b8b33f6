"""Interrupt a cell, then run all; restart, then run all: both end with the round trip."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parent.parent
CELLS = json.loads((ROOT / "notebooks" / "day76_tma_tile.ipynb").read_text(encoding="utf-8"))
ENDLESS = """\
loop = "for (volatile float* p = &tile[0][0]; threadIdx.x < 999; ) *p += 1.0f;"
endless = helpers.edit("kernel", "bar.wait(cuda::std::move(token));", loop)
print("edited")
helpers.what_happens(endless)"""


def code_cells() -> list[str]:
    return ["".join(c["source"]) for c in CELLS["cells"] if c["cell_type"] == "code"]


class Reader:
    """A kernel, and what a reader does with it."""

    def __init__(self) -> None:
        self.manager = KernelManager()
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.manager.start_kernel(env={**os.environ, "PYTHONPATH": path})
        self.client = self.ready()

    def ready(self) -> BlockingKernelClient:
        client = self.manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        return client

    def run(self, source: str) -> tuple[str, str]:
        """What a cell printed, and the name of its error."""
        printed: list[str] = []

        def keep(message: dict) -> None:
            printed.append(message["content"].get("text", ""))

        reply = self.client.execute_interactive(source, timeout=60, output_hook=keep)
        return "".join(printed), reply["content"].get("ename", "")

    def run_all(self) -> list[tuple[str, str]]:
        return [self.run(source) for source in code_cells()]

    def interrupt(self, source: str, started: str) -> str:
        """Start a cell, interrupt it after it printed `started`; returns the error's name.

        As a reader does, it presses again after a while: NVRTC takes the signal for itself while it
        compiles, so that one pressed then is lost.
        """
        self.client.execute(source)
        while self.client.get_iopub_msg(timeout=60)["content"].get("text") != started:
            pass
        for _ in range(10):
            self.manager.interrupt_kernel()
            with suppress(Empty):
                return self.client.get_shell_msg(timeout=4)["content"].get("ename", "")
        return "none"

    def restart(self) -> None:
        self.client.stop_channels()
        self.manager.restart_kernel(now=True)
        self.client = self.ready()


@pytest.fixture
def reader() -> Iterator[Reader]:
    one = Reader()
    yield one
    one.client.stop_channels()
    one.manager.shutdown_kernel(now=True)


def is_the_lesson(ran: list[tuple[str, str]]) -> bool:
    return any("round trip: PASS" in text for text, _ in ran) and not any(e for _, e in ran)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_run_all_works_after_an_interrupt_and_again_after_a_restart(reader):
    assert reader.run(code_cells()[0])[1] == ""
    assert reader.interrupt(ENDLESS, "edited\n") == "KeyboardInterrupt"
    core = [cell for cell in code_cells() if re.search(r"where_am_i|= helpers.run_\w+\(\)", cell)]
    assert is_the_lesson([reader.run(cell) for cell in core])
    reader.restart()
    assert reader.run("helpers")[1] == "NameError"  # a fresh kernel, indeed
    assert is_the_lesson(reader.run_all())


@pytest.mark.slow
def test_an_interrupt_during_the_first_compile_leaves_a_kernel_that_restarts(reader):
    source = "from lesson import helpers\nprint('edited')\nhelpers.count_instructions('ld.global')"
    reader.client.execute(source)
    time.sleep(0.7)
    reader.manager.interrupt_kernel()
    reader.client.get_shell_msg(timeout=60)
    reader.restart()
    first = [reader.run(source) for source in code_cells()[:5]]
    assert [error for _, error in first if error] == []
