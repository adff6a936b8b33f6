"""Compiles the samples to PTX with every compiler at hand and adds the texts to the pack.

    python -m tests.kernels.build --nvcc 13.0=nvcc
    python -m tests.kernels.build --nvrtc 12.6=LIBNVRTC:INCLUDE[:INCLUDE]
    python -m tests.kernels.build --triton 3.6.0 --python PYTHON

`--only NAME` builds one sample and leaves the texts of the others as they are.
A sample that a compiler refuses (one that has no cuda/ptx header yet, say) is named and left out
for that compiler. No GPU and no driver are needed. Sources are compiled from a folder of their own,
so that no path of the building machine enters the line tables.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.kernels import pack, samples

ROOT = Path(tempfile.gettempdir()) / "sample-kernels"
NVCC_VARIANTS = (
    ("O3 sm_90", ["-O3", "-lineinfo"]),
    ("O3 sm_90a", ["-O3"]),
    ("O3 sm_100", ["-O3"]),
    ("O3 sm_120", ["-O3"]),
    ("G sm_90", ["-G"]),
)
NVRTC_VARIANTS = (
    ("O3 sm_90", ["--generate-line-info"]),
    ("G sm_90", ["--device-debug"]),
)


Builder = Callable[[samples.Sample], dict[str, str]]


class Refused(Exception):
    """A compiler's own words on why it does not compile a sample."""


def _can_target(sample: samples.Sample, target: str) -> bool:
    """A sample that asks for sm_90a runs as nothing else."""
    return target.endswith("sm_90a") if sample.arch == "sm_90a" else True


def nvcc_texts(nvcc: str, sample: samples.Sample) -> dict[str, str]:
    """Variant -> PTX by nvcc."""
    texts = {}
    for variant, options in NVCC_VARIANTS:
        if not _can_target(sample, variant):
            continue
        out = ROOT / "out.ptx"
        arch = variant.split()[-1]
        done = subprocess.run(
            [
                nvcc,
                "-std=c++17",
                f"-arch={arch}",
                *options,
                "-ptx",
                "-o",
                str(out),
                sample.path.name,
            ],
            check=False,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode:
            raise Refused(done.stderr.strip()[:300])
        texts[variant] = out.read_text()
    return texts


class Nvrtc:
    """The few calls of one libnvrtc, by ctypes, so that several versions can be tried in turn."""

    def __init__(self, library: str, includes: list[str], debug: bool) -> None:
        self.lib = ctypes.CDLL(library)
        self.includes = includes
        self.variants = NVRTC_VARIANTS if debug else NVRTC_VARIANTS[:1]

    def texts(self, sample: samples.Sample) -> dict[str, str]:
        """Variant -> PTX by NVRTC."""
        texts = {}
        for variant, options in self.variants:
            arch = sample.arch.replace("sm_", "compute_")
            name = variant.replace("sm_90", sample.arch)
            texts[name] = self.compile(sample, [f"--gpu-architecture={arch}", *options])
        return texts

    def compile(self, sample: samples.Sample, options: list[str]) -> str:
        """One compile; raises Refused with the log."""
        program = ctypes.c_void_p()
        source = (ROOT / sample.path.name).read_bytes()
        self.lib.nvrtcCreateProgram(
            ctypes.byref(program), source, sample.path.name.encode(), 0, None, None
        )
        options = ["--std=c++17", f"-I{ROOT}", *[f"-I{i}" for i in self.includes], *options]
        given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        code = self.lib.nvrtcCompileProgram(program, len(options), given)
        kind = "ProgramLog" if code else "PTX"
        text = self._text(program, kind)
        self.lib.nvrtcDestroyProgram(ctypes.byref(program))
        if code:
            raise Refused(text.strip()[:300])
        return text

    def _text(self, program: ctypes.c_void_p, kind: str) -> str:
        size = ctypes.c_size_t()
        getattr(self.lib, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        room = ctypes.create_string_buffer(size.value)
        getattr(self.lib, f"nvrtcGet{kind}")(program, room)
        return room.value.decode()


def triton_texts(python: str, sample: samples.Sample) -> dict[str, str]:
    """Variant -> PTX by Triton, in a process of the Python that has it."""
    script = samples.FOLDER / "triton_compile.py"
    done = subprocess.run(
        [python, str(script), str(ROOT / sample.path.name), str(sample.dynamic_smem)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
    )
    if done.returncode:
        raise Refused(done.stderr.strip()[-300:])
    return {"sm_90": done.stdout}


def assemble(ptxas: str, sample: samples.Sample, texts: dict[str, str]) -> None:
    """Raises Refused where a text asks for what its own PTX ISA version does not have yet."""
    path = ROOT / "assembled.ptx"
    for variant, text in texts.items():
        path.write_text(text)
        arch = "sm_90a" if ".target sm_90a" in text else variant.split()[-1]
        done = subprocess.run(
            [ptxas, f"-arch={arch}", "-o", str(ROOT / "assembled.cubin"), str(path)],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode:
            raise Refused(f"{sample.name} {variant}: {done.stderr.strip()[:200]}")


def add(
    texts: pack.Pack, compiler: str, build: Builder, of: str, given: argparse.Namespace
) -> None:
    """Builds every sample that is asked for and whose file ends in `of`, one line each."""
    for sample in samples.all_samples():
        if sample.path.suffix != of or given.only not in (None, sample.name):
            continue
        here = texts.setdefault(sample.name, {})
        for stale in [v for v in here if v.startswith(compiler + " ")]:
            del here[stale]
        try:
            got = build(sample)
            if given.ptxas:
                assemble(given.ptxas, sample, got)
        except Refused as why:
            print(f"{compiler} {sample.name}: refused: {why}")
            continue
        here.update({f"{compiler} {variant}": text for variant, text in got.items()})
        print(f"{compiler} {sample.name}: {', '.join(got)}")


def _root_with_sources() -> None:
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir()
    for path in [*samples.FOLDER.glob("*.cu*"), *(samples.FOLDER / "triton").glob("*.py")]:
        shutil.copy(path, ROOT)


def _linked(includes: list[str], version: str) -> list[str]:
    """The include folders under neutral names."""
    named = []
    for number, folder in enumerate(includes):
        link = ROOT / f"cuda-{version}-{number}"
        link.symlink_to(folder)
        named.append(str(link))
    return named


def main() -> int:
    """The command line described above."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nvcc", metavar="VERSION=NVCC")
    parser.add_argument("--nvrtc", metavar="VERSION=LIB:INCLUDE[:INCLUDE]")
    parser.add_argument("--debug", action="store_true", help="NVRTC: with --device-debug as well")
    parser.add_argument("--triton", metavar="VERSION")
    parser.add_argument("--only", metavar="NAME", help="this sample alone")
    parser.add_argument("--ptxas", help="keep only what this assembler of CUDA 13.0 accepts")
    parser.add_argument("--python", default=sys.executable, help="the Python that has Triton")
    parser.add_argument("--pack", type=Path, default=pack.PTX_PACK)
    given = parser.parse_args()
    pack_path = given.pack.resolve()
    _root_with_sources()
    os.chdir(ROOT)  # compilers write the current folder into their debug sections
    texts = pack.load(pack_path)
    known = {s.name for s in samples.all_samples()}
    texts = {name: variants for name, variants in texts.items() if name in known}
    if given.nvcc:
        version, nvcc = given.nvcc.split("=", 1)
        add(texts, f"nvcc-{version}", lambda s: nvcc_texts(nvcc, s), ".cu", given)
    if given.nvrtc:
        version, paths = given.nvrtc.split("=", 1)
        library, *includes = paths.split(":")
        nvrtc = Nvrtc(library, _linked(includes, version), given.debug)
        add(texts, f"nvrtc-{version}", nvrtc.texts, ".cu", given)
    if given.triton:
        add(
            texts,
            f"triton-{given.triton}",
            lambda s: triton_texts(given.python, s),
            ".py",
            given,
        )
    pack.save(texts, pack_path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
