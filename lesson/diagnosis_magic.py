"""`%%cuda`: a notebook cell of CUDA C++ that is checked when it runs.

`%%cuda --grid 4,4 --block 256` takes the options of `python -m lesson check`; head comments in the
cell do as well. What comes out is the report's card, with the lines as the notebook numbers them:
the magic itself is line 1. `enable()` makes the magic known to IPython.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from lesson.errors import LaunchError, LessonError
from lesson.findings import Report

NAME = "cuda"


class _Options(argparse.ArgumentParser):
    """Complaints become an error of this package, not an exit."""

    def error(self, message: str) -> Any:
        raise LaunchError(f"an option of %%{NAME} must be a known one, got: {message}.")


def enable() -> None:
    """Make `%%cuda` known to the IPython that runs this. LessonError outside of IPython."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        raise LessonError(f"%%{NAME} must be enabled in a notebook, got plain Python.")
    shell.register_magic_function(cuda_cell, "cell", NAME)


def cuda_cell(line: str, cell: str) -> Report:
    """Check the text of a cell."""
    from lesson.check import check

    options = _parser().parse_args(shlex.split(line))
    return check(
        f"// %%{NAME} {line}\n{cell}",
        name="cell.cu",
        kernel=options.kernel,
        grid=options.grid,
        block=options.block,
        shared_bytes=options.shared,
    )


def _parser() -> _Options:
    parser = _Options(prog=f"%%{NAME}", add_help=False)
    parser.add_argument("--kernel")
    parser.add_argument("--grid", type=_sizes)
    parser.add_argument("--block", type=_sizes)
    parser.add_argument("--shared", type=int)
    return parser


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))
