"""One tile a block through the Tensor Memory Accelerator (TMA): the lesson's package.

A kernel in `kernels/tma_tile.cu`, a notebook that explains it piece by piece, and two targets that
run it: a Hopper GPU or a later one through CuPy, or an emulator that executes the kernel's own PTX
on the CPU.

`import lesson` is light: no CUDA library, no numpy. The names that the notebook uses live in
`lesson.helpers` and are found here as well, loaded when first asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Look a name up among the helpers (PEP 562); submodules stay the import system's business."""
    if not name.startswith("_") and find_spec(f"lesson.{name}") is None:
        helpers = import_module("lesson.helpers")
        if name in helpers.__all__:
            return getattr(helpers, name)
    raise AttributeError(f"module 'lesson' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What tab completion shows: the version and the helpers."""
    return ["__version__", *import_module("lesson.helpers").__all__]
