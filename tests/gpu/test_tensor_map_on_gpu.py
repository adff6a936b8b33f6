"""The driver at hand against the rules: it accepts and refuses what they foresee."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from lesson.errors import TensorMapError
from lesson.tensor_map import DType, Swizzle, TensorMap, accepts, check, encode
from tests.recorded_edges import EDGES
from tests.recorded_maps import cases, recorded_map

pytestmark = pytest.mark.gpu
SHOWN = 12


@pytest.fixture(scope="module")
def memory():
    """Device memory that starts at a multiple of 1024 bytes."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"CuPy finds no CUDA device: {error}")
    if not count or int(cupy.cuda.Device(0).compute_capability) < 90:
        pytest.skip("no GPU of compute capability 9.0 or higher")
    room = cupy.zeros(1 << 20, cupy.uint8)
    return room[-room.data.ptr % 1024 :]


def answer(tmap: TensorMap, memory) -> bool:
    """Whether the driver encodes this map of `memory`."""
    try:
        words = encode(replace(tmap, base=memory.data.ptr))
    except TensorMapError:
        return False
    assert words.shape == (16,)
    assert words.dtype == np.uint64
    return True


def surprises(maps: list[TensorMap], memory) -> str:
    """The maps that the driver answers otherwise than foreseen: how many, and a line for each."""
    lines = []
    for index, tmap in enumerate(maps):
        broken, is_encoded = check(tmap), answer(tmap, memory)
        if is_encoded == bool(broken):
            said = "accepted" if is_encoded else "refused"
            rules = " ".join(rule.name for rule in broken) or "no rule broken"
            lines.append(f"{index} {said}, {rules}: {terse(tmap)}")
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join([f"{len(lines)} of {len(maps)}:", *lines[:SHOWN], *more]) if lines else ""


def terse(tmap: TensorMap) -> str:
    """The parameters of a map on one line."""
    sizes = (tmap.dims, tmap.strides_bytes, tmap.box, tmap.element_strides)
    named = (tmap.dtype, tmap.interleave, tmap.swizzle, tmap.oob_fill)
    shown = " ".join("x".join(map(str, values)) or "-" for values in sizes)
    return f"{shown} {' '.join(e.value for e in named)} +{tmap.base_offset_bytes}"


def test_the_driver_here_answers_the_recorded_maps_as_foreseen(memory):
    assert surprises([recorded_map(case) for case in cases("encode")], memory) == ""


def test_an_h200_answers_the_maps_at_the_edges_as_foreseen(memory):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if cupy.cuda.Device(0).compute_capability != "90":
        pytest.skip("the rules at the edges are those of compute capability 9.0")
    rows = json.loads((EDGES / "edges_encode.json").read_text())
    maps = [recorded_map(r) for r in rows if "address" not in r and not r.get("null_strides")]
    assert surprises(maps, memory) == ""


def test_the_driver_here_answers_random_maps_as_foreseen(memory):
    rng = random.Random(76)
    maps = [random_map(rng) for _ in range(2000)]
    assert surprises(maps, memory) == ""
    assert 200 < sum(accepts(tmap) for tmap in maps) < 1800


def random_map(rng: random.Random) -> TensorMap:
    """A map near the edges of several rules at once."""
    rank = rng.randint(1, 5)
    dtype = rng.choice([t for t in DType if not t.is_packed])
    unit = 16 // dtype.itemsize
    interleave = rng.choice(["NONE", "NONE", "NONE", "16B", "32B"])
    return TensorMap(
        dtype=dtype,
        dims=[rng.choice([1, 7, 64, 2**32, 2**32 + (rng.random() < 0.1)]) for _ in range(rank)],
        strides_bytes=[16 * rng.choice([0, 1, 2, 4, 2**36 - 2]) for _ in range(rank - 1)],
        box=[
            rng.choice([unit, 2 * unit, 256, 3]),
            *(rng.choice([1, 3, 64]) for _ in range(1, rank)),
        ],
        element_strides=[rng.choice([1, 1, 1, 8, 9]) for _ in range(rank)],
        interleave=interleave,
        swizzle=rng.choice([s for s in Swizzle if "ATOM" not in s.value]),
        oob_fill=rng.choice(["NONE", "NONE", "NAN_REQUEST_ZERO_FMA"]),
        base_offset_bytes=rng.choice([0, 0, 0, 16, 32, 8]),
    )


def test_an_array_on_the_device_is_mapped_where_it_lies(memory):
    matrix = memory[: 256 * 256 * 4].view("float32").reshape(256, 256)
    whole = encode(TensorMap.from_array(matrix, (64, 64)))
    view = encode(TensorMap.from_array(matrix[64:, 64:], (64, 64)))
    assert int(view[0]) - int(whole[0]) == 64 * 1024 + 64 * 4
