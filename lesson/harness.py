"""Kernel source composed of the lesson's .cu file, a reader's edits and the recording harness.

Every composed text carries `#line` directives where they are needed, so that an error of the
compiler and every PTX instruction name the line of tma_tile.cu that a reader sees. An edited
snippet that is no longer than the original keeps the file's lines; a longer one would collide with
the lines behind it, so it counts from 1 under a name of its own. Nothing is compiled or run here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from lesson.compile_log import Place, places
from lesson.errors import SnippetError
from lesson.snippets import Snippet, Source, lesson_source, parse

KERNEL = "loadTileTma"
RECORDING_KERNEL = "recordTileWrites"
RECORDER_PATH = Path(__file__).parent / "kernels" / "record_writes.cuh"
NOBODY = 0xFFFFFFFF  # the writer of an element that nobody wrote

_HOST_HALF = "#if !defined(__CUDACC_RTC__)"
_PARAMETERS = (
    "float* __restrict__ values, unsigned int* __restrict__ writerBlocks, "
    "unsigned int* __restrict__ writerThreads, unsigned int* __restrict__ writeCounts"
)
_OUT = "const lesson::RecordedOut out{values, writerBlocks, writerThreads, writeCounts};"


@dataclass(frozen=True)
class KernelSource:
    """Text for the compiler, what errors call its first line's file, and the kernel to launch."""

    text: str = field(repr=False)
    name: str
    kernel: str

    @cached_property
    def lines(self) -> Mapping[Place, str]:
        """(file, line) -> text, for whoever quotes a line that the compiler or a fault names."""
        return places(self.text, self.name)


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """Who wrote each element, and how often: uint32 arrays of one length, NOBODY where nobody."""

    writer_blocks: np.ndarray
    writer_threads: np.ndarray
    write_counts: np.ndarray


def new_write_record(nelements: int) -> WriteRecord:
    """What the recording kernel takes behind the output: nobody wrote anything yet."""
    return WriteRecord(
        writer_blocks=np.full(nelements, NOBODY, np.uint32),
        writer_threads=np.full(nelements, NOBODY, np.uint32),
        write_counts=np.zeros(nelements, np.uint32),
    )


def kernel_source(
    snippets: Mapping[str, str] | None = None,
    replace: Mapping[str, str] | None = None,
    source: Source | None = None,
) -> KernelSource:
    """The lesson's kernel (or that of `source`), as it stands or with a reader's edits.

    `snippets` maps a region's name to the text to compile in its place. `replace` maps text that
    stands exactly once before the host half to text with as many lines: for other edits.
    """
    source = source or lesson_source()
    text = _with_snippets(source, snippets or {})
    device, host = _halves(text)
    for old, new in (replace or {}).items():
        device = _replaced(device, old, new, source.name)
    return KernelSource(device + host, source.name, KERNEL)


def recording_source(
    snippets: Mapping[str, str] | None = None,
    replace: Mapping[str, str] | None = None,
    source: Source | None = None,
) -> KernelSource:
    """The same kernel, whose `out` also records its writers (kernels/record_writes.cuh).

    Its parameters: the tensor map, the output, then the three arrays of a WriteRecord.
    """
    plain = kernel_source(snippets, replace, source)
    text = recording_text(plain.text, plain.name, KERNEL)
    return KernelSource(text, plain.name, RECORDING_KERNEL)


def recording_text(text: str, name: str, kernel: str, first_line: int = 1) -> str:
    """Any kernel whose last parameter is `float* out`, renamed and given a recording `out`.

    `name` and `first_line` are what errors call the first line of `text`.
    """
    signature = re.compile(
        rf"(__global__\s[^;{{}}]*?\bvoid\s+){re.escape(kernel)}(\s*\([^{{}}]*?)"
        r"\bfloat\s*\*\s*(?:__restrict__\s+)?out(\s*\)\s*\{)"
    )
    recording, count = signature.subn(
        lambda m: f"{m[1]}{RECORDING_KERNEL}{m[2]}{_PARAMETERS}{m[3]} {_OUT}", text
    )
    if count != 1:
        raise SnippetError(
            f"kernel {kernel!r} must be defined once with `float* out` as its last parameter, got "
            f"{count} such definitions. {name}. Name the output `out` and put it last."
        )
    recorder = parse(RECORDER_PATH.read_text(encoding="utf-8"), RECORDER_PATH.name)
    return f'#line 1 "{recorder.name}"\n{recorder.text}\n#line {first_line} "{name}"\n{recording}'


def _with_snippets(source: Source, edits: Mapping[str, str]) -> str:
    lines = list(source.lines)
    by_position = sorted(map(source.snippet, edits), key=lambda snippet: snippet.first_line)
    for snippet in reversed(by_position):  # from the end, so that earlier positions stay
        edited = _edited(snippet, edits[snippet.name])
        lines[snippet.first_line - 1 : snippet.last_line] = edited
    return "\n".join(lines)


def _edited(snippet: Snippet, text: str) -> list[str]:
    """The edited region's lines, with what keeps every other line's number."""
    edited = parse(text.rstrip("\r\n") + "\n", f"the edited snippet {snippet.name!r}")
    if edited.snippets:
        raise SnippetError(
            f"the edited snippet {snippet.name!r} must hold no markers, got one for "
            f"{edited.snippets[0].name!r}. Take the marker lines away."
        )
    lines = list(edited.lines[:-1])
    if len(lines) == len(snippet.lines):
        return lines
    if len(lines) > len(snippet.lines):
        lines.insert(0, f'#line 1 "{snippet.name}, edited"')
    return [*lines, f'#line {snippet.last_line + 1} "{snippet.source_name}"']


def _halves(text: str) -> tuple[str, str]:
    """What NVRTC compiles, and the host program that it skips (empty where there is none)."""
    host = text.find(_HOST_HALF, max(text.find(f"void {KERNEL}("), 0))
    return (text, "") if host < 0 else (text[:host], text[host:])


def _replaced(text: str, old: str, new: str, name: str) -> str:
    count = text.count(old) if old else 0
    if count != 1:
        raise SnippetError(
            f"the text to replace must stand once in {name} before its host half, got it {count} "
            f"times: {old[:60]!r}. Pass a longer piece of the line."
        )
    if old.count("\n") != new.count("\n"):
        raise SnippetError(
            f"a replacement must have as many lines as what it replaces ({old.count(chr(10)) + 1})"
            f", got {new.count(chr(10)) + 1}. Put several statements on one line."
        )
    return text.replace(old, new)
