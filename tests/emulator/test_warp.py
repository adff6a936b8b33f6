"""Warp instructions against the pseudo-code of the PTX ISA, lane by lane."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

from lesson.emulator import warp

WARPS = 6


def rng(name: str) -> np.random.Generator:
    return np.random.default_rng(list(name.encode()))


def some_members(generator: np.random.Generator, tiles: bool) -> tuple[np.ndarray, np.ndarray]:
    """Executing lanes and their masks: one mask a warp, or one of each half of it."""
    active = generator.random((WARPS, 32)) < 0.6
    active[0] = True
    half = np.arange(32) >= 16
    seen = active @ (1 << np.arange(32, dtype=np.int64))
    masks = np.where(half, seen[:, None] & 0xFFFF0000, seen[:, None] & 0xFFFF)
    return active, (masks if tiles else np.repeat(seen[:, None], 32, 1)).astype(np.uint32)


def peers(active: np.ndarray, masks: np.ndarray, w: int, lane: int) -> list[int]:
    return [j for j in range(32) if active[w, j] and masks[w, lane] >> j & 1]


def source_lane(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The pseudo-code of shfl.sync: the lane read from, and the predicate."""
    segment, b, c = c >> 8 & 31, b & 31, c & 31
    low = lane & segment
    bound = low | (c & ~segment)
    j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | (b & ~segment)}[mode]
    exists = j >= bound if mode == "up" else j <= bound
    return (j if exists else lane), exists


@pytest.mark.parametrize("clamp", [0x1F, 0x0, 0x181F, 0x1800, 0x0B04, None])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl_reads_the_lane_that_the_pseudo_code_names(mode: str, clamp: int | None) -> None:
    generator = rng(f"{mode}{clamp}")
    a = generator.integers(0, 2**32, (WARPS, 32), np.uint32)
    b = generator.integers(0, 64, (WARPS, 32), np.uint32)
    varied = generator.integers(0, 2**13, (WARPS, 32), np.uint32)
    c = varied if clamp is None else np.array([[clamp]], np.uint32)
    every = np.broadcast_to(c, a.shape)
    values, exists = warp.shfl(mode, a, b, c)
    for w in range(WARPS):
        for lane in range(32):
            j, there = source_lane(mode, lane, int(b[w, lane]), int(every[w, lane]))
            assert (values[w, lane], exists[w, lane]) == (a[w, j], there)


def test_shfl_by_a_constant_reads_the_same_lanes_in_every_warp() -> None:
    a = np.arange(64, dtype=np.uint64).reshape(2, 32)
    values, exists = warp.shfl("down", a, np.array([[30]], np.uint32), np.array([[31]], np.uint32))
    assert values[1].tolist() == [62, 63, *range(34, 64)]
    assert exists[1].tolist() == [True, True] + [False] * 30


@pytest.mark.parametrize("tiles", [False, True])
def test_vote_and_match_ask_the_members_alone(tiles: bool) -> None:
    generator = rng(f"vote{tiles}")
    active, masks = some_members(generator, tiles)
    members = warp.members_of(active, masks)
    predicate = generator.random((WARPS, 32)) < np.array([0, 1, 0.5, 0.02, 0.98, 0.5])[:, None]
    a = generator.integers(0, 3, (WARPS, 32)).astype(np.uint32)
    a[1] = 7
    shape = (WARPS, 32)
    got = {m: np.broadcast_to(warp.vote(m, predicate, members), shape) for m in ("all", "any")}
    got["uni"] = np.broadcast_to(warp.vote("uni", predicate, members), shape)
    ballot = np.broadcast_to(warp.ballot(predicate, members), shape)
    one = warp.match_any(a, members)
    mask, alike = (np.broadcast_to(x, shape) for x in warp.match_all(a, members))
    for w, lane in np.argwhere(active):
        them = peers(active, masks, w, lane)
        said = [bool(predicate[w, j]) for j in them]
        assert got["all"][w, lane] == all(said)
        assert got["any"][w, lane] == any(said)
        assert got["uni"][w, lane] == (len(set(said)) == 1)
        assert ballot[w, lane] == sum(1 << j for j in them if predicate[w, j])
        assert one[w, lane] == sum(1 << j for j in them if a[w, j] == a[w, lane])
        same = len({int(a[w, j]) for j in them}) == 1
        assert (mask[w, lane], alike[w, lane]) == (sum(1 << j for j in them) if same else 0, same)


REDUX = {
    "add": operator.add,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "add.u32",
        "add.s32",
        "min.u32",
        "min.s32",
        "max.u32",
        "max.s32",
        "and.b32",
        "or.b32",
        "xor.b32",
    ],
)
def test_redux_combines_the_members_alone(name: str, tiles: bool) -> None:
    op, kind = name.split(".")
    generator = rng(f"{op}{kind}{tiles}")
    active, masks = some_members(generator, tiles)
    a = generator.integers(0, 2**32, (WARPS, 32), np.uint32)
    got = warp.redux(op, kind, a, warp.members_of(active, masks))
    got = np.broadcast_to(got, (WARPS, 32))
    values = a.view(np.int32) if kind == "s32" else a
    for w, lane in np.argwhere(active):
        right = functools.reduce(
            REDUX[op], (int(values[w, j]) for j in peers(active, masks, w, lane))
        )
        assert got[w, lane] == right % 2**32


def test_elect_picks_the_first_member() -> None:
    active = np.zeros((2, 32), np.bool_)
    active[0, 5:] = active[1, [3, 31]] = True
    leader, elected = warp.elect(warp.members_of(active, np.array([0xFFFFFF00], np.uint32)))
    assert leader.tolist() == [[8], [31]]
    assert np.argwhere(elected).tolist() == [[0, 8], [1, 31]]


def test_the_mask_of_a_lane_that_does_not_execute_is_ignored() -> None:
    active = np.zeros((1, 32), np.bool_)
    active[0, :4] = True
    masks = np.full((1, 32), 0xFF, np.uint32)
    masks[0, 4:] = 0x12345678
    assert warp.members_of(active, masks).shape == (1, 1, 32)
    assert warp.to_mask(warp.members_of(active, masks)).tolist() == [[0xF]]


def test_masks_and_lanes_are_each_others_inverse() -> None:
    masks = rng("masks").integers(0, 2**32, (5, 2), np.uint32)
    assert (warp.to_mask(warp.to_lanes(masks)) == masks).all()
    assert warp.to_lanes(np.array([4], np.uint32)).nonzero()[1].tolist() == [2]
