"""Replays a folder of recordings of a real GPU through the emulator, case by case.

`python -m tests.conformance DIR` takes any folder with files in the formats of `tests/data` (its
README gives them): encode.json, load.json and store.json with tma.npz, alu.npz, sync.npz, whichever
are there. `replay` is the same for Python. A case runs as a reader's kernel would: PTX text through
`lesson.emulator.launch`; only the encodes ask `lesson.tensor_map` what the driver will say.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

from lesson.emulator import launch
from tests.conformance.instructions import replay_instructions
from tests.conformance.maps import replay_encodes
from tests.conformance.outcome import Outcome
from tests.conformance.tensor_copies import replay_loads, replay_stores
from tests.conformance.threads import THREAD_SETS, replay_threads

__all__ = ["FILES", "SETS", "Outcome", "replay"]

SETS = ("encode", "load", "store", "alu", *THREAD_SETS)
FILES = {
    "encode": ("encode.json",),
    "load": ("load.json", "tma.npz"),
    "store": ("store.json", "tma.npz"),
    "alu": ("alu.npz",),
    **dict.fromkeys(THREAD_SETS, ("sync.npz",)),
}
_REPLAYS = {
    "encode": replay_encodes,
    "load": replay_loads,
    "store": replay_stores,
    "alu": replay_instructions,
}


def replay(folder: Path, name: str, schedule: str = "eager") -> Iterator[Outcome]:
    """The outcome of every case of one set; nothing where the folder lacks the set's files.

    `schedule` says when copies land, as `lesson.emulator.launch` has it.
    """
    if not all((folder / file).exists() for file in FILES[name]):
        return iter(())
    run = functools.partial(launch, schedule=schedule)
    if name in THREAD_SETS:
        return replay_threads(folder, run, name)
    return _REPLAYS[name](folder, run)
