"""Execute the lesson's notebook from start to end: `python -m lesson run`, as `make lesson` does.

Writes the executed notebook and an HTML page, prints the round-trip line that the notebook itself
printed, and where both files are. A cell that fails ends the run: its number, its first line and
the error are the message, and what ran up to there is kept. It decides nothing about CUDA: the
notebook's first cell picks the target.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lesson.errors import NotebookError

if TYPE_CHECKING:
    from nbformat import NotebookNode

NAME = "day76_tma_tile.ipynb"
PACKAGE = Path(__file__).resolve().parent
# What nbformat raises, besides its own ValidationError, on JSON of another shape or no JSON at all.
NOT_A_NOTEBOOK = (ValueError, TypeError, AttributeError, LookupError, AssertionError)


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Register `run`."""
    parser = commands.add_parser(
        "run", help="execute the notebook; write it and an HTML page", description=__doc__
    )
    parser.add_argument("notebook", nargs="?", type=Path, help="default: the lesson")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder to write to")
    parser.add_argument("--timeout", type=positive_seconds, default=600, help="seconds a cell")
    parser.set_defaults(main=main)


def positive_seconds(text: str) -> int:
    """A whole number of seconds, at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of seconds above 0, got {text!r}")
    return int(text)


def lesson_notebook() -> Path:
    """The notebook of this clone, or the one that the installed package carries."""
    for folder in (PACKAGE.parent / "notebooks", PACKAGE / "notebooks"):
        if (folder / NAME).is_file():
            return folder / NAME
    raise NotebookError(f"{NAME} must lie beside the package or in it, found neither. Reinstall.")


def main(options: argparse.Namespace) -> int:
    """Run, report, and return the exit status."""
    source = options.notebook or lesson_notebook()
    notebook = read(source)
    try:
        execute(notebook, source.resolve().parent, options.timeout)
    finally:
        executed, page = write(notebook, options.out, source.stem)
    line = round_trip(notebook)
    print(line)
    print(f"executed notebook: {executed}")
    print(f"page to read:      {page}")
    return 0 if line.startswith("round trip: PASS") else 1


def jupyter(module: str) -> Any:
    """Import one of Jupyter's modules, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise NotebookError(
            f"The notebook's runner must be installed, got no module {error.name}. "
            "Say: pip install 'tma-lesson[notebook]', or in a clone: pip install '.[notebook]'."
        ) from error


def read(source: Path) -> NotebookNode:
    """The notebook as nbformat 4, or a sentence on why not."""
    nbformat = jupyter("nbformat")
    try:
        text = source.read_text(encoding="utf-8")
        nbformat.validate(json.loads(text))  # reads() itself only logs what is invalid
        return nbformat.reads(text, as_version=4)
    except OSError as error:
        reason = error.strerror
    except (*NOT_A_NOTEBOOK, nbformat.ValidationError) as error:
        detail = str(error).partition("\n")[0] or type(error).__name__
        reason = f"not a notebook ({detail})"
    raise NotebookError(f"NOTEBOOK must be a Jupyter notebook, got {source}: {reason}.")


def execute(notebook: NotebookNode, folder: Path, timeout_s: int) -> None:
    """Run every cell in `folder`, with the same `lesson` as this process; outputs stay in place."""
    nbclient = jupyter("nbclient")
    jupyter("ipykernel")
    client = nbclient.NotebookClient(
        notebook,
        timeout=timeout_s,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=Progress(notebook),
        extra_arguments=["--log-level=ERROR"],  # no warnings of Jupyter's own above the lesson
    )
    path = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    try:
        client.execute(env=env)
    except nbclient.exceptions.CellExecutionError as error:
        raise NotebookError(f"{where(notebook)} failed: {error.ename}: {error.evalue}") from error
    except nbclient.exceptions.CellTimeoutError as error:
        raise NotebookError(
            f"{where(notebook)} must end within {timeout_s} s, and did not. See --timeout."
        ) from error
    except nbclient.exceptions.DeadKernelError as error:
        raise NotebookError(
            f"{where(notebook)} ended its Python process: out of memory, or a crash in a library."
        ) from error


class Progress:
    """Says on a terminal which cell runs; silent when the output goes to a file."""

    def __init__(self, notebook: NotebookNode) -> None:
        self.last = len(notebook.cells)

    def __call__(self, cell: NotebookNode, cell_index: int) -> None:
        cell.metadata["lesson_started"] = True
        if sys.stderr.isatty():
            end = "\n" if cell_index + 1 == self.last else ""
            print(f"\rcell {cell_index + 1} of {self.last} ", end=end, file=sys.stderr, flush=True)


def where(notebook: NotebookNode) -> str:
    """`Code cell 7 (result = run(...))`: the last one that was started."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    started = [i for i, cell in enumerate(code) if cell.metadata.get("lesson_started")]
    if not started:
        return "The notebook's first cell"
    lines = code[started[-1]].source.strip().splitlines() or [""]
    return f"Code cell {started[-1] + 1} ({lines[0]})"


def write(notebook: NotebookNode, folder: Path, stem: str) -> tuple[Path, Path]:
    """Write the executed notebook and its HTML page; return both paths."""
    for cell in notebook.cells:
        cell.metadata.pop("lesson_started", None)
    executed, page = folder / f"{stem}.ipynb", folder / f"{stem}.html"
    html, _ = (
        jupyter("nbconvert")
        .HTMLExporter()
        .from_notebook_node(notebook, resources={"metadata": {"name": stem}})
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        executed.write_text(jupyter("nbformat").writes(notebook) + "\n", encoding="utf-8")
        page.write_text(html, encoding="utf-8")
    except OSError as error:
        raise NotebookError(
            f"--out must be a folder to write to, got {folder}: {error.strerror}."
        ) from error
    return executed, page


def round_trip(notebook: NotebookNode) -> str:
    """The line that the lesson printed about its round trip, taken from the cells' outputs."""
    for text in output_texts(notebook):
        if found := re.search(r"^round trip: .*$", text, re.MULTILINE):
            return found[0]
    raise NotebookError("The notebook must print a line 'round trip: ...', got none in any output.")


def output_texts(notebook: NotebookNode) -> Iterator[str]:
    """The plain text of every output, in order."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            yield output.get("text") or output.get("data", {}).get("text/plain", "")
