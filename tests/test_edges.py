"""The engine's rules at the edges, as an H200 answered them."""

import numpy as np
import pytest

from lesson import edges, gpu
from lesson.errors import IllegalInstruction
from lesson.targets import Name


def test_a_box_over_the_right_edge_arrives_with_zeros_outside():
    outcome = edges.load(8, 0, None, Name.EMULATOR)
    assert outcome.says == "load at x 8, y 0, waiting for 256 bytes:\n    done"
    np.testing.assert_array_equal(outcome.values[:, :5], edges.new_matrix()[:, 8:13])
    np.testing.assert_array_equal(outcome.values[:, 5:], 0)


def test_a_load_may_start_at_row_minus_one():
    outcome = edges.load(0, -1, None, Name.EMULATOR)
    np.testing.assert_array_equal(outcome.values[0], 0)
    np.testing.assert_array_equal(outcome.values[1:], edges.new_matrix()[:7, :8])


def test_a_start_off_the_16_bytes_is_an_illegal_instruction():
    outcome = edges.load(1, 0, None, Name.EMULATOR)
    assert outcome.says.endswith("illegal instruction")
    assert outcome.values is None


def test_waiting_for_the_inner_bytes_of_a_box_over_the_edge_hangs():
    assert edges.load(8, 0, 160, Name.EMULATOR).says == (
        "load at x 8, y 0, waiting for 160 bytes:\n    hang"
    )


def test_a_store_may_not_start_at_row_minus_one():
    outcome = edges.store(0, -1, Name.EMULATOR)
    assert outcome.says == "store at x 0, y -1:\n    illegal instruction"
    assert outcome.values is None


def test_a_store_clips_at_16_bytes_and_not_at_the_last_column():
    after = edges.store(8, 0, Name.EMULATOR).values
    np.testing.assert_array_equal(after[:, 8:], edges.STORED)
    np.testing.assert_array_equal(after[:, :8], edges.new_matrix()[:, :8])


@pytest.fixture
def isolated(monkeypatch):
    """Stands in for the child process on a GPU: fills the output, or raises."""
    calls = []

    def run(ptx, kernel, grid, block, args, **more):
        calls.append(kernel)
        if int(args[1]) == 1:
            raise IllegalInstruction("an illegal instruction")
        args[-1][...] = 7
        return gpu.GpuRun(0.0, "pretended")

    monkeypatch.setattr(gpu, "run_isolated", run)
    return calls


def test_on_a_gpu_its_own_answer_is_shown(isolated):
    assert edges.load(8, 0, None, Name.GPU).values[0, 0] == 7
    assert edges.load(1, 0, None, Name.GPU).says.endswith("illegal instruction")
    assert isolated == ["loadBox", "loadBox"]


def test_what_hangs_in_the_emulator_never_reaches_the_gpu(isolated):
    assert edges.load(8, 0, 160, Name.GPU).says.endswith("hang")
    assert isolated == []
