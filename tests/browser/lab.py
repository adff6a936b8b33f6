"""A JupyterLab server of a test's own, and what a person does in it.

The server listens on a free port of this machine under a fresh token, keeps its settings, its run
files and its signatures in a folder of the test, and is ended by its process. Waits are bounded.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
START_S, STOP_S = 90, 20
OPEN_MS, RUN_MS, STEP_MS = 90_000, 240_000, 45_000
# No page of news, no dialog that asks for it.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
        "fetchNews": "false",
        "checkForUpdates": False,
    }
}


@dataclass(frozen=True)
class Server:
    """A running server. `url` ends with a slash; `work` is the folder that it shows."""

    url: str
    token: str
    work: Path

    def address(self, notebook: str) -> str:
        """Where a notebook of the folder opens."""
        workspace = notebook.partition(".")[0]  # its own, so that nothing else opens with it
        return f"{self.url}lab/workspaces/{workspace}/tree/{notebook}?token={self.token}"


@contextmanager
def jupyterlab(folder: Path) -> Iterator[Server]:
    """Starts JupyterLab over `folder`/work, and ends it."""
    work, runtime, token = folder / "work", folder / "runtime", secrets.token_hex(16)
    work.mkdir(exist_ok=True)
    for name, values in SETTINGS.items():
        path = folder / "settings" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    log = folder / "server.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "jupyterlab", *_options(folder, work, token)]
        server = subprocess.Popen(
            command, env=_environment(folder), cwd=work, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            yield Server(_url(server, runtime, log), token, work)
        finally:
            server.terminate()
            try:
                server.wait(STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(STOP_S)


def _options(folder: Path, work: Path, token: str) -> list[str]:
    return [
        "--no-browser",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        "--ServerApp.allow_root=True",
        f"--ServerApp.root_dir={work}",
        f"--IdentityProvider.token={token}",
        f"--LabApp.user_settings_dir={folder / 'settings'}",
        f"--LabApp.workspaces_dir={folder / 'workspaces'}",
    ]


def _environment(folder: Path) -> dict[str, str]:
    """Ours, with the clone on the path: what an editable install amounts to."""
    own = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {
        **os.environ,
        **own,
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "PYTHONPATH": path,
        "LESSON_TARGET": "emulator",
    }


def _url(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """What the server writes down once it listens."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                return str(json.loads(path.read_text(encoding="utf-8"))["url"])
            except json.JSONDecodeError:  # it is being written
                break
        time.sleep(0.1)
    raise TimeoutError(f"JupyterLab did not listen after {START_S} s: {log.read_text()[-2000:]}")


@dataclass
class Lab:
    """A notebook open in JupyterLab, in a browser. `errors`: what the console complained of."""

    page: Any
    errors: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, browser: Any, server: Server, notebook: str, cells: int) -> Lab:
        """Opens a notebook and waits until its cells and its kernel are there."""
        lab = cls(browser.new_page(viewport={"width": 1400, "height": 900}))
        lab.page.on("pageerror", lambda error: lab.errors.append(str(error)))
        lab.page.on("console", lab._heard)
        lab.page.goto(server.address(notebook), timeout=OPEN_MS)
        lab.page.wait_for_function(
            "n => document.querySelectorAll('.jp-Notebook .jp-Cell').length === n",
            arg=cells,
            timeout=OPEN_MS,
        )
        name = lab.page.locator(".jp-KernelName", has_text="Python 3")
        name.wait_for(timeout=OPEN_MS)
        idle = ".jp-Notebook-ExecutionIndicator[data-status=idle]"
        lab.page.wait_for_selector(idle, timeout=OPEN_MS)
        return lab

    def _heard(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def run_all(self, code_cells: int) -> None:
        """Run, Run All Cells; waits until the last code cell has its number."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        self.page.wait_for_function(
            "n => [...document.querySelectorAll('.jp-InputArea-prompt')]"
            ".some(e => e.textContent.trim() === `[${n}]:`)",
            arg=code_cells,
            timeout=RUN_MS,
        )

    def cell(self, text: str) -> Any:
        """The code cell whose source holds `text`."""
        editor = self.page.locator(".jp-CodeMirrorEditor", has_text=text)
        return self.page.locator(".jp-CodeCell", has=editor).first

    def rewrite(self, text: str, source: str) -> Any:
        """Types other source into the cell that holds `text`, and runs it. Returns the cell."""
        editor = self.cell(text).locator(".cm-content")
        editor.scroll_into_view_if_needed()
        editor.click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(source)  # typed key by key, it would get more brackets
        self.page.keyboard.press("Control+Enter")
        return self.cell(source.splitlines()[0])

    def active_cell(self) -> int:
        """The number of the cell that the notebook's shortcuts mean."""
        return int(
            self.page.evaluate(
                "[...document.querySelectorAll('.jp-Notebook .jp-Cell')]"
                ".findIndex(e => e.classList.contains('jp-mod-active'))"
            )
        )
