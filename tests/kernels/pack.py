"""The PTX texts of the samples as one compressed file: {sample: {compiler and target: text}}."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "kernels"
PTX_PACK = DATA / "ptx.json.gz"

Pack = dict[str, dict[str, str]]


def load(path: Path = PTX_PACK) -> Pack:
    """The pack at `path`; empty where there is none yet."""
    if not path.exists():
        return {}
    return json.loads(gzip.decompress(path.read_bytes()))


def save(pack: Pack, path: Path = PTX_PACK) -> None:
    """Writes the pack; the same texts give the same bytes (no time stamp)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered = {name: dict(sorted(texts.items())) for name, texts in sorted(pack.items())}
    text = json.dumps(ordered, indent=0, ensure_ascii=True)
    path.write_bytes(gzip.compress(text.encode("ascii"), 9, mtime=0))
