"""A headless Chromium for the tests in this folder: the system's, driven by Playwright.

Debian's package `chromium` has the browser, and the pip package `playwright` drives it; browsers of
Playwright's own are not needed. LESSON_BROWSER names another Chromium or Chrome; its value
`required` (continuous integration) turns the skip into a failure. LESSON_SCREENSHOTS names a folder
that keeps what the tests photograph.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
START_MS = 60_000
# Nothing of its own on the network, and no graphics card.
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """The browser's path."""
    asked = os.environ.get("LESSON_BROWSER", "")
    if asked and asked != "required":
        return shutil.which(asked)
    return next(filter(None, map(shutil.which, NAMES)), None)


def missing() -> str:
    """What the tests need and this machine lacks, in words; empty when all is there."""
    if importlib.util.find_spec("playwright") is None:
        return "no Playwright here: pip install playwright"
    if chromium() is None:
        return f"no browser here (looked for {', '.join(NAMES)}): apt install chromium"
    return ""


# A module's, not the session's: while Playwright's event loop runs, nothing else in this process
# can run one, and the tests that execute notebooks need their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Playwright browser."""
    if reason := missing():
        if os.environ.get("LESSON_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # The sandbox needs rights that a container does not have; the pages are our own.
        running = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", *QUIET], timeout=START_MS
        )
        yield running
        running.close()


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """The folder for what a test photographs: LESSON_SCREENSHOTS, or one that goes away."""
    folder = Path(os.environ.get("LESSON_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
