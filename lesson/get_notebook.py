"""Put a copy of the lesson's notebook where the reader is: `python -m lesson notebook [FOLDER]`.

For those who installed the package and have no clone. A file that is there is never overwritten:
it may hold the reader's own edits.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from lesson.errors import NotebookError
from lesson.run_lesson import lesson_notebook


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Register `notebook`."""
    parser = commands.add_parser(
        "notebook", help="copy the lesson's notebook into a folder", description=__doc__
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="default: here")
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Copy it and say how to open it."""
    source = lesson_notebook()
    target = options.folder / source.name
    if target.exists():
        raise NotebookError(f"{target} is there already. Move it away, or name another FOLDER.")
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    except OSError as error:
        raise NotebookError(
            f"FOLDER must be one to write to, got {options.folder}: {error.strerror}."
        ) from error
    print(f"{target}\nOpen it with: python -m jupyterlab {target}")
    return 0
