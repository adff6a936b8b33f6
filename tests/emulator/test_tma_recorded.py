"""The copy engine against the recorded copies of an H200, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest

from lesson.emulator import tma
from tests.recorded_maps import DATA, SHARED_BASE, cases, hashed_bytes, recorded_map, store_inputs

LOADS, STORES = cases("load"), cases("store")
GUARD_NBYTES = 64


@pytest.fixture(scope="module")
def bytes_after():
    with np.load(DATA / "tma.npz") as archive:
        return {name: archive[name] for name in archive.files}


def operation(case):
    return None if case["op"] == "store" else case["op"]


@pytest.mark.parametrize("index", range(len(LOADS)))
def test_a_recorded_load_brings_the_same_bytes(index, bytes_after):
    case = LOADS[index]
    tmap, coords = recorded_map(case), tuple(case["coords"])
    fault = tma.start_fault(tmap, coords, False)
    assert (fault is None) == (case["outcome"] == "ok")
    if fault:
        return
    gmem = hashed_bytes(case["tensor_bytes"], case["salt"])
    smem = np.full(SHARED_BASE + 32768, 0xA5, np.uint8)
    counted = tma.load(tmap, coords, gmem, 0, smem, SHARED_BASE, SHARED_BASE)
    assert (counted, case["done"]) == (case["tx"], 1)
    recorded = bytes_after[f"load_{index}"]
    assert np.array_equal(smem[SHARED_BASE : SHARED_BASE + recorded.size], recorded)
    assert (smem[SHARED_BASE + recorded.size :] == 0xA5).all()
    assert (smem[:SHARED_BASE] == 0xA5).all()


@pytest.mark.parametrize("index", range(len(STORES)))
def test_a_recorded_store_leaves_the_same_bytes(index, bytes_after):
    case = STORES[index]
    tmap, coords, op = recorded_map(case), tuple(case["coords"]), operation(case)
    fault = tma.start_fault(tmap, coords, True, op)
    assert (fault is None) == (case["outcome"] == "ok")
    if fault:
        return
    held, given = store_inputs(case)
    gmem = np.concatenate([held, np.zeros(GUARD_NBYTES, np.uint8)])
    smem = np.zeros(SHARED_BASE + 32768, np.uint8)
    smem[SHARED_BASE:] = given
    if op is None:
        tma.store(tmap, coords, gmem, 0, smem, SHARED_BASE, SHARED_BASE)
    else:
        tma.reduce(op, tmap, coords, gmem, 0, smem, SHARED_BASE, SHARED_BASE)
    assert np.array_equal(gmem[:-GUARD_NBYTES], bytes_after[f"store_{index}"])
    assert np.array_equal(smem[SHARED_BASE:], given)
