"""The tensor map as a record: read from arrays, named enumerations, the encode."""

from __future__ import annotations

import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

from lesson.errors import TensorMapError
from lesson.tensor_map import DType, Swizzle, TensorMap, check, encode


class OnDevice:
    """An array that says it lies on a GPU, as CuPy's do."""

    def __init__(self, array: np.ndarray, pointer: int = 0x7F0000000000) -> None:
        strides = None if array.flags.c_contiguous else array.strides
        self.dtype = array.dtype
        self.__cuda_array_interface__ = {
            "shape": array.shape, "strides": strides, "typestr": array.dtype.str,
            "data": (pointer, False), "version": 3,
        }  # fmt: skip


MATRIX = np.zeros((128, 256), np.float32)


@pytest.mark.parametrize("wrap", [lambda a: a, OnDevice])
def test_a_map_of_an_array_has_x_first_and_strides_in_bytes(wrap):
    tmap = TensorMap.from_array(wrap(MATRIX), (64, 32))
    assert (tmap.dims, tmap.strides_bytes, tmap.box) == ((256, 128), (1024,), (64, 32))
    assert (tmap.dtype, tmap.rank, tmap.element_strides) == (DType.FLOAT32, 2, (1, 1))
    assert check(tmap) == []


@pytest.mark.parametrize("wrap", [lambda a: a, OnDevice])
def test_a_view_keeps_its_own_strides(wrap):
    tmap = TensorMap.from_array(wrap(MATRIX[::2, :100]), (64, 32))
    assert (tmap.dims, tmap.strides_bytes) == ((100, 64), (2048,))
    assert check(tmap) == []


def test_a_view_of_a_numpy_array_starts_where_it_lies_in_its_owner():
    assert TensorMap.from_array(MATRIX[3:, 8:], (64, 32)).address == 3 * 1024 + 32
    assert TensorMap.from_array(MATRIX[3:, 8:][1:], (64, 32)).address == 4 * 1024 + 32
    (broken,) = check(TensorMap.from_array(MATRIX[:, 1:], (64, 32)))
    assert broken.name == "global_address_is_aligned"


def test_an_array_on_the_device_starts_at_its_pointer():
    tmap = TensorMap.from_array(OnDevice(MATRIX, 0x7F0000000004), (64, 32))
    assert tmap.address == 0x7F0000000004
    assert [broken.name for broken in check(tmap)] == ["global_address_is_aligned"]


def test_an_address_given_to_check_is_the_one_that_is_judged():
    tmap = TensorMap.from_array(MATRIX, (64, 32))
    assert [broken.name for broken in check(tmap, 8)] == ["global_address_is_aligned"]


def test_a_base_can_be_an_address_with_an_offset():
    tmap = TensorMap("FLOAT32", (64,), (), (4,), base=4096, base_offset_bytes=16)
    assert tmap.address == 4112
    assert check(tmap) == []


@pytest.mark.parametrize(
    "dtype, want",
    [
        ("uint8", "UINT8"), ("int8", "UINT8"), ("bool", "UINT8"), ("int16", "UINT16"),
        ("uint16", "UINT16"), ("int32", "INT32"), ("uint32", "UINT32"), ("int64", "INT64"),
        ("uint64", "UINT64"), ("float16", "FLOAT16"), ("float32", "FLOAT32"),
        ("float64", "FLOAT64"),
    ],
)  # fmt: skip
def test_the_element_type_is_read_from_the_array(dtype, want):
    assert TensorMap.from_array(np.zeros((16, 64), dtype), (16, 4)).dtype.value == want


def test_a_type_that_numpy_lacks_can_be_named():
    bits = np.zeros((16, 64), np.uint16)
    assert TensorMap.from_array(bits, (16, 4), dtype="BFLOAT16").dtype is DType.BFLOAT16


def test_a_named_type_of_another_size_is_refused():
    with pytest.raises(TensorMapError, match=r"dtype must have the array's 4 bytes an element, got "
                       r"FLOAT16 \(2 bytes\)\. View the array"):  # fmt: skip
        TensorMap.from_array(MATRIX, (64, 32), dtype="FLOAT16")


@pytest.mark.parametrize("array", [MATRIX.T, MATRIX[:, ::2], MATRIX[:, ::-1]])
def test_an_array_whose_rows_have_gaps_is_refused(array):
    with pytest.raises(TensorMapError, match="the innermost stride of the array must be its "
                       r"itemsize, 4 bytes, got -?\d+\. A tensor map has no stride"):  # fmt: skip
        TensorMap.from_array(array, (64, 32))


def test_a_column_of_one_element_has_no_innermost_stride_to_break():
    assert check(TensorMap.from_array(MATRIX[:, :1], (4, 32))) == []


def test_rows_that_run_backwards_are_a_broken_rule():
    (broken,) = check(TensorMap.from_array(MATRIX[::-1], (64, 32)))
    assert broken.name == "global_strides_are_below_2_to_the_40"


@pytest.mark.parametrize("value, got", [([1, 2], "list"), ("text", "str"), (None, "NoneType")])
def test_what_is_no_array_is_refused(value, got):
    with pytest.raises(TensorMapError, match=f"array must be a numpy or CuPy array, got {got}"):
        TensorMap.from_array(value, (4,))


def test_an_element_type_that_no_map_has_is_refused():
    with pytest.raises(
        TensorMapError, match="dtype must be one that a tensor map has, got complex"
    ):
        TensorMap.from_array(np.zeros((4, 4), np.complex64), (4, 4))


def test_enumerations_are_taken_by_the_driver_s_names_too():
    tmap = TensorMap("CU_TENSOR_MAP_DATA_TYPE_FLOAT32", (64,), (), (4,),
                     swizzle="CU_TENSOR_MAP_SWIZZLE_32B")  # fmt: skip
    assert (tmap.dtype, tmap.swizzle) == (DType.FLOAT32, Swizzle.SWIZZLE_32B)


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(TensorMapError, match=r"interleave must be one of NONE, 16B, 32B, got '8B'"):
        TensorMap("FLOAT32", (64,), (), (4,), interleave="8B")
    with pytest.raises(TensorMapError, match="swizzle must be one of NONE, 32B, 64B, 128B,"):
        TensorMap("FLOAT32", (64,), (), (4,), swizzle="CU_TENSOR_MAP_INTERLEAVE_32B")


def test_maps_of_equal_parameters_are_one_key_whatever_their_arrays():
    first, second = (TensorMap.from_array(np.zeros((8, 64), np.float32), (64, 8)) for _ in "ab")
    assert first == second
    assert hash(first) == hash(second)
    assert len({first, second, TensorMap.from_array(MATRIX, (64, 8))}) == 2


def test_a_map_that_went_to_another_process_is_still_the_same_key():
    tmap = TensorMap("FLOAT32", (64,), (), (4,))
    script = (
        "import pickle, sys; from lesson.tensor_map import TensorMap;"
        "came = pickle.load(sys.stdin.buffer);"
        "print(came in {TensorMap('FLOAT32', (64,), (), (4,))})"
    )
    assert hash(tmap) == hash(tmap)
    done = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(tmap), stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.strip() == b"True"


def test_the_swizzle_span_is_the_number_in_the_name():
    assert [s.span_nbytes for s in Swizzle] == [0, 32, 64, 128, 128, 128, 128]


class FakeDriver(types.SimpleNamespace):
    """Enough of cuda.bindings.driver to encode: accepts at the third address, or never."""

    def __init__(self, refuse_first: int) -> None:
        super().__init__()
        self.calls: list[tuple] = []
        self.refuse_first = refuse_first
        self.cuuint64_t = self.cuuint32_t = int
        for name in ("DataType", "Interleave", "Swizzle", "L2promotion", "FloatOOBfill"):
            setattr(self, f"CUtensorMap{name}", Names())

    def CUtensorMap(self) -> object:  # noqa: N802
        return object()

    def cuTensorMapEncodeTiled(self, *arguments) -> tuple:  # noqa: N802
        self.calls.append(arguments)
        if len(self.calls) <= self.refuse_first:
            return types.SimpleNamespace(name="CUDA_ERROR_INVALID_VALUE"), None
        return types.SimpleNamespace(name="CUDA_SUCCESS"), types.SimpleNamespace(opaque=range(16))


class Names:
    def __getattr__(self, name: str) -> str:
        return name


@pytest.fixture
def driver(monkeypatch):
    def install(refuse_first: int = 0) -> FakeDriver:
        fake = FakeDriver(refuse_first)
        bindings = types.ModuleType("cuda.bindings")
        bindings.driver = fake
        monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
        monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
        return fake

    return install


def test_the_driver_is_told_what_the_map_says(driver):
    fake = driver()
    words = encode(TensorMap.from_array(OnDevice(MATRIX), (32, 64), swizzle="128B"))
    assert words.dtype == np.uint64
    assert words.tolist() == list(range(16))
    assert fake.calls == [
        (
            "CU_TENSOR_MAP_DATA_TYPE_FLOAT32", 2, 0x7F0000000000, [256, 128], [1024], [32, 64],
            [1, 1], "CU_TENSOR_MAP_INTERLEAVE_NONE", "CU_TENSOR_MAP_SWIZZLE_128B",
            "CU_TENSOR_MAP_L2_PROMOTION_NONE", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
        )
    ]  # fmt: skip


def test_a_map_of_rank_1_is_given_one_stride_that_nobody_reads(driver):
    fake = driver()
    encode(TensorMap.from_array(OnDevice(np.zeros(64, np.float32)), (64,)))
    assert fake.calls[0][3:5] == ([64], [16])


def test_a_legal_map_that_is_refused_is_tried_again_elsewhere(driver):
    fake = driver(refuse_first=2)
    encode(TensorMap.from_array(OnDevice(MATRIX), (64, 32)))
    assert len(fake.calls) == 3


def test_a_refusal_that_no_rule_explains_says_so(driver):
    driver(refuse_first=99)
    with pytest.raises(TensorMapError, match="got CUDA_ERROR_INVALID_VALUE though no known rule"):
        encode(TensorMap.from_array(OnDevice(MATRIX), (64, 32)))


def test_a_refusal_of_the_driver_lists_the_broken_rules(driver):
    fake = driver(refuse_first=99)
    with pytest.raises(TensorMapError, match="box_dim\\[0\\] must be 1 to 256, got 512"):
        encode(TensorMap.from_array(OnDevice(MATRIX), (512, 8)))
    assert len(fake.calls) == 1


@pytest.mark.parametrize(
    "changes",
    [dict(box=(64, 64.5)), dict(box=(64,)), dict(dims=(-1, 4)), dict(given_rank=6),
     dict(box=(64, 2**32))],
)  # fmt: skip
def test_what_is_no_number_of_the_driver_s_never_reaches_it(driver, changes):
    fake = driver()
    legal = dict(dtype="FLOAT32", dims=(256, 256), strides_bytes=(1024,), box=(64, 64))
    with pytest.raises(TensorMapError):
        encode(TensorMap(**legal | changes))
    assert fake.calls == []


def test_an_interleaved_array_has_a_dimension_more_than_its_map():
    images = np.zeros((2, 3, 5, 7, 8), np.float16)
    tmap = TensorMap.from_array(images, (8, 4, 1, 2), interleave="16B")
    assert tmap.dims == (7, 5, 3, 2)
    assert tmap.strides_bytes == (7 * 16, 5 * 7 * 16, 3 * 5 * 7 * 16)
    assert check(tmap) == []
    window = TensorMap.from_array(images[:, :, 1:, 2:], (8, 4, 1, 2), interleave="16B")
    assert (window.dims, window.address) == ((5, 4, 3, 2), 7 * 16 + 2 * 16)


@pytest.mark.parametrize("shape, interleave", [((2, 3, 5, 8), "32B"), ((2, 3, 5, 9), "16B")])
def test_an_innermost_dimension_that_is_no_slice_has_no_interleaved_map(shape, interleave):
    with pytest.raises(TensorMapError, match=f"under interleave {interleave} must be a slice of"):
        TensorMap.from_array(np.zeros(shape, np.float16), (8, 1, 1), interleave=interleave)


def test_slices_that_do_not_touch_have_no_interleaved_map():
    wide = np.zeros((2, 3, 5, 16), np.float16)
    with pytest.raises(TensorMapError, match="one slice behind the other, got shape"):
        TensorMap.from_array(wide[..., :8], (8, 1, 1), interleave="16B")


@pytest.mark.parametrize("field", ["base_offset_bytes", "given_rank"])
def test_an_offset_or_a_rank_that_is_no_whole_number_is_refused(field: str) -> None:
    with pytest.raises(TensorMapError, match=rf"{field} must be a whole number, got 'x'"):
        TensorMap("FLOAT32", (64,), (), (32,), **{field: "x"})


def test_dimensions_that_are_no_sequence_are_named_by_a_rule() -> None:
    broken = [str(each) for each in check(TensorMap("FLOAT32", 1.5, None, (32,), (1,)))]
    assert broken[0].startswith("global_dim[0] must be a whole number, got 1.5 (float)")
    assert broken[1].startswith("global_strides[0] must be a whole number, got None (NoneType)")
