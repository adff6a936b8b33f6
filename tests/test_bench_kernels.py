"""The measured kernels are right bit for bit in the emulator; the checks find nothing in them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lesson import emulator
from lesson.bench import contenders, tune, variants
from lesson.bench.variants import Variant, variant
from lesson.check import check
from lesson.compile import nvrtc_version, to_ptx
from lesson.errors import CompileError, LaunchError

try:
    nvrtc_version()
except CompileError as missing:
    pytest.skip(f"these macros need a compiler: {missing}", allow_module_level=True)

SCHEDULES = ("eager", "late", "random")
WIDTH, HEIGHT, MULTIPROCESSORS = 512, 128, 2
INPUT = np.arange(WIDTH * HEIGHT, dtype=np.float32) * 3

RINGS = [
    variant(file, **macros, **launch)
    for rows, stages, lag, threads, launch in (
        (4, 4, 1, 32, {"per_sm": 1}),
        (4, 3, 2, 64, {"per_sm": 3}),
        (8, 1, 0, 128, {"chunk": 2}),
        (4, 2, 1, 256, {"chunk": 8}),
    )
    for file, macros in (
        ("tma_ring.cu", dict(ROWS=rows, STAGES=stages, THREADS=threads)),
        (
            "tma_ring_store.cu",
            dict(ROWS=rows, STAGES=stages, LAG=lag, THREADS=threads, LOAD_HINT=1, STORE_HINT=1),
        ),
    )
]
TRANSPOSES = [
    variant(
        "transpose_tma.cu", TILE=tile, THREADS=threads, SWIZZLE=sw, DIAGONAL=diagonal, RASTER=raster
    )
    for tile, threads, sw, diagonal, raster in (
        (64, 128, 1, 0, 2),
        (32, 64, 1, 1, 0),
        (64, 256, 0, 1, 1),
        (128, 256, 1, 1, 0),
    )
]


def left_by(v: Variant, schedule: str, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """What a launch over the first width x height floats of INPUT leaves in poisoned memory."""
    ptx = to_ptx(variants.source(v.file), name=v.file, macros=dict(v.macros)).text
    out = np.full(width * height, -1, np.float32)
    p = variants.plan(v, INPUT[: out.size], out, width, height, MULTIPROCESSORS)
    emulator.launch(
        ptx, variants.KERNEL, p.grid, p.block, p.args,
        shared_bytes=p.shared_bytes, schedule=schedule, seed=3,
    )  # fmt: skip
    return out


def assert_bits(found: np.ndarray, right: np.ndarray) -> None:
    assert np.array_equal(found.view(np.uint32), np.ascontiguousarray(right).view(np.uint32))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", contenders.COPIES)
def test_every_contender_adds_one_to_every_element(name: str, schedule: str):
    assert_bits(left_by(contenders.COPIES[name], schedule), INPUT + 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("v", RINGS, ids=lambda v: f"{v.family} {v.label}")
def test_rings_of_other_shapes_add_one_to_every_element(v: Variant, schedule: str):
    assert_bits(left_by(v, schedule), INPUT + 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "v", [*contenders.TRANSPOSES.values(), *TRANSPOSES], ids=lambda v: f"{v.family} {v.label}"
)
def test_every_transpose_puts_every_element_where_it_belongs(v: Variant, schedule: str):
    assert_bits(left_by(v, schedule), INPUT.reshape(HEIGHT, WIDTH).T.ravel())


@pytest.mark.parametrize("name", ["TMA one tile", "TMA one tile, TMA store", "bulk one tile"])
def test_what_the_search_tries_is_right_before_it_is_fast(name: str):
    choose = random.Random(name)
    for shape in choose.sample(tune.spaces()[name], 5):
        v = choose.choice(list(tune.with_hints(shape)))
        assert_bits(left_by(v, "late"), INPUT + 1)


@pytest.mark.parametrize(
    "width, height, unit", [(200, 100, 4), (68, 70, 4), (257, 65, 1), (64, 64, 4)]
)
def test_plain_tiles_stop_at_the_edge_of_a_ragged_matrix(width: int, height: int, unit: int):
    v = variant("plain_tile.cu", WIDTH=64, ROWS=64, THREADS=256, UNIT=unit)
    assert_bits(left_by(v, "eager", width, height), INPUT[: width * height] + 1)


@pytest.mark.parametrize("width, height", [(200, 100), (68, 70), (60, 3)])
def test_tma_tiles_stop_at_the_edge_of_a_ragged_matrix(width: int, height: int):
    v = variant("tma_one_tile.cu", WIDTH=64, ROWS=64, THREADS=256)
    assert_bits(left_by(v, "late", width, height), INPUT[: width * height] + 1)


def test_a_matrix_that_holds_no_whole_number_of_tiles_is_refused():
    with pytest.raises(LaunchError, match="must be a multiple of 512 floats, got 500"):
        left_by(contenders.COPIES["plain 16-byte"], "eager", 500, 1)


@pytest.mark.parametrize("file", sorted(variants.FOLDER.glob("*.cu")), ids=lambda path: path.name)
def test_check_finds_nothing_in_a_measured_kernel(file):
    report = check(file)
    assert report.ok, str(report)
