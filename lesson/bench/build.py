"""Machine code for variants, many at a time, in processes of their own.

The children are started afresh, not forked, so that CUDA may be in use here already.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from multiprocessing.pool import Pool

from lesson import compile as nvrtc
from lesson.bench import variants
from lesson.bench.variants import Variant
from lesson.errors import CompileError

Key = tuple[str, tuple[tuple[str, int], ...]]
_MANY = 4  # variants below which a pool is not worth its start


def key(v: Variant) -> Key:
    """What the machine code depends on."""
    return v.file, v.macros


class Builder:
    """Compiles for one architecture, each variant once."""

    def __init__(self, arch: str, processes: int | None = None) -> None:
        self.arch = arch
        self.images: dict[Key, bytes | str] = {}
        count = processes or max(1, (os.cpu_count() or 2) - 2)
        fresh = multiprocessing.get_context("spawn")
        self._pool: Pool | None = fresh.Pool(count) if count > 1 else None

    def build(self, wanted: Iterable[Variant]) -> None:
        """Compiles what is not compiled yet. A refusal is kept, for `image` to raise."""
        missing = list({key(v) for v in wanted} - self.images.keys())
        jobs = [(self.arch, *each) for each in missing]
        if self._pool is None or len(jobs) < _MANY:
            images = [_image(job) for job in jobs]
        else:
            images = self._pool.map(_image, jobs, chunksize=2)
        self.images.update(zip(missing, images, strict=True))

    def image(self, v: Variant) -> bytes:
        """The machine code of a variant; CompileError if it was refused."""
        if key(v) not in self.images:
            self.build([v])
        found = self.images[key(v)]
        if isinstance(found, str):
            raise CompileError(found)
        return found

    def close(self) -> None:
        """Ends the processes."""
        if self._pool is not None:
            self._pool.terminate()
            self._pool.join()
            self._pool = None


def _image(job: tuple[str, str, tuple[tuple[str, int], ...]]) -> bytes | str:
    """Machine code, or the compiler's refusal as text."""
    arch, file, macros = job
    try:
        text = variants.source(file)
        return nvrtc.source_to_cubin(text, name=file, arch=arch, macros=dict(macros))
    except CompileError as error:
        return str(error)
