"""Precompiled headers change the time of a compile, and not one letter of what comes out."""

from pathlib import Path

import pytest

from lesson import compile as lesson_compile
from lesson import compile_nvrtc, compile_pch
from lesson.errors import CompileError

KERNEL = Path(lesson_compile.__file__).parent / "kernels" / "tma_tile.cu"


@pytest.fixture
def compiles(monkeypatch):
    """NVRTC's options, a list a compile; nothing is remembered from other tests."""
    lesson_compile._compiled.cache_clear()
    seen = []
    run = compile_nvrtc.run

    def watched(nvrtc, source, name, options, *, prelude):
        seen.append(list(options))
        return run(nvrtc, source, name, options, prelude=prelude)

    monkeypatch.setattr(compile_nvrtc, "run", watched)
    yield seen
    lesson_compile._compiled.cache_clear()


def edits(count):
    """The lesson's kernel with another number added, which only the end of the text shows."""
    source = KERNEL.read_text(encoding="utf-8")
    return [source.replace("+ 1.0f;", f"+ {n}.0f;") for n in range(2, 2 + count)]


def test_the_ptx_is_the_same_to_the_letter_with_precompiled_headers(compiles, monkeypatch):
    if lesson_compile.nvrtc_version() < compile_pch.FIRST_VERSION:
        pytest.skip("this NVRTC knows no precompiled headers")
    first, second, third = edits(3)
    lesson_compile.to_ptx(first)
    quick = [lesson_compile.to_ptx(each) for each in (second, third)]
    assert ["--pch" in options for options in compiles] == [True, True, True]
    for source, ptx in zip((second, third), quick, strict=True):
        lesson_compile._compiled.cache_clear()
        monkeypatch.setattr(compile_pch, "options", lambda *_: ())
        assert lesson_compile.to_ptx(source).text == ptx.text
        assert ptx.log == ""


def test_a_mistake_behind_precompiled_headers_is_found_on_its_line(compiles):
    source = "#include <cuda/std/cstdint>\n__global__ void k(int* p) {\n    *p = %s;\n}\n"
    for value in "12":
        lesson_compile.to_ptx(source % value)
    with pytest.raises(CompileError, match=r"kernel\.cu, line 3|kernel\.cu\(3\)|line 3"):
        lesson_compile.to_ptx(source % "nothing")


def test_an_old_nvrtc_and_a_source_without_headers_go_without(monkeypatch):
    for _ in range(2):
        assert compile_pch.options((12, 6), "#include <cuda/ptx>\n") == ()
        assert compile_pch.options((13, 0), "__global__ void k() {}\n") == ()


def test_a_machine_that_lets_nobody_write_compiles_all_the_same(monkeypatch):
    def refuse(**_):
        raise OSError("read-only file system")

    monkeypatch.setattr(compile_pch.tempfile, "mkdtemp", refuse)
    compile_pch._folder.cache_clear()
    assert [compile_pch.options((13, 0), "#include <cuda/ptx>\n") for _ in "ab"] == [(), ()]
    compile_pch._folder.cache_clear()
