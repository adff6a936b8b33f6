"""The tensor-map doctor: what it suspects, why, and that it leaves plain correct maps alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lesson.map_doctor import ACCEPTED, LIKELY_WRONG, NO_MAP, REFUSED, explain
from lesson.tensor_map import TensorMap

MATRIX = np.zeros((128, 256), np.float32)
VIEW = MATRIX[::2, :100]
PLAIN = dict(dtype="FLOAT32", dims=(256, 128), strides_bytes=(1024,), box=(64, 64))

SUSPECTS = [
    ("strides-in-elements", dict(strides_bytes=(256,)), None,
     ("global_strides[0] is 256, a row counted in elements; it counts bytes, and 256 x float32 "
      "are 1024.")),
    ("strides-in-elements", dict(strides_bytes=(256,)), MATRIX, "Multiply by the itemsize: 1024."),
    ("strides-in-elements", dict(dims=(100, 64), strides_bytes=(512,)), VIEW,
     "Multiply by the itemsize: 2048."),
    ("x-y-swapped", dict(dims=(128, 256)), MATRIX,
     ("global_dim is (128, 256), the shape of the array in numpy's order. A map has the innermost "
      "dimension first: 256 columns, then 128 rows. Say (256, 128);")),
    ("dtype-size", dict(dtype="FLOAT16"), MATRIX,
     ("An element of the map is FLOAT16, 2 bytes where the array has 4 (float32): a box of 64 "
      "elements brings 128 bytes a row, not 256.")),
    ("dtype-format", dict(dtype="BFLOAT16", dims=(256, 128), strides_bytes=(512,)),
     np.zeros((128, 256), np.float16), "The map says BFLOAT16, the array holds float16"),
    ("sizes-in-bytes", dict(dims=(1024, 128)), MATRIX,
     ("global_dim[0] is 1024, the row of the array in bytes; it counts elements, and a row has "
      "256.")),
    ("view-stride", dict(dims=(100, 64), strides_bytes=(400,)), VIEW,
     ("global_strides[0] is 400, as if the array had no gaps; it is a view, and its own stride "
      "there is 2048 bytes.")),
    ("other-strides", dict(strides_bytes=(1040,)), MATRIX,
     "global_strides[0] is 1040, the array's own stride there is 1024 bytes. Say 1024."),
    ("innermost-gaps", dict(dims=(128, 128)), MATRIX[:, ::2],
     "Neighbours in a row of the array lie 8 bytes apart"),
    ("rows-overlap", dict(strides_bytes=(512,)), None,
     "global_strides[0] is 512 bytes, and a row of 256 x float32 takes 1024"),
    ("box-beyond-tensor", dict(dims=(16, 128), strides_bytes=(64,)), None,
     "box_dim[0] is 64, the tensor has 16: part of every box lies outside."),
    ("box-beyond-tensor", dict(dims=(256, 20)), None, "Lower box_dim[1] to 20"),
    ("step-ignored", dict(element_strides=(2, 1)), None,
     "element_strides[0] is 2, and a copy ignores it without interleave"),
    ("span-not-filled", dict(box=(8, 64), swizzle="128B"), None,
     ("A box row has 32 bytes under swizzle 128B: in shared memory rows lie 128 bytes apart all "
      "the same")),
    ("other-start", dict(base=MATRIX, base_offset_bytes=1024), MATRIX,
     "The map starts 1024 bytes behind the first element of the array."),
    ("other-start", dict(base=MATRIX, dims=(100, 64), strides_bytes=(2048,)), MATRIX[::2, 8:108],
     "The map starts 32 bytes in front of the first element of the array."),
    ("beyond-array", dict(dims=(256, 200)), MATRIX,
     "The map's last element ends at byte 204800, the array at byte 131072"),
]  # fmt: skip


@pytest.mark.parametrize("kind, changes, array, says", SUSPECTS)
def test_a_legal_map_that_is_likely_wrong_is_suspected_for_its_reason(kind, changes, array, says):
    found = explain(TensorMap(**PLAIN | changes), array)
    assert found.accepted
    assert [suspicion.kind for suspicion in found.suspicions] == [kind]
    assert says in str(found.suspicions[0])
    assert str(found).startswith(f"{ACCEPTED}\n{LIKELY_WRONG}\n  ")


@pytest.mark.parametrize("array", [None, MATRIX])
def test_the_plain_map_is_not_suspected(array):
    assert str(explain(TensorMap(**PLAIN), array)) == ACCEPTED


def test_the_base_is_the_array_that_is_meant_unless_another_is_given():
    swapped = TensorMap(**PLAIN | dict(dims=(128, 256), base=MATRIX))
    assert [s.kind for s in explain(swapped).suspicions] == ["x-y-swapped"]
    other = explain(swapped, np.zeros((256, 256), np.float32)[:, :128])
    assert [s.kind for s in other.suspicions] == ["other-array"]


def test_a_refused_map_lists_every_rule_and_what_is_suspected_besides():
    tmap = TensorMap(**PLAIN | dict(box=(5, 300), element_strides=(2, 1)))
    assert str(explain(tmap)).split("\n") == [
        REFUSED,
        "  box_dim[1] must be 1 to 256, got 300. Take 256, and issue 2 copies.",
        (
            "  box_dim[0] * itemsize must be a multiple of 16 bytes, got 20 (5 x float32). Widen "
            "the box to 8 elements."
        ),
        LIKELY_WRONG,
        (
            "  box_dim[1] is 300, the tensor has 128: part of every box lies outside. It is filled "
            "and its bytes are counted all the same. Lower box_dim[1] to 128, if no larger tile "
            "was meant."
        ),
        (
            "  element_strides[0] is 2, and a copy ignores it without interleave: it moves all 5 "
            "elements of a row and counts their bytes. Say 1, and pick the elements out of shared "
            "memory."
        ),
    ]


def test_an_array_is_explained_without_a_map():
    assert str(explain(MATRIX, box=(64, 64))) == ACCEPTED
    assert str(explain(VIEW, box=(64, 64))) == ACCEPTED
    assert str(explain(MATRIX)) == ACCEPTED
    assert "got 0x4 (4 bytes past one)" in str(explain(MATRIX[:, 1:]))
    assert "under swizzle 128B, got 256" in str(explain(MATRIX, box=(64, 64), swizzle="128B"))


def test_an_array_that_no_map_can_describe_is_told_so():
    found = explain(MATRIX[:, ::2])
    assert not found.accepted
    assert str(found).startswith(f"{NO_MAP}\n  the innermost stride of the array must be")
    assert "map its transpose, array.T" in str(explain(np.asfortranarray(MATRIX)))


def test_a_column_major_array_under_its_own_map_is_not_suspected():
    column_major = np.zeros((256, 128), np.float32, order="F")
    tmap = TensorMap(**PLAIN | dict(dims=(256, 128)))
    assert explain(tmap, column_major).suspicions == ()


@pytest.mark.parametrize(
    "array",
    [
        np.broadcast_to(np.zeros(256, np.float32), (64, 256)),
        np.lib.stride_tricks.sliding_window_view(np.zeros(1024, np.float32), 256)[::4],
        np.zeros((128, 264), np.float32)[:, :256],
        np.zeros((2, 3, 4, 5, 8), np.float64),
        np.zeros((3, 1), np.uint64),
        np.zeros(1000, np.uint8),
    ],
)
def test_an_unusual_array_under_its_own_map_is_not_suspected(array):
    assert explain(TensorMap.from_array(array, tuple(explain_box(array)))).suspicions == ()


def explain_box(array: np.ndarray) -> list[int]:
    unit = max(1, 16 // array.itemsize)
    return [max(unit, min(array.shape[-1], 64) // unit * unit), *(1 for _ in array.shape[1:])]


@pytest.mark.parametrize(
    "changes", [dict(dims=(0, 8)), dict(box=(4.0, 4)), dict(given_rank=7), dict(box=(4,))]
)
def test_a_map_that_is_hardly_one_is_refused_without_suspicion(changes):
    found = explain(TensorMap(**PLAIN | changes), MATRIX)
    assert found.broken
    assert found.suspicions == ()


@st.composite
def arrays_with_boxes(draw: st.DrawFn) -> tuple[np.ndarray, tuple[int, ...], str]:
    """A whole array or a view of one, and a box inside it that fills its swizzle span."""
    dtype = np.dtype(draw(st.sampled_from(["u1", "u2", "i4", "f2", "f4", "f8"])))
    unit = 16 // dtype.itemsize
    shape = [draw(st.integers(1, 9)) for _ in range(draw(st.integers(0, 3)))]
    shape.append(unit * draw(st.integers(1, 20)))
    array = np.zeros(shape, dtype)
    if draw(st.booleans()):
        array = array[tuple(slice(0, n, draw(st.integers(1, 3))) for n in shape[:-1])]
        array = array[..., unit * draw(st.integers(0, shape[-1] // unit - 1)) :]
    box = [draw(st.integers(1, n)) for n in array.shape[-2::-1]] if array.ndim > 1 else []
    units = draw(st.integers(1, min(16, array.shape[-1] // unit)))
    swizzle = {2: "32B", 4: "64B", 8: "128B"}.get(units, "NONE")
    return array, (min(units * unit, 256), *box), swizzle


@settings(max_examples=300, deadline=None)
@given(arrays_with_boxes())
def test_a_map_of_an_array_with_a_box_inside_it_is_never_suspected(case):
    array, box, swizzle = case
    found = explain(TensorMap.from_array(array, box, swizzle=swizzle))
    assert found.accepted
    assert found.suspicions == ()


@settings(max_examples=200, deadline=None)
@given(data=st.data(), array=st.sampled_from([None, MATRIX, VIEW]))
def test_the_doctor_answers_for_any_map_at_all(data, array):
    numbers = st.lists(st.one_of(st.integers(-3, 300), st.integers(), st.floats()), max_size=6)
    tmap = TensorMap(
        data.draw(st.sampled_from(["UINT8", "FLOAT32", "16U4_ALIGN8B"])),
        *(data.draw(numbers) for _ in range(4)),
    )
    assert str(explain(tmap, array)).startswith((ACCEPTED, REFUSED))


def test_an_interleaved_map_of_its_own_array_raises_no_suspicion():
    images = np.zeros((2, 3, 5, 8, 8), np.float16)
    for box in ((8, 4, 1, 2), None):
        found = explain(images, box=box, interleave="16B")
        assert found.accepted
        assert found.suspicions == ()


def test_a_box_of_several_slices_is_suspected_for_it_moves_one():
    images = np.zeros((2, 3, 5, 8, 8), np.float16)
    (suspicion,) = explain(images, box=(8, 4, 9, 2), interleave="16B").suspicions
    assert suspicion.kind == "slices-ignored"
    assert "box_dim[2] is 9, and under interleave a copy moves one slice" in str(suspicion)


def test_a_box_of_more_slices_of_a_row_than_there_are_is_suspected():
    images = np.zeros((2, 3, 5, 7, 8), np.float16)
    (suspicion,) = explain(images, box=(8, 4, 1, 2), interleave="16B").suspicions
    assert "box_dim[0] is 8, the tensor has 7" in str(suspicion)
    stepped = dict(interleave="16B", element_strides=(2, 1, 1, 1))
    assert explain(images, box=(8, 4, 1, 2), **stepped).suspicions == ()
