"""Records the PTX of the shipped kernels, for machines where NVRTC cannot be installed.

    python -m tests.record_ptx

Writes lesson/kernels/evidence/ptx/: one file a kernel and index.json. Run it after an edit of
tma_tile.cu or record_writes.cuh; a test says when that is due. Uses the NVRTC of this machine.
"""

from __future__ import annotations

import dataclasses
import json

from lesson import compile as nvrtc
from lesson import harness, recorded
from lesson.harness import KernelSource

SHIPPED: dict[str, tuple[str, KernelSource]] = {
    "load_tile": ("tma_tile.cu as it is", harness.kernel_source()),
    "record_writes": ("tma_tile.cu with an out that records", harness.recording_source()),
}


def main() -> None:
    recorded.FOLDER.mkdir(parents=True, exist_ok=True)
    entries = []
    for name, (says, kernel) in SHIPPED.items():
        ptx = nvrtc.to_ptx(kernel.text, name=kernel.name)
        file = f"{name}.ptx"
        (recorded.FOLDER / file).write_text(ptx.text, encoding="utf-8", newline="\n")
        entry = recorded.Recording(
            says=says,
            source_sha256=recorded.sha256(kernel.text),
            arch=ptx.arch,
            nvrtc=".".join(map(str, ptx.nvrtc_version)),
            file=file,
        )
        entries.append({k: v for k, v in dataclasses.asdict(entry).items() if k != "text"})
    text = json.dumps(entries, indent=2) + "\n"
    (recorded.FOLDER / "index.json").write_text(text, encoding="utf-8", newline="\n")
    print(f"{len(entries)} recordings in {recorded.FOLDER.name}/")


if __name__ == "__main__":
    main()
