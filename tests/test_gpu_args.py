"""Kernel arguments as bytes: sizes are the PTX's, memory is shared as the arrays share it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from lesson.errors import LaunchError
from lesson.gpu_args import MapOver, Packed, Parameter, Pointer, Value, pack, parameters
from lesson.tensor_map import TensorMap

PTX = """
.visible .entry none()
{ ret; }
.visible .entry k(
    .param .align 64 .b8 k_param_0[128],
    .param .u64 .ptr .global .align 1 k_param_1, // a pointer
    .param .f32 k_param_2,
    .param .align 4 .b8 k_param_3[12],
    .param .u8 k_param_4
)
.maxntid 256, 1, 1
{ ret; }
.entry bare { ret; }
"""
POINTER = Parameter("u64", 8)
MAP = Parameter("b8", 128)


def pack_one(arg: object, parameter: Parameter) -> object:
    return pack([arg], [parameter], "k").specs[0]


def refusal(arg: object, parameter: Parameter) -> str:
    with pytest.raises(LaunchError) as caught:
        pack_one(arg, parameter)
    return str(caught.value)


def test_parameters_are_read_from_the_ptx():
    assert parameters(PTX, "k") == (
        MAP, POINTER, Parameter("f32", 4), Parameter("b8", 12), Parameter("u8", 1),
    )  # fmt: skip
    assert parameters(PTX, "none") == ()
    assert parameters(PTX, "bare") == ()


def test_an_unknown_kernel_is_answered_with_the_ones_there_are():
    with pytest.raises(LaunchError) as caught:
        parameters(PTX, "k2")
    assert str(caught.value) == (
        "kernel must be one that the PTX holds, got 'k2'. It holds: none, k, bare. "
        'Declare it extern "C" __global__, so that its name stays as written.'
    )


def test_the_number_of_arguments_must_be_right():
    with pytest.raises(LaunchError, match=r"as many as its parameters \(1\), got 2"):
        pack([1, 2], [POINTER], "k")


def test_views_of_one_array_share_its_memory():
    owner = np.arange(12, dtype=np.float32).reshape(3, 4)
    other = np.zeros(3, np.int16)
    packed = pack([owner[1:, 2:], other, owner], [POINTER] * 3, "k")
    assert packed.specs == [Pointer(0, 24), Pointer(1, 0), Pointer(0, 0)]
    assert [buffer.nbytes for buffer in packed.buffers] == [48, 6]
    packed.buffers[0][:4] = np.float32(7).tobytes() and np.frombuffer(np.float32(7), np.uint8)
    assert owner[0, 0] == 7


def test_column_major_and_empty_and_scalar_arrays_have_memory_too():
    for array in (np.asfortranarray(np.ones((2, 3))), np.zeros((0, 4)), np.array(5)):
        packed = pack([array], [POINTER], "k")
        assert packed.buffers[0].nbytes == array.nbytes
        assert packed.buffers[0].base is not None


def test_a_tensor_map_is_packed_over_the_array_it_maps():
    array = np.zeros((64, 64), np.float32)
    tmap = TensorMap.from_array(array[8:], (16, 16))
    spec = pack_one(tmap, MAP)
    assert isinstance(spec, MapOver)
    assert (spec.buffer, spec.offset_bytes, spec.by_value) == (0, 8 * 256, True)
    assert spec.tmap.base is None
    assert pack_one(tmap, POINTER).by_value is False


def test_a_tensor_map_over_nothing_is_refused():
    tmap = TensorMap("FLOAT32", (64, 64), (256,), (16, 16))
    assert "must be a tensor map over an array, got one whose base is NoneType" in refusal(
        tmap, MAP
    )
    over = TensorMap.from_array(np.zeros((64, 64), np.float32), (16, 16))
    assert "must be 4 bytes, got a tensor map" in refusal(over, Parameter("u32", 4))


@pytest.mark.parametrize(
    "arg, parameter, data",
    [
        (1.5, Parameter("f32", 4), np.float32(1.5).tobytes()),
        (1.5, Parameter("f64", 8), np.float64(1.5).tobytes()),
        (3, Parameter("f32", 4), np.float32(3).tobytes()),
        (1e60, Parameter("f32", 4), np.float32(np.inf).tobytes()),
        (-1, Parameter("u32", 4), b"\xff" * 4),
        (2**64 - 1, Parameter("u64", 8), b"\xff" * 8),
        (True, Parameter("u8", 1), b"\1"),
        (np.int16(-2), Parameter("u16", 2), b"\xfe\xff"),
        (np.float32(1), Parameter("b32", 4), b"\0\0\x80?"),
        (b"abc", Parameter("b8", 3), b"abc"),
        (np.zeros(1, "u4,u8")[0], Parameter("b8", 12), bytes(12)),
    ],
)
def test_a_number_becomes_the_bytes_of_its_parameter(arg: object, parameter: Parameter, data):
    assert pack_one(arg, parameter) == Value(data)


@pytest.mark.parametrize(
    "arg, parameter, says",
    [
        (1.5, Parameter("u32", 4), "an integer (.u32), got 1.5. Pass what the kernel declares."),
        (2**32, Parameter("u32", 4), "a .u32, got 4294967296. Pass"),
        (10**400, Parameter("f32", 4), "a .f32, got an integer of 1329 bits. Pass"),
        (np.int64(1), Parameter("u32", 4), "4 bytes (.u32), got 8 bytes. Pass"),
        (b"ab", Parameter("b8", 3), "3 bytes (.b8), got 2 bytes. Pass"),
        ("text", POINTER, "a numpy array, TensorMap, number or bytes, got str. Convert it first."),
        (np.zeros(2), Parameter("f32", 4), "a number or struct, got an array (a pointer). Pass"),
        (np.array([None]), POINTER, "an array of numbers, got dtype object. Pass"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused(arg: object, parameter: Parameter, says: str):
    assert refusal(arg, parameter).startswith(f"argument 0 of k must be {says}")


def test_an_array_on_the_device_passes_by_its_address():
    class OnDevice:
        __cuda_array_interface__ = {"data": (0x7F0000000200, False), "shape": (4,)}  # noqa: RUF012

    assert pack_one(OnDevice(), POINTER) == Value((0x7F0000000200).to_bytes(8, "little"))


def test_what_was_packed_survives_the_way_to_another_process():
    array = np.arange(4096, dtype=np.float32).reshape(64, 64)
    packed = pack([TensorMap.from_array(array, (16, 16)), array], [MAP, POINTER], "k")
    there: Packed = pickle.loads(pickle.dumps(packed))
    assert there.specs == packed.specs
    assert there.buffers[0].tobytes() == array.tobytes()
