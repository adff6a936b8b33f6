"""Records the PTX of the shipped kernels, for machines where NVRTC cannot be installed.

    python -m tests.record_ptx

Writes lesson/kernels/evidence/ptx/: one file a kernel and index.json. The edits that the notebook
makes are recorded with them: its cells are run, and what they compile is kept. Run it after an edit
of a kernel or of a notebook cell; a test says when that is due. Uses the NVRTC of this machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

from lesson import compile as nvrtc
from lesson import harness, recorded
from lesson.compile import Ptx
from lesson.harness import KernelSource

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "day76_tma_tile.ipynb"
SHIPPED: dict[str, tuple[str, KernelSource]] = {
    "load_tile": ("tma_tile.cu as it is", harness.kernel_source()),
    "record_writes": ("tma_tile.cu with an out that records", harness.recording_source()),
}


def run_notebook() -> str:
    """Executes the code cells in this process; returns what they print."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), "cell", "exec"), names)
    return printed.getvalue()


def compiled_by_the_notebook() -> list[Ptx]:
    """What the cells compile beyond the shipped kernels, in order, each once."""
    compiled: dict[str, Ptx] = {}
    real = nvrtc.to_ptx

    def noting(source: str, **options: object) -> Ptx:
        ptx = compiled[source] = real(source, **options)
        return ptx

    nvrtc.to_ptx = noting
    try:
        run_notebook()
    finally:
        nvrtc.to_ptx = real
    shipped = {kernel.text for _, kernel in SHIPPED.values()}
    return [ptx for source, ptx in compiled.items() if source not in shipped]


def recordings() -> Iterator[tuple[str, str, Ptx]]:
    """(file, what it is in words, PTX) of everything to record."""
    for name, (says, kernel) in SHIPPED.items():
        yield f"{name}.ptx", says, nvrtc.to_ptx(kernel.text, name=kernel.name)
    for ptx in compiled_by_the_notebook():
        name = recorded.sha256(ptx.source)[:12]
        says = f"{ptx.source_name} as a cell of the notebook has it ({', '.join(ptx.kernels)})"
        yield f"{name}.ptx.gz", says, ptx


def main() -> None:
    recorded.FOLDER.mkdir(parents=True, exist_ok=True)
    entries = []
    stale = {path.name for path in recorded.FOLDER.glob("*.ptx*")}
    for file, says, ptx in recordings():
        text = ptx.text.encode()
        data = gzip.compress(text, mtime=0) if file.endswith(".gz") else text
        (recorded.FOLDER / file).write_bytes(data)
        stale.discard(file)
        entry = recorded.Recording(
            says=says,
            source_sha256=recorded.sha256(ptx.source),
            arch=ptx.arch,
            nvrtc=".".join(map(str, ptx.nvrtc_version)),
            file=file,
        )
        entries.append({k: v for k, v in dataclasses.asdict(entry).items() if k != "text"})
    for file in stale:
        (recorded.FOLDER / file).unlink()
    text = json.dumps(entries, indent=2) + "\n"
    (recorded.FOLDER / "index.json").write_text(text, encoding="utf-8", newline="\n")
    print(f"{len(entries)} recordings in {recorded.FOLDER.name}/")


if __name__ == "__main__":
    main()
