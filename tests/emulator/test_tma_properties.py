"""The copy engine against the reference, element by element, over random legal maps."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lesson import reference
from lesson.emulator import tma
from lesson.tensor_map import DType, Interleave, TensorMap, check

TYPES = [t for t in DType if not t.is_packed]
SPANS = {"NONE": 128, "32B": 32, "64B": 64, "128B": 128}
SHARED_NBYTES = 1 << 15


@st.composite
def legal_maps(draw: st.DrawFn) -> TensorMap:
    """A legal map of a small tensor, of any type, rank, layout and step, with a padded pitch."""
    dtype = draw(st.sampled_from(TYPES))
    swizzle = draw(st.sampled_from(list(SPANS)))
    rank = draw(st.integers(1, 5))
    interleave = draw(st.sampled_from(["NONE", "NONE", "16B", "32B"])) if rank > 2 else "NONE"
    align = 32 if interleave == "32B" else 16
    units = draw(st.integers(1, SPANS[swizzle] // 16)) if interleave == "NONE" else 1
    most = {1: 1, 2: 12, 3: 4, 4: 3, 5: 2}[rank]
    box = [units * 16 // dtype.itemsize]
    box += [draw(st.integers(1, most)) for _ in range(rank - 1)]
    steps = [draw(st.sampled_from([1, 1, 1, 2, 3, 8])) for _ in range(rank)]
    dims = [draw(st.integers(1, box[0] + 9))] + [draw(st.integers(1, n + 3)) for n in box[1:]]
    strides, below = [], dims[0] * (dtype.itemsize if interleave == "NONE" else align)
    for size in dims[1:]:
        strides.append(-(-below // align) * align + align * draw(st.integers(0, 2)))
        below = strides[-1] * size
    fill = "NAN_REQUEST_ZERO_FMA" if dtype.is_float and draw(st.booleans()) else "NONE"
    tmap = TensorMap(dtype, dims, strides, box, steps, interleave, swizzle, oob_fill=fill)
    assert check(tmap) == []
    return tmap


@st.composite
def starts(draw: st.DrawFn, tmap: TensorMap, lowest: int | None = None) -> tuple[int, ...]:
    """A legal start in front of, in or behind the tensor."""
    at = [
        draw(st.integers(-b if lowest is None else lowest, d + 2))
        for b, d in zip(tmap.box, tmap.dims, strict=True)
    ]
    unit = 16 // tmap.itemsize if tmap.interleave is Interleave.NONE else 1
    start = (at[0] // unit * unit, *at[1:])
    assert tma.start_fault(tmap, start, lowest == 0) is None
    return start


def tensor_bytes(tmap: TensorMap, seed: int) -> np.ndarray:
    """Random bytes for a tensor and the units behind it, now and then special floats."""
    nbytes = math.prod(tmap.dims[-1:]) * (tmap.strides_bytes[-1] if tmap.rank > 1 else 1)
    size = nbytes * (tmap.itemsize if tmap.rank == 1 else 1) + 16
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 32, size // 4 + 1, np.uint32)
    special = np.array([0x7FC00001, 0xFF800000, 0x1000, 0x3F801000, 0x3F803000], np.uint32)
    words[:: 1 + seed % 7] = rng.choice(special, words[:: 1 + seed % 7].size)
    return words.view(np.uint8)[:size].copy()


@settings(max_examples=150, deadline=None)
@given(data=st.data(), tmap=legal_maps(), seed=st.integers(0, 99), line=st.integers(0, 9))
def test_a_load_brings_what_the_reference_says(data, tmap, seed, line):
    coords = data.draw(starts(tmap))
    gmem = tensor_bytes(tmap, seed)
    offset = 1024 * line
    smem = np.full(SHARED_NBYTES, 0xA5, np.uint8)
    counted = tma.load(tmap, coords, gmem, 0, smem, offset, offset)
    want = np.full(SHARED_NBYTES, 0xA5, np.uint8)
    moved = reference.load_box(tmap, coords, gmem)
    want[offset + np.fromiter(moved.keys(), np.int64)] = list(moved.values())
    assert np.array_equal(smem, want)
    assert counted == len(moved)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), tmap=legal_maps(), seed=st.integers(0, 99))
def test_a_store_leaves_what_the_reference_says(data, tmap, seed):
    coords = data.draw(starts(tmap, lowest=0))
    gmem = tensor_bytes(tmap, seed)
    smem = np.random.default_rng(seed).integers(0, 256, SHARED_NBYTES, np.uint8)
    want = reference.store_box(tmap, coords, gmem, smem)
    tma.store(tmap, coords, gmem, 0, smem, 0, 1024)
    assert np.array_equal(gmem, want)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), tmap=legal_maps(), seed=st.integers(0, 99), line=st.integers(0, 9))
def test_the_footprints_are_the_bytes_that_change(data, tmap, seed, line):
    coords = data.draw(starts(tmap, lowest=0))
    offset = 1024 * line
    touched = tma.global_footprint(tmap, coords, is_store=True)
    gmem, smem = np.zeros(tensor_bytes(tmap, seed).size, np.uint8), np.ones(1 << 15, np.uint8)
    tma.store(tmap, coords, gmem, 0, smem, offset, offset)
    assert np.flatnonzero(gmem).tolist() == touched.tolist()
    extent = tma.global_extent(tmap, coords, is_store=True)
    assert extent == ((touched[0], touched[-1] + 1) if touched.size else None)
    landed = np.full(SHARED_NBYTES, 1, np.uint8)
    tma.load(tmap, coords, np.full(gmem.size, 0xFF, np.uint8), 0, landed, offset, offset)
    ranges = [np.arange(a, b) for a, b in tma.smem_footprint(tmap, offset)]
    assert np.flatnonzero(landed != 1).tolist() == np.concatenate(ranges).tolist()


@settings(max_examples=60, deadline=None)
@given(data=st.data(), tmap=legal_maps(), seed=st.integers(0, 99))
def test_what_is_stored_can_be_loaded_back(data, tmap, seed):
    assume(not tmap.dtype.value.startswith("TFLOAT32"))
    coords = data.draw(starts(tmap, lowest=0))
    gmem = tensor_bytes(tmap, seed)
    before = gmem.copy()
    smem = np.zeros(SHARED_NBYTES, np.uint8)
    tma.load(tmap, coords, gmem, 0, smem, 0, 1024)
    touched = tma.global_footprint(tmap, coords)
    tma.store(tmap, coords, gmem, 0, smem, 0, 1024)
    assert np.array_equal(gmem[touched], before[touched])
