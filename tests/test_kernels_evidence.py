"""The evidence is of the very source that is shipped, and says what is claimed of it."""

from __future__ import annotations

import pytest

from lesson import harness, recorded, snippets
from tests import kernels_readme, record_nvrtc_versions
from tests.record_ptx import SHIPPED

NVRTC = kernels_readme.load(record_nvrtc_versions.RECORD)
GPU_HINT = "edited since: run `python -m tests.gpu.record_evidence` on a Hopper GPU"
NVRTC_HINT = "edited since: run `python -m tests.record_nvrtc_versions`"


@pytest.fixture(scope="module")
def gpu() -> kernels_readme.Record:
    """What a GPU said; without it there is nothing to claim."""
    if not kernels_readme.GPU_RECORD.is_file():
        pytest.fail("no GPU record: run `python -m tests.gpu.record_evidence` on a Hopper GPU")
    return kernels_readme.load(kernels_readme.GPU_RECORD)


def test_the_nvrtc_record_is_of_the_source_that_is_shipped():
    assert NVRTC["source_sha256"] == snippets.lesson_source().sha256, NVRTC_HINT
    for name, (_, kernel) in SHIPPED.items():
        assert NVRTC["kernels"][name] == recorded.sha256(kernel.text), NVRTC_HINT


@pytest.mark.parametrize("version", record_nvrtc_versions.WHEELS)
def test_the_device_half_compiles_without_a_warning_with_the_wheels_of(version: str):
    compiles = NVRTC["versions"][version]["compiles"]
    archs = ["compute_90"] if version == "12.6" else list(record_nvrtc_versions.ARCHITECTURES)
    assert [each["arch"] for each in compiles] == [arch for arch in archs for _ in SHIPPED]
    for each in compiles:
        assert (each["outcome"], each["log"], each["nvrtc"]) == ("ok", "", version)
        assert f"({version})" in each["headers"]


def test_the_gpu_record_is_of_the_source_that_is_shipped(gpu: dict):
    assert gpu["source_sha256"] == snippets.lesson_source().sha256, GPU_HINT
    assert gpu["recording_sha256"] == recorded.sha256(harness.recording_source().text), GPU_HINT


def test_the_program_built_for_every_chip_without_a_word_and_passed(gpu: dict):
    assert list(gpu["builds"]) == ["sm_90", "sm_100", "sm_120"]
    for done in gpu["builds"].values():
        assert (done["exit_status"], done["stdout"], done["stderr"]) == (0, "", "")
    machine, program = gpu["machine"], gpu["program"]
    assert (program["exit_status"], program["stderr"]) == (0, "")
    assert program["stdout"] == (
        f"GPU: {machine['gpu']} (compute capability {machine['compute_capability']})\n"
        "round trip: PASS. 65536 elements, 16 tiles of 64 x 64 floats, "
        "one cp.async.bulk.tensor per tile.\n"
    )


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck", "initcheck"])
def test_compute_sanitizer_reports_nothing(gpu: dict, tool: str):
    found = gpu["sanitizer"][tool]
    assert (found["exit_status"], found["program_passed"], found["output"]) == (0, True, "")


def test_the_machine_code_holds_one_tma_load(gpu: dict):
    (load,) = gpu["sass"]["tma_loads"]
    assert load.startswith("UTMALDG.2D")


def test_cpp_and_python_encoded_the_same_128_bytes(gpu: dict):
    found = gpu["tensor_map"]
    assert found["cpp_result"] == 0
    assert found["cpp"] == found["python"]
    assert len(found["cpp"]) == 256


def test_through_cupy_every_claim_held(gpu: dict):
    assert set(gpu["python"].values()) == {True}


def test_a_broken_kernel_cost_only_its_own_process(gpu: dict):
    assert gpu["hang"]["outcome"].startswith("Hang: ")
    assert gpu["illegal_instruction"]["outcome"].startswith(
        "IllegalInstruction (CUDA_ERROR_ILLEGAL_INSTRUCTION): "
    )
    assert gpu["hang"]["next_launch_exact"]
    assert gpu["illegal_instruction"]["next_launch_exact"]


def test_the_page_says_what_the_evidence_says(gpu: dict):
    expected = kernels_readme.render(gpu, NVRTC)
    hint = "run `python -m tests.kernels_readme`"
    assert kernels_readme.README.read_text(encoding="utf-8") == expected, hint
