"""The lesson as slides: `python -m lesson slides`, as `make slides` does.

Writes one HTML page that needs no network: reveal.js, its speaker view, styles and pictures are all
in it. Every cell's `slideshow` metadata says whether it starts a slide, goes below the last one,
appears on the next key, or is a speaker note. It runs nothing: what a cell put out is taken from
the notebook's file, so that a class sees the same on any machine.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lesson.errors import NotebookError
from lesson.run_lesson import PACKAGE, jupyter, lesson_notebook, read

if TYPE_CHECKING:
    from nbformat import NotebookNode

TEMPLATE = "slides_template"
FOLDED_NOTE = re.compile(r"^<details><summary>[^<]*</summary>\s*(.*?)\s*</details>$", re.DOTALL)


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Register `slides`."""
    parser = commands.add_parser(
        "slides", help="write the notebook as slides, one page", description=__doc__
    )
    parser.add_argument("notebook", nargs="?", type=Path, help="default: the lesson")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder to write to")
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Write the page, and say where it is and how to present it."""
    source = options.notebook or lesson_notebook()
    page = options.out / f"{source.stem}.slides.html"
    html = render(read(source), source.stem)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        page.write_text(html, encoding="utf-8")
    except OSError as error:
        raise NotebookError(
            f"--out must be a folder to write to, got {options.out}: {error.strerror}."
        ) from error
    print(f"slides: {page}")
    print("Open it in a browser. Space: next; S: the speaker's notes; O: all slides; ?: all keys.")
    return 0


def render(notebook: NotebookNode, name: str) -> str:
    """The page. Raises NotebookError for a cell that does not say what it is on a slide."""
    for cell in notebook.cells:
        if "slide_type" not in cell.metadata.get("slideshow", {}):
            first = cell.source.partition("\n")[0]
            raise NotebookError(
                f"Every cell must say what it is on a slide, got one without slide_type: {first!r}."
                " JupyterLab: View, Show Right Sidebar, Slide Type."
            )
        if found := FOLDED_NOTE.match(cell.source):
            cell.source = found[1]  # folded in the notebook only
    exporter = jupyter("nbconvert").SlidesExporter(
        template_name=TEMPLATE, extra_template_basedirs=[str(PACKAGE)]
    )
    html, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": name}})
    return html
