"""One rule of the tensor map, one map that breaks exactly it, and the words for it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lesson.tensor_map import DType, Interleave, L2Promotion, OobFill, Swizzle, TensorMap, check
from lesson.tensor_map_rules import RULES

LEGAL = dict(dtype="FLOAT32", dims=(256, 256), strides_bytes=(1024,), box=(64, 64))
SLICED = dict(
    dtype="FLOAT16", dims=(16, 8, 8), strides_bytes=(32, 256), box=(16, 4, 4), interleave="32B"
)
PACKED = dict(dtype="16U4_ALIGN16B", dims=(256, 8), strides_bytes=(128,), box=(128, 4))

BREAKS = [
    (
        "arguments_are_whole_numbers",
        LEGAL | dict(box=(64.0, 64)),
        (
            "box_dim[0] must be a whole number, got 64.0 (float). Divide with //, or convert it "
            "with int."
        ),
    ),
    (
        "type_is_of_compute_capability_9",
        PACKED,
        (
            "data_type must be a type of whole bytes on compute capability 9.0, got "
            "16U4_ALIGN16B. Copy the packed bytes as UINT8."
        ),
    ),
    (
        "swizzle_is_of_compute_capability_9",
        LEGAL | dict(swizzle="128B_ATOM_64B", box=(32, 8)),
        (
            "swizzle must be NONE, 32B, 64B or 128B on compute capability 9.0, got "
            "128B_ATOM_64B. Use 128B."
        ),
    ),
    (
        "rank_is_1_to_5",
        dict(
            dtype="FLOAT32",
            dims=(64,) * 6,
            strides_bytes=[256 * 64**k for k in range(5)],
            box=(4,) * 6,
        ),
        (
            "tensor_rank must be 1 to 5, got 6. Merge neighbouring dimensions that lie without a "
            "gap, or map one slice."
        ),
    ),
    (
        "rank_is_1_to_5",
        dict(dtype="FLOAT32", dims=(64,), strides_bytes=(), box=(4,), given_rank=0),
        (
            "tensor_rank must be 1 to 5, got 0. A tensor has at least one dimension: reshape(1) a"
            " scalar."
        ),
    ),
    (
        "every_dimension_has_its_entries",
        LEGAL | dict(strides_bytes=(16, 1024)),
        (
            "global_strides must be 1 entry long (tensor_rank - 1), got 2. Leave out the "
            "innermost stride: it is always one element."
        ),
    ),
    (
        "every_dimension_has_its_entries",
        LEGAL | dict(box=(64,)),
        (
            "box_dim must be 2 entries long (tensor_rank), got 1. Give one entry a dimension, "
            "innermost first."
        ),
    ),
    (
        "global_address_fits_57_bits",
        LEGAL | dict(base=1 << 57),
        (
            "global_address must be 0 to 2^57 - 1, got 144115188075855872. Take the pointer of "
            "the array."
        ),
    ),
    (
        "global_address_is_aligned",
        LEGAL | dict(base_offset_bytes=4),
        (
            "global_address must be a multiple of 16 bytes, got 0x4 (4 bytes past one). Start the"
            " tensor on a 16-byte boundary: pad in front of it, or copy the view."
        ),
    ),
    (
        "global_address_is_aligned",
        SLICED | dict(base_offset_bytes=48),
        (
            "global_address must be a multiple of 32 bytes under interleave 32B, got 0x30 (16 "
            "bytes past one). Start the tensor on a 32-byte boundary: pad in front of it, or copy"
            " the view."
        ),
    ),
    (
        "global_dim_is_1_to_2_to_the_32",
        LEGAL | dict(dims=(256, 0)),
        (
            "global_dim[1] must be 1 to 4294967296 (2^32), got 0. A tensor without elements needs"
            " no copy."
        ),
    ),
    (
        "global_dim_is_1_to_2_to_the_32",
        LEGAL | dict(dims=(256, 2**32 + 1)),
        "global_dim[1] must be 1 to 4294967296 (2^32), got 4294967297. Split the dimension.",
    ),
    (
        "packed_row_is_whole",
        PACKED | dict(dims=(130, 8)),
        (
            "global_dim[0] must be a multiple of 128 for 16U4_ALIGN16B, got 130. Pad the row to "
            "256 elements."
        ),
    ),
    (
        "global_strides_are_aligned",
        LEGAL | dict(dims=(257, 256), strides_bytes=(1028,)),
        (
            "global_strides[0] must be a multiple of 16 bytes, got 1028 (257 x float32). Pad each"
            " row to 260 elements (1040 bytes)."
        ),
    ),
    (
        "global_strides_are_aligned",
        LEGAL | dict(dims=(250, 256), strides_bytes=(250,)),
        (
            "global_strides[0] must be a multiple of 16 bytes, got 250 (as many as a row has "
            "elements). Strides count bytes: a row of 250 x float32 needs 1008."
        ),
    ),
    (
        "global_strides_are_aligned",
        SLICED | dict(strides_bytes=(48, 256)),
        (
            "global_strides[0] must be a multiple of 32 bytes under interleave 32B, got 48. Pad "
            "it to 64 bytes."
        ),
    ),
    (
        "global_strides_are_below_2_to_the_40",
        LEGAL | dict(strides_bytes=(2**40,)),
        (
            "global_strides[0] must be 0 to 1099511627775 bytes (below 2^40), got 1099511627776. "
            "Map a part of the tensor, with a base of its own."
        ),
    ),
    (
        "global_strides_are_below_2_to_the_40",
        LEGAL | dict(strides_bytes=(-1024,)),
        (
            "global_strides[0] must be 0 to 1099511627775 bytes (below 2^40), got -1024. A stride"
            " cannot run backwards: copy the array, or map it the right way round."
        ),
    ),
    (
        "box_dim_is_1_to_256",
        LEGAL | dict(box=(512, 8)),
        "box_dim[0] must be 1 to 256, got 512. Take 256, and issue 2 copies.",
    ),
    (
        "box_dim_is_1_to_256",
        LEGAL | dict(box=(64, 0)),
        "box_dim[1] must be 1 to 256, got 0. Take 1 or more.",
    ),
    (
        "box_row_is_whole_units",
        LEGAL | dict(box=(5, 64)),
        (
            "box_dim[0] * itemsize must be a multiple of 16 bytes, got 20 (5 x float32). Widen "
            "the box to 8 elements."
        ),
    ),
    (
        "box_row_is_whole_units",
        LEGAL | dict(box=(255, 64), dtype="UINT8"),
        (
            "box_dim[0] * itemsize must be a multiple of 16 bytes, got 255 (255 x uint8). Widen "
            "the box to 256 elements."
        ),
    ),
    (
        "packed_box_row_is_128",
        PACKED | dict(box=(64, 4)),
        "box_dim[0] must be 128 for 16U4_ALIGN16B, got 64. Take 128.",
    ),
    (
        "element_strides_are_1_to_8",
        LEGAL | dict(element_strides=(1, 9)),
        "element_strides[1] must be 1 to 8, got 9. Take 8, and 1 to skip nothing.",
    ),
    (
        "interleave_needs_three_dimensions",
        LEGAL | dict(interleave="16B"),
        (
            "interleave must be NONE below rank 3, got 16B (rank 2). Use interleave NONE, or map "
            "the tensor as channels in slices: NC/8HWC8."
        ),
    ),
    (
        "box_row_fits_the_swizzle_span",
        LEGAL | dict(swizzle="128B"),
        (
            "box_dim[0] * itemsize must be at most 128 bytes under swizzle 128B, got 256 (64 x "
            "float32). Narrow the box to 32 elements, or use swizzle NONE."
        ),
    ),
    (
        "nan_fill_needs_a_float_type",
        LEGAL | dict(dtype="UINT32", oob_fill="NAN_REQUEST_ZERO_FMA"),
        (
            "oob_fill must be NONE for a type that has no NaN, got NAN_REQUEST_ZERO_FMA (UINT32)."
            " Use oob_fill NONE: outside the tensor a load brings zeros."
        ),
    ),
]


@pytest.mark.parametrize("name, parameters, text", BREAKS)
def test_a_map_that_breaks_one_rule_gets_that_rule_alone(name, parameters, text):
    found = check(TensorMap(**parameters))
    (broken,) = found[parameters["dtype"] == "16U4_ALIGN16B" and parameters != PACKED :]
    assert broken.name == name
    assert str(broken) == text
    assert broken.section.startswith("CUDA Driver API, Tensor Map Object Management")


@pytest.mark.parametrize(
    "parameters, nbytes, shown",
    [
        (dict(box=(256, 256)), 262144, "box_dim[0] * box_dim[1] * itemsize must be at most 233472"),
        (
            dict(box=(256, 256), element_strides=(1, 1), dtype="INT32"),
            262144,
            "bytes, got 262144 (256 x 256 x int32). Lower box_dim[1] to 228, or",
        ),
        (
            dict(
                dims=(8,) * 3,
                strides_bytes=(32, 256),
                box=(256, 229, 9),
                element_strides=(2, 1, 4),
            ),
            234496,
            (
                "box_dim[0] / 2 * box_dim[1] * box_dim[2] / 4 * itemsize must be at most 233472 "
                "bytes, got 234496 (128 x 229 x 2 x float32). Lower box_dim[1] to 228,"
            ),
        ),
    ],
)
def test_a_box_above_228_kib_is_refused_with_a_size_that_fits(parameters, nbytes, shown):
    (broken,) = check(TensorMap(**LEGAL | parameters))
    assert broken.name == "box_fits"
    assert broken.value == nbytes
    assert shown in str(broken)
    k, lower = broken.cure.removeprefix("Lower box_dim[").split(",")[0].split("] to ")
    box = list(parameters["box"])
    box[int(k)] = int(lower)
    assert not check(TensorMap(**LEGAL | parameters | dict(box=box)))
    box[int(k)] += 1
    assert check(TensorMap(**LEGAL | parameters | dict(box=box)))


def test_a_box_shorter_than_its_step_somewhere_is_of_any_size():
    large = dict(dims=(8,) * 3, strides_bytes=(32, 256), box=(256, 256, 3))
    assert check(TensorMap(**LEGAL | large | dict(element_strides=(1, 1, 3))))
    assert not check(TensorMap(**LEGAL | large | dict(element_strides=(1, 1, 4))))


def test_every_rule_has_a_test():
    assert {rule.__name__ for rule in RULES} == {name for name, _, _ in BREAKS} | {"box_fits"}


def test_every_rule_says_what_it_follows():
    for rule in RULES:
        assert rule.__doc__


def test_the_maps_that_are_bent_here_are_legal():
    assert [check(TensorMap(**m)) for m in (LEGAL, SLICED)] == [[], []]


def test_all_broken_rules_are_listed_in_the_driver_s_order():
    tmap = TensorMap(
        dtype="UINT8", dims=(0, 256), strides_bytes=(1028,), box=(300, 4), swizzle="128B",
        element_strides=(9, 1), oob_fill="NAN_REQUEST_ZERO_FMA", base_offset_bytes=2,
    )  # fmt: skip
    assert [broken.name for broken in check(tmap)] == [
        "global_address_is_aligned",
        "global_dim_is_1_to_2_to_the_32",
        "global_strides_are_aligned",
        "box_dim_is_1_to_256",
        "box_row_is_whole_units",
        "element_strides_are_1_to_8",
        "box_row_fits_the_swizzle_span",
        "nan_fill_needs_a_float_type",
    ]


def test_the_nearest_legal_value_makes_the_map_legal():
    assert not check(TensorMap(**LEGAL | dict(box=(8, 64))))
    for changes in (dict(box=(5, 64)), dict(box=(64, 300)), dict(element_strides=(1, 99))):
        (broken,) = check(TensorMap(**LEGAL | changes))
        name = {"box_dim": "box", "element_strides": "element_strides"}[
            broken.argument.split("[")[0]
        ]
        k = int(broken.argument.split("[")[1][0])
        cured = list(changes[name])
        cured[k] = broken.nearest
        assert not check(TensorMap(**LEGAL | {name: cured}))


ANY_NUMBER = st.one_of(
    st.integers(-5, 300), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=2), st.none()
)
ANY_LIST = st.lists(ANY_NUMBER, max_size=7)


@settings(max_examples=400, deadline=None)
@given(
    dtype=st.sampled_from(DType),
    dims=ANY_LIST,
    strides=ANY_LIST,
    box=ANY_LIST,
    steps=ANY_LIST,
    interleave=st.sampled_from(Interleave),
    swizzle=st.sampled_from(Swizzle),
    l2=st.sampled_from(L2Promotion),
    fill=st.sampled_from(OobFill),
    rank=st.one_of(st.none(), st.integers(-2, 9)),
    address=st.one_of(st.none(), st.integers(-(2**66), 2**66)),
)
def test_check_answers_for_any_map_at_all(
    dtype, dims, strides, box, steps, interleave, swizzle, l2, fill, rank, address
):
    tmap = TensorMap(dtype, dims, strides, box, steps, interleave, swizzle, l2, fill, None, 0, rank)
    broken = check(tmap, address)
    assert all(str(rule).endswith(".") and " must be " in str(rule) for rule in broken)
    whole = all(isinstance(n, int) for values in (dims, strides, box, steps) for n in values)
    assert whole or broken
