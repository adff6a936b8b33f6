"""Launches on a GPU, as far as a machine without one can tell: checks, child process, faults."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from lesson import gpu, gpu_child, gpu_device
from lesson.compile import Ptx
from lesson.errors import DeviceFault, Hang, IllegalInstruction, LaunchError, TargetError
from lesson.gpu_args import Packed
from lesson.gpu_child import Answer, Request, ask_child
from lesson.gpu_device import Launch, dim3
from lesson.gpu_status import Device, Facts, judge

PTX = Ptx(
    text=".visible .entry k(\n.param .u64 k_param_0\n)\n{ ret; }\n",
    source_name="toy.cu",
    source="",
    kernels=("k",),
    arch="compute_90",
    nvrtc_version=(12, 9),
    headers="",
    log="",
)
LAUNCH = Launch(PTX, "k", (1, 1, 1), (32, 1, 1))
H200 = Device(0, "NVIDIA H200", (9, 0))


def request(time_limit_s: float = 0.1) -> Request:
    return Request(LAUNCH, Packed([np.zeros(4, np.uint8)], []), H200, time_limit_s)


@pytest.mark.parametrize(
    "value, expected",
    [(4, (4, 1, 1)), ((4, 3), (4, 3, 1)), ([2, 3, 4], (2, 3, 4)), (np.int64(7), (7, 1, 1))],
)
def test_dimensions_are_one_to_three_numbers(value: object, expected: tuple[int, int, int]):
    assert dim3(value, "grid") == expected


@pytest.mark.parametrize("value", [0, -1, (), (1, 2, 3, 4), (1, 0), 1.5, ("a",), (1, 70000)])
def test_dimensions_that_cannot_be_are_refused(value: object):
    with pytest.raises(LaunchError, match="grid must be one to three whole numbers from 1 to"):
        dim3(value, "grid")


def test_a_block_has_1024_threads_at_most():
    with pytest.raises(LaunchError, match=r"block must have at most 1024 threads, got \(64, 32\)"):
        dim3((64, 32), "block")


def test_a_launch_is_checked_before_a_gpu_is_looked_for():
    with pytest.raises(LaunchError, match=r"as many as its parameters \(1\), got 0"):
        gpu.launch(PTX, None, 1, 32, [])
    with pytest.raises(LaunchError, match="shared_bytes must be 0 or more, got -1"):
        gpu.launch(PTX, "k", 1, 32, [np.zeros(1)], shared_bytes=-1)
    several = Ptx(PTX.text, "toy.cu", "", ("a", "b"), "compute_90", (12, 9), "", "")
    with pytest.raises(LaunchError, match="got none of a, b"):
        gpu.launch(several, None, 1, 32, [])


@pytest.mark.parametrize("run", [gpu.launch, gpu.run_isolated])
def test_without_a_gpu_a_launch_says_why(run: object, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "status", lambda: judge(Facts(cupy_problem="none")))
    with pytest.raises(TargetError, match="CuPy must be installed"):
        run(PTX, "k", 1, 32, [np.zeros(1)])


@pytest.mark.parametrize(
    "status, name, kind",
    [
        (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "IllegalInstruction"),
        (700, "CUDA_ERROR_ILLEGAL_ADDRESS", "IllegalAddress"),
        (716, "CUDA_ERROR_MISALIGNED_ADDRESS", "MisalignedAddress"),
        (719, "CUDA_ERROR_LAUNCH_FAILED", "LaunchFailure"),
        (710, "CUDA_ERROR_ASSERT", "DeviceFault"),
    ],
)
def test_a_fault_has_cudas_name_and_the_emulators_class(status: int, name: str, kind: str):
    fault = gpu_device._fault(status, "cudaErrorSomething", LAUNCH)
    assert isinstance(fault, DeviceFault)
    assert (type(fault).__name__, fault.cuda_error) == (kind, name)
    assert str(fault).startswith(f"kernel 'k' must run without a fault, got {name}.")


def test_a_refused_launch_is_no_fault():
    error = gpu_device._fault(1, "cudaErrorInvalidValue", LAUNCH)
    assert isinstance(error, LaunchError)
    assert "got cudaErrorInvalidValue for grid (1, 1, 1), block (32, 1, 1)" in str(error)


def test_a_kernel_that_does_not_end_is_given_up_after_its_time():
    with pytest.raises(Hang, match=r"kernel 'k' must finish within 0\.05 s, got no end"):
        gpu_device._wait(lambda: False, 0.05, "k")
    gpu_device._wait(lambda: True, 0.0, "k")


def test_structs_and_maps_pass_as_structured_scalars():
    words = gpu_device._structured(bytes(range(128)))
    assert words.dtype["opaque"].shape == (16,)
    assert words.tobytes() == bytes(range(128))
    assert gpu_device._structured(b"abc").tobytes() == b"abc"


def child(code: str) -> tuple[str, ...]:
    """A stand-in for the process that talks to CUDA."""
    start = "import pathlib, pickle, sys, time; from lesson.gpu_child import *; "
    answer = "folder = pathlib.Path(sys.argv[1]); "
    return (sys.executable, "-c", start + answer + code)


def test_the_childs_answer_comes_back():
    code = (
        "request = pickle.loads((folder / 'request.pickle').read_bytes()); "
        "request.packed.buffers[0][:] = 9; "
        "(folder / 'answer.pickle').write_bytes(pickle.dumps(Answer(0.5, request.packed)))"
    )
    answer = ask_child(request(), child(code))
    assert answer.seconds == 0.5
    assert answer.packed.buffers[0].tolist() == [9] * 4


def test_a_fault_in_the_child_comes_back_as_itself():
    code = (
        "from lesson import gpu_device; fault = gpu_device._fault(715, '', pickle.loads("
        "(folder / 'request.pickle').read_bytes()).launch); "
        "(folder / 'answer.pickle').write_bytes(pickle.dumps(Answer(0.0, error=fault)))"
    )
    error = ask_child(request(), child(code)).error
    assert isinstance(error, IllegalInstruction)
    assert error.cuda_error == "CUDA_ERROR_ILLEGAL_INSTRUCTION"


def test_a_child_that_never_answers_is_ended_and_called_a_hang():
    with pytest.raises(Hang, match="got no answer from its process, which was ended"):
        ask_child(request(), child("time.sleep(60)"), start_up_limit_s=0.3)


def test_a_child_that_dies_is_no_hang_and_its_last_words_are_quoted():
    with pytest.raises(TargetError) as caught:
        ask_child(request(), child("sys.exit('the driver is gone')"))
    assert str(caught.value) == (
        "the process that runs 'k' must leave an answer, got exit status 1 and: the driver is "
        "gone. Run the kernel in the emulator."
    )


def test_the_child_answers_with_errors_that_the_lesson_explains(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> float:
        raise LaunchError("the launch must be possible, got none. Think.")

    monkeypatch.setattr(gpu_device, "run", refuse)
    (tmp_path / "request.pickle").write_bytes(pickle.dumps(request()))
    gpu_child.serve(str(tmp_path))
    answer: Answer = pickle.loads((tmp_path / "answer.pickle").read_bytes())
    assert isinstance(answer.error, LaunchError)
    assert answer.packed is None


def test_an_isolated_run_changes_the_callers_arrays(monkeypatch: pytest.MonkeyPatch):
    def answer(request: Request) -> Answer:
        copy = pickle.loads(pickle.dumps(request.packed))
        copy.buffers[0][:] = 1
        return Answer(0.25, copy)

    monkeypatch.setattr(gpu, "ask_child", answer)
    monkeypatch.setattr(gpu, "require", lambda: H200)
    array = np.zeros(4, np.uint8)
    done = gpu.run_isolated(PTX, "k", 1, 32, [array[2:]])
    assert array.tolist() == [1] * 4
    assert (done.seconds, done.device_name) == (0.25, "NVIDIA H200")


def test_a_failed_isolated_run_leaves_the_arrays_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "ask_child", lambda request: Answer(0.0, error=Hang("it hangs.")))
    monkeypatch.setattr(gpu, "require", lambda: H200)
    array = np.zeros(4, np.uint8)
    with pytest.raises(Hang, match="it hangs"):
        gpu.run_isolated(PTX, "k", 1, 32, [array])
    assert array.tolist() == [0] * 4
