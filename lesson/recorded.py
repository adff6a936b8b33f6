"""PTX that was recorded for known source, for machines where NVRTC cannot be installed (macOS).

`kernels/evidence/ptx/index.json` lists the recordings: the sha256 of the very text that was
compiled, the architecture, the NVRTC version, and the file. Text that differs in one character has
no recording, and the answer says so: an edit needs a compiler. The edits that the notebook itself
makes are recorded, too, so that it runs to its end. `tests/record_ptx.py` makes the recordings.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lesson.errors import CompileError

FOLDER = Path(__file__).parent / "kernels" / "evidence" / "ptx"


@dataclass(frozen=True, slots=True)
class Recording:
    """One compile that happened elsewhere. `file` lies in the folder of the index."""

    says: str  # which source it was, in words
    source_sha256: str
    arch: str
    nvrtc: str  # "12.9"
    file: str
    text: str = ""

    @property
    def nvrtc_version(self) -> tuple[int, int]:
        """Major and minor version of the NVRTC that compiled it."""
        major, minor = self.nvrtc.split(".")
        return int(major), int(minor)


def sha256(source: str) -> str:
    """What a recording is found by."""
    return hashlib.sha256(source.encode()).hexdigest()


def index(folder: Path = FOLDER) -> tuple[Recording, ...]:
    """All recordings, without their text."""
    path = folder / "index.json"
    if not path.is_file():
        return ()
    return tuple(Recording(**entry) for entry in json.loads(path.read_text(encoding="utf-8")))


def find(source: str, arch: str, folder: Path = FOLDER) -> Recording | None:
    """The recording of exactly this text for this architecture, with its PTX; None without one."""
    wanted = sha256(source)
    for entry in index(folder):
        if entry.source_sha256 == wanted and entry.arch == arch:
            return Recording(**{**asdict(entry), "text": text_of(entry, folder)})
    return None


def text_of(entry: Recording, folder: Path = FOLDER) -> str:
    """The PTX of a recording."""
    data = (folder / entry.file).read_bytes()
    return (gzip.decompress(data) if entry.file.endswith(".gz") else data).decode("utf-8")


def refusal(name: str, reason: str) -> CompileError:
    """Why this text cannot become PTX here, and the cure."""
    return CompileError(
        f"{name} must be source that PTX was recorded for, since nothing here can compile it, got "
        f"another text: an edit needs NVRTC. {reason} NVIDIA has no NVRTC for macOS: there, edit "
        "on a Linux or Windows machine, in Colab or on Binder, or run the lesson unedited."
    )
