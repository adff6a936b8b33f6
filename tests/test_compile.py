"""CUDA C++ to PTX on a machine without a GPU: the lines are the source's, the errors are clear."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from lesson import compile as nvrtc
from lesson import compile_nvrtc, cuda_headers, harness
from lesson.compile import to_ptx
from lesson.compile_log import SourceError, places
from lesson.errors import CompileError

KERNEL = """\
extern "C" __global__ void twice(float* out)
{
    out[threadIdx.x] = out[threadIdx.x] * 2.0f;
}
"""


def has_nvrtc() -> str:
    """Why NVRTC cannot compile here; empty where it can."""
    try:
        cuda_headers.choose(nvrtc.nvrtc_version())
    except CompileError as error:
        return str(error)
    return ""


needs_nvrtc = pytest.mark.skipif(bool(has_nvrtc()), reason=f"no NVRTC here: {has_nvrtc()}")


def refusal(source: str, **options: object) -> CompileError:
    with pytest.raises(CompileError) as caught:
        to_ptx(source, **options)
    return caught.value


def lines_of(ptx: str, file: str) -> set[int]:
    """The source lines that `.loc` directives name, of one file."""
    numbers = dict(re.findall(r'\.file\s+(\d+)\s+"([^"]*)"', ptx))
    return {
        int(line) for number, line in re.findall(r"\.loc\s+(\d+)\s+(\d+)", ptx)
        if numbers[number] == file and line != "0"
    }  # fmt: skip


@needs_nvrtc
def test_ptx_knows_its_kernel_its_version_and_its_lines():
    ptx = to_ptx(KERNEL, name="toy.cu")
    assert ptx.kernels == ("twice",)
    assert ptx.nvrtc_version == nvrtc.nvrtc_version()
    assert ".target sm_90" in ptx.text
    assert lines_of(ptx.text, "toy.cu") == {1, 3, 4}
    assert ptx.text.endswith("\n")
    assert "\0" not in ptx.text


@needs_nvrtc
def test_a_notebook_cells_own_name_and_first_line_are_kept():
    ptx = to_ptx(KERNEL, name="cell 7", first_line=41)
    assert lines_of(ptx.text, "cell 7") == {41, 43, 44}


@needs_nvrtc
def test_the_lessons_kernel_compiles_without_a_warning_and_names_no_path_of_this_machine():
    kernel = harness.kernel_source()
    ptx = to_ptx(kernel.text, name=kernel.name)
    assert ptx.log == ""
    assert ptx.text.count("cp.async.bulk.tensor.2d") == 1
    assert re.findall(r'^\s*\.file\s+1 "(.*)"', ptx.text, re.MULTILINE) == ["tma_tile.cu"]
    assert not re.findall(r'^\s*\.file\s+\d+\s+"/', ptx.text, re.MULTILINE)
    tma_line = 1 + kernel.text[: kernel.text.index("ptx::cp_async_bulk_tensor(")].count("\n")
    assert tma_line in lines_of(ptx.text, "tma_tile.cu")


@needs_nvrtc
@pytest.mark.parametrize("arch", ["compute_100", "sm_120", "90a", "90"])
def test_other_architectures_can_be_named_in_several_ways(arch: str):
    number = arch.split("_")[-1]
    ptx = to_ptx(KERNEL, arch=arch)
    assert ptx.arch == f"compute_{number}"
    assert f".target sm_{number}" in ptx.text


@needs_nvrtc
def test_macros_standard_and_debug_reach_the_compiler():
    source = """
    #if !defined(EMPTY) || __cplusplus < 202002L
    #error not passed on
    #endif
    extern "C" __global__ void k(int* out) { *out = NUMBER; }
    """
    ptx = to_ptx(source, macros={"NUMBER": 1234, "EMPTY": None}, std="c++20", debug=True)
    assert "1234" in ptx.text
    assert ".target sm_90, debug" in ptx.text


@needs_nvrtc
def test_an_error_names_the_line_of_the_cell_quotes_it_and_carries_the_log():
    error = refusal(KERNEL.replace("2.0f", "two"), name="cell 7", first_line=41)
    assert error.errors == (
        SourceError(
            "cell 7", 43, 'identifier "two" is undefined',
            "    out[threadIdx.x] = out[threadIdx.x] * two;",
        ),
    )  # fmt: skip
    major, minor = nvrtc.nvrtc_version()
    assert str(error).startswith(
        f"cell 7 must be CUDA C++ that NVRTC {major}.{minor} accepts for compute_90, got 1 error.\n"
        'cell 7, line 43: identifier "two" is undefined\n'
        "    43 | out[threadIdx.x] = out[threadIdx.x] * two;\n"
        "Mend what it names and compile again. NVRTC's log:\n"
    )
    assert 'cell 7(43): error: identifier "two" is undefined' in error.log


@needs_nvrtc
def test_many_errors_are_counted_and_the_first_five_quoted():
    error = refusal("".join(f"__device__ int f{i}() {{ return x{i}; }}\n" for i in range(9)))
    assert "got 9 errors." in str(error)
    assert str(error).count("kernel.cu, line") == 5
    assert [each.line for each in error.errors] == list(range(1, 10))


@needs_nvrtc
def test_a_missing_header_and_an_unknown_architecture_are_answered():
    assert refusal("#include <nowhere.h>\n").errors[0].line == 1
    assert "compute_33" in str(refusal(KERNEL, arch="compute_33"))


@needs_nvrtc
def test_host_headers_and_an_own_tensor_map_type_do_not_stand_in_the_way():
    source = """
    #include <cuda.h>
    #include <cstdint>
    #include <stdint.h>
    #include <stdio.h>
    #include <cassert>
    #include <cuda/barrier>
    extern "C" __global__ void k(const __grid_constant__ CUtensorMap map, std::uint32_t* out)
    {
        assert(out != nullptr);
        uint64_t size = sizeof(map);
        *out = static_cast<uint32_t>(size);
    }
    """
    assert to_ptx(source).kernels == ("k",)
    own = (
        "typedef struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;"
    )
    assert to_ptx(source.replace("#include <cuda.h>", own)).kernels == ("k",)


@needs_nvrtc
def test_the_alignment_of_a_tensor_map_is_that_of_the_cuda_version():
    source = """extern "C" __global__ void k(int* out) { *out = 1000 + alignof(CUtensorMap); }"""
    expected = 1064 if nvrtc.nvrtc_version()[0] == 12 else 1128
    assert str(expected) in to_ptx(source).text


@needs_nvrtc
def test_the_same_text_is_compiled_once():
    assert to_ptx(KERNEL, name="once.cu") is to_ptx(KERNEL, name="once.cu")
    assert to_ptx(KERNEL, name="once.cu") is not to_ptx(KERNEL, name="other.cu")


@needs_nvrtc
def test_an_empty_log_leaves_pythons_shared_bytes_alone():
    shared = b" " * 1
    to_ptx("/* no log */ __global__ void k() {}")
    assert shared == bytes([32])
    assert bytes(1) == bytes([0])


@needs_nvrtc
def test_machine_code_for_a_real_chip_comes_from_the_same_source():
    ptx = to_ptx(KERNEL, macros={"UNUSED": 1})
    assert nvrtc.to_cubin(ptx, "sm_90")[:4] == b"\x7fELF"
    with pytest.raises(CompileError, match="accepts for sm_33"):
        nvrtc.to_cubin(ptx, "sm_33")


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(source=b"int x;"), "source must be text, got bytes"),
        (dict(source="a\0b"), "source must be text, got a NUL character in it"),
        (dict(source="\ud800"), "source must be text that UTF-8 can hold"),
        (dict(name=""), "name must be printable"),
        (dict(name='a"b'), "name must be printable"),
        (dict(name="a\nb"), "name must be printable"),
        (dict(first_line=0), "first_line must be 1 or more, got 0"),
        (dict(arch="hopper"), "arch must be a virtual architecture, got 'hopper'"),
        (dict(arch="90\n"), "arch must be a virtual architecture"),
        (dict(std="c++98"), "std must be one of c++17, c++20, got 'c++98'"),
        (dict(macros={"a b": 1}), "a macro must be an identifier with a value, got 'a b'"),
        (dict(macros={"A": "x\0"}), "a macro must be an identifier with a value, got 'A'"),
    ],
)
def test_options_that_cannot_be_are_refused_before_nvrtc_sees_them(options: dict, says: str):
    source = options.pop("source", KERNEL)
    assert str(refusal(source, **options)).startswith(says)


def test_line_directives_are_followed_as_the_compiler_does():
    text = 'a\n#line 10 "b.cu"\nc\n# 20\nd\n  #  line 30 "e, edited"\nf'
    assert places(text, "a.cu", 5) == {
        ("a.cu", 5): "a",
        ("b.cu", 10): "c",
        ("b.cu", 20): "d",
        ("e, edited", 30): "f",
    }


def fake_modules(monkeypatch: pytest.MonkeyPatch, version: object) -> None:
    """cuda.bindings 13 whose NVRTC answers as `version` does."""
    modules = {
        "cuda.bindings": SimpleNamespace(__version__="13.0.3"),
        "cuda.bindings.nvrtc": SimpleNamespace(
            nvrtcVersion=version, nvrtcResult=SimpleNamespace(NVRTC_SUCCESS="ok")
        ),
    }
    fake = SimpleNamespace(import_module=modules.__getitem__, util=importlib.util)
    monkeypatch.setattr(compile_nvrtc, "importlib", fake)
    monkeypatch.setattr(compile_nvrtc, "_prefer_wheel", lambda major: None)


def test_the_version_is_that_of_the_library_not_that_of_the_bindings(
    monkeypatch: pytest.MonkeyPatch,
):
    fake_modules(monkeypatch, lambda: ("ok", 13, 5))
    assert nvrtc.nvrtc_version() == (13, 5)


def test_bindings_without_the_library_are_told_apart_from_no_bindings(
    monkeypatch: pytest.MonkeyPatch,
):
    def no_library() -> None:
        raise RuntimeError("Failure finding libnvrtc.so: looked here\nand there")

    fake_modules(monkeypatch, no_library)
    with pytest.raises(CompileError) as caught:
        nvrtc.nvrtc_version()
    assert str(caught.value) == (
        "NVRTC must be installed, got: Failure finding libnvrtc.so: looked here. "
        'Install both: pip install "tma-lesson[cu13]" (or [cu12]).'
    )


def test_wheels_of_the_bindings_major_version_are_looked_for(monkeypatch: pytest.MonkeyPatch):
    nvidia = SimpleNamespace(submodule_search_locations=["/site/nvidia"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: nvidia)
    assert compile_nvrtc._wheel_folders(12) == [Path("/site/nvidia/cuda_nvrtc/lib")]
    assert compile_nvrtc._wheel_folders(13) == [Path("/site/nvidia/cu13/lib")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert compile_nvrtc._wheel_folders(13) == []
