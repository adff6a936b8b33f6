"""Which target runs, and what a run says of itself."""

import numpy as np
import pytest

from lesson import gpu, targets
from lesson.check import SCHEDULES, check
from lesson.errors import DeviceFault, Hang, TargetError
from lesson.gpu_status import Device, Facts, GpuStatus
from lesson.kernel_source import TileKernel
from lesson.targets import Name, Run

H200 = Device(0, "NVIDIA H200", (9, 0))
READY = GpuStatus(True, "ok", "NVIDIA H200 runs TMA code.", Facts(), H200)
T4 = GpuStatus(False, "old-device", "the GPU must be newer, got Tesla T4.", Facts())


@pytest.fixture
def machine(monkeypatch):
    """Puts a GPU status, and a value of LESSON_TARGET, in place of this machine's."""

    def pretend(status: GpuStatus, variable: str | None) -> None:
        monkeypatch.setattr(gpu, "status", lambda: status)
        if variable is None:
            monkeypatch.delenv(targets.VARIABLE, raising=False)
        else:
            monkeypatch.setenv(targets.VARIABLE, variable)

    return pretend


@pytest.mark.parametrize("variable", [None, "", "auto", " AUTO "])
def test_a_gpu_that_will_do_is_taken_unless_told_otherwise(machine, variable):
    machine(READY, variable)
    assert targets.choose() == targets.Target(Name.GPU, "NVIDIA H200 (compute capability 9.0)")


def test_without_a_fitting_gpu_the_emulator_runs_and_says_why(machine):
    machine(T4, None)
    assert targets.choose() == targets.Target(Name.EMULATOR, "the GPU must be newer, got Tesla T4.")


def test_the_variable_can_ask_for_the_emulator_where_there_is_a_gpu(machine):
    machine(READY, "emulator")
    assert targets.choose() == targets.Target(Name.EMULATOR, "LESSON_TARGET=emulator asks for it.")


def test_asking_for_a_gpu_where_there_is_none_says_what_is_missing(machine):
    machine(T4, "gpu")
    with pytest.raises(TargetError, match=r"LESSON_TARGET=gpu must .*got Tesla T4\. Mend that"):
        targets.choose()


def test_another_value_of_the_variable_is_refused_with_the_ones_there_are(machine):
    machine(READY, "cpu")
    with pytest.raises(TargetError, match="must be gpu, emulator or auto, got 'cpu'"):
        targets.choose()


def made(output: np.ndarray) -> Run:
    return Run(Name.EMULATOR, (4, 4), targets.new_matrix(), output, 0.0)


def test_a_right_output_passes_in_the_words_of_the_standalone_program():
    run = made(targets.new_matrix() + 1)
    assert run.verdict == (
        "round trip: PASS. 65536 elements, 16 tiles of 64 x 64 floats,"
        " one cp.async.bulk.tensor per tile."
    )
    assert run.wrong_elements == 0


def test_one_wrong_bit_fails_and_the_first_difference_is_named():
    output = targets.new_matrix() + 1
    output[70, 130] = np.nextafter(output[70, 130], np.float32(0))
    run = made(output)
    assert run.verdict == (
        "round trip: FAIL. First difference at index 18050 (row 70, column 130):"
        " got 18050.998, want 18051."
    )
    assert run.wrong_elements == 1
    assert not run.tile_is_right(2, 1)
    assert run.tile_is_right(1, 2)


def test_minus_zero_is_not_zero():
    assert made(np.where(targets.new_matrix() < 0, 0, -0.0).astype(np.float32)).wrong_elements > 0


def test_the_lessons_kernel_passes_on_the_emulator_under_every_schedule():
    for schedule in ("eager", "late", "random"):
        run = targets.run_tile_kernel(
            TileKernel(), targets.lesson_map(), (4, 4), Name.EMULATOR, schedule=schedule
        )
        assert run.verdict.startswith("round trip: PASS.")
        assert run.writer_block is None


def test_a_recorded_run_knows_every_writer():
    run = targets.run_tile_kernel(
        TileKernel(), targets.lesson_map(), (4, 4), Name.EMULATOR, recording=True
    )
    rows, columns = np.indices((256, 256))
    np.testing.assert_array_equal(run.writer_block, rows // 64 * 4 + columns // 64)
    np.testing.assert_array_equal(run.writer_thread, (rows % 64 * 64 + columns % 64) % 256)
    np.testing.assert_array_equal(run.write_counts, np.ones((256, 256)))
    assert run.verdict.startswith("round trip: PASS.")


def test_a_grid_that_is_too_small_leaves_elements_that_nobody_wrote():
    run = targets.run_tile_kernel(
        TileKernel(), targets.lesson_map(), (4, 3), Name.EMULATOR, recording=True
    )
    assert set(run.writer_block[192:].ravel()) == {-1}
    assert set(run.writer_thread[192:].ravel()) == {-1}
    assert run.write_counts.sum() == 49152
    assert "index 49152 (row 192, column 0): got 0, want 49153." in run.verdict


@pytest.fixture
def launched(monkeypatch):
    """Notes which GPU launches were asked for, and does nothing."""
    calls: list[str] = []

    def note(name: str):
        def launch(*args: object, **kwargs: object) -> gpu.GpuRun:
            calls.append(name)
            return gpu.GpuRun(0.0, "pretended")

        return launch

    monkeypatch.setattr(gpu, "launch", note("launch"))
    monkeypatch.setattr(gpu, "run_isolated", note("run_isolated"))
    return calls


def test_the_shipped_kernel_goes_to_the_gpu_at_once_and_an_edited_one_to_a_child(launched):
    targets.run_tile_kernel(TileKernel(), targets.lesson_map(), (4, 4), Name.GPU)
    edited = TileKernel().edit("plain-store", "1.0f", "2.0f")
    targets.run_tile_kernel(edited, targets.lesson_map(), (4, 4), Name.GPU)
    assert launched == ["launch", "run_isolated"]


def test_another_map_makes_the_shipped_kernel_unproven(launched):
    rounded = targets.lesson_map(dtype="TFLOAT32")
    targets.run_tile_kernel(TileKernel(), rounded, (4, 4), Name.GPU)
    assert launched == ["run_isolated"]
    half = targets.lesson_map(box=(64, 32))
    with pytest.raises(Hang):
        targets.run_tile_kernel(TileKernel(), half, (4, 4), Name.GPU)
    assert launched == ["run_isolated"]


def test_a_kernel_that_would_hang_is_never_launched_on_the_gpu(launched):
    with pytest.raises(Hang):
        targets.run_tile_kernel(HANGS, targets.lesson_map(), (4, 4), Name.GPU)
    assert launched == []


HANGS = TileKernel().edit("issue-tma", "sizeof(tile)", "2 * sizeof(tile)")
FAULTS = TileKernel().edit("plain-store", "out[", "out[(1 << 30) + ")
RACES = TileKernel().edit("kernel", "bar.wait(", "if (threadIdx.x == 0) bar.wait(")


def test_a_kernel_that_would_fault_is_never_launched_on_the_gpu(launched):
    with pytest.raises(DeviceFault):
        targets.run_tile_kernel(FAULTS, targets.lesson_map(), (4, 4), Name.GPU)
    assert launched == []


@pytest.mark.parametrize("kernel", [HANGS, FAULTS], ids=["hang", "fault"])
def test_force_sends_what_would_hang_or_fault_to_a_child_untried(launched, kernel):
    targets.run_tile_kernel(kernel, targets.lesson_map(), (4, 4), Name.GPU, force=True)
    assert launched == ["run_isolated"]


def test_a_race_is_found_by_the_check_and_launched_all_the_same(launched):
    source = RACES.source()
    output = np.zeros_like(targets.new_matrix())
    report = check(
        source.text,
        kernel=source.kernel,
        grid=(4, 4),
        block=256,
        args=[targets.lesson_map(), output],
        schedules=("eager",),
    )
    assert [each.kind for each in report.findings] == ["read-before-wait"]
    targets.run_tile_kernel(RACES, targets.lesson_map(), (4, 4), Name.GPU)
    assert launched == ["run_isolated"]


def test_an_edited_kernel_is_tried_under_every_schedule_of_the_copies(launched, monkeypatch):
    tried = []
    monkeypatch.setattr(targets, "emulate", lambda *args: tried.append(args[4]))
    targets.run_tile_kernel(RACES, targets.lesson_map(), (4, 4), Name.GPU)
    assert tried == list(SCHEDULES)
    assert launched == ["run_isolated"]


def test_a_trial_run_leaves_the_arrays_as_they_are_and_shared_ones_shared():
    matrix = np.arange(32.0, dtype=np.float32).reshape(2, 16)
    view = matrix[:, 4:9]
    first, second, number = targets.copies([matrix, view, 7])
    assert number == 7
    np.testing.assert_array_equal(second, view)
    assert second.strides == view.strides
    first[1, 4] = -1
    assert second[1, 0] == -1
    assert view[1, 0] == 20
