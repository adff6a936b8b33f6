"""tma_tile.cu itself: what it promises in text, and its encode-map region as host C++."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lesson import harness, snippets
from lesson.tensor_map_enums import DType, Interleave, L2Promotion, OobFill, Swizzle
from tests import encode_region

SOURCE = snippets.lesson_source()
PASS = "64 x 64 floats, one cp.async.bulk.tensor per tile."


def test_the_shapes_are_those_that_the_lesson_speaks_of():
    assert {
        name: SOURCE.constant(name)
        for name in ("kGmemWidth", "kGmemHeight", "kTileWidth", "kTileHeight", "kThreadsPerBlock")
    } == {
        "kGmemWidth": 256, "kGmemHeight": 256, "kTileWidth": 64, "kTileHeight": 64,
        "kThreadsPerBlock": 256,
    }  # fmt: skip


def test_the_licence_comes_first_and_no_line_is_too_long_for_a_page():
    assert SOURCE.lines[0] == "// SPDX-License-Identifier: MIT"
    assert max(map(len, SOURCE.lines)) <= 100
    assert "\t" not in SOURCE.text


def test_one_thread_issues_one_copy():
    assert SOURCE.text.count("ptx::cp_async_bulk_tensor(") == 1
    issue = SOURCE.snippet("issue-tma").text
    guard, _, rest = issue.partition("if (threadIdx.x == 0) {")
    assert "cp_async_bulk_tensor" not in guard
    assert "cp_async_bulk_tensor" in rest.split("} else {")[0]


RULES = {
    "kTileWidth": ("512", "each dimension of the box is at most 256 elements"),
    "kTileHeight": ("512", "each dimension of the box is at most 256 elements"),
    "kGmemWidth": ("258", "the row stride in global memory is a multiple of 16 bytes"),
    "kGmemHeight": ("250", "the grid of tiles covers the matrix exactly"),
    "kThreadsPerBlock": ("200", "the block is whole warps"),
}


@pytest.mark.parametrize("constant", RULES)
def test_a_shape_that_breaks_a_rule_does_not_compile_and_says_which(constant: str):
    from lesson.compile import to_ptx
    from lesson.errors import CompileError
    from tests.test_compile import has_nvrtc

    if has_nvrtc():
        pytest.skip(f"no NVRTC here: {has_nvrtc()}")
    value, rule = RULES[constant]
    line = next(line for line in SOURCE.lines if line.startswith(f"constexpr int {constant} ="))
    broken = re.sub(r"= \d+;", f"= {value};", line)
    kernel = harness.kernel_source(replace={line: broken})
    with pytest.raises(CompileError) as caught:
        to_ptx(kernel.text, name=kernel.name)
    assert rule in str(caught.value)


def test_a_row_of_a_box_must_be_a_multiple_of_16_bytes():
    rules = re.findall(r"static_assert\((.*?),\s*\"(.*?)\"\);", SOURCE.text, re.DOTALL)
    condition = {says.split(": ")[1]: condition for condition, says in rules}
    row = condition["the innermost row of the box is a multiple of 16 bytes"]
    assert row == "kTileWidth * sizeof(float) % 16 == 0"


@pytest.mark.skipif(
    bool(encode_region.missing()), reason=f"cannot compile here: {encode_region.missing()}"
)
def test_the_encode_map_region_is_host_cpp_and_passes_what_the_lesson_says(tmp_path: Path):
    seen = {}

    @encode_region.ENCODE_TYPE
    def stand_in(_, dtype, rank, address, shape, strides, box, element_strides, *modes) -> int:
        seen.update(
            dtype=dtype, rank=rank, address=address, shape=shape[:2], strides=strides[:1],
            box=box[:2], element_strides=element_strides[:2], modes=modes,
        )  # fmt: skip
        return 77

    library = encode_region.build(SOURCE, tmp_path)
    result, map_bytes = encode_region.encode(library, stand_in, 0x7F00_0000_0400)
    assert result == 77
    assert map_bytes == bytes(128)
    assert seen == {
        "dtype": list(DType).index(DType.FLOAT32), "rank": 2, "address": 0x7F00_0000_0400,
        "shape": [256, 256], "strides": [1024], "box": [64, 64], "element_strides": [1, 1],
        "modes": (
            list(Interleave).index(Interleave.NONE), list(Swizzle).index(Swizzle.NONE),
            list(L2Promotion).index(L2Promotion.NONE), list(OobFill).index(OobFill.NONE),
        ),
    }  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess]:
    """The program for all three chips in one call of nvcc, which compiles each on its own."""
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc here")
    program = tmp_path_factory.mktemp("nvcc") / "tma_tile"
    command = ["nvcc", "-std=c++17", "-O3", "-lineinfo", "-Xcompiler", "-Wall,-Wextra"]
    for chip in (90, 100, 120):
        command += ["-gencode", f"arch=compute_{chip},code=sm_{chip}"]
    command += ["-o", str(program), str(snippets.KERNEL_PATH)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    return program, done


@pytest.mark.slow
def test_nvcc_builds_the_program_for_every_chip_without_a_warning(built: tuple):
    done = built[1]
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_the_program_passes_on_a_gpu_with_tma_and_says_why_not_elsewhere(built: tuple):
    done = subprocess.run([built[0]], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 0:
        assert done.stdout.endswith(PASS + "\n")
    else:
        assert re.search(r"tma_tile\.cu:\d+: cuda\w+\(.*\): |compute capability must", done.stderr)
