"""The engine and its instructions against what an H200 answered at the edges, byte for byte."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from lesson.emulator import launch, tma
from lesson.errors import TensorMapError
from tests.conformance.outcome import answer_of, same_ending
from tests.conformance.tensor_copies import BLOCK, SMEM_NBYTES, kernel
from tests.gpu.tma_memory import box_nbytes
from tests.recorded_edges import Edges
from tests.recorded_maps import SHARED_BASE, recorded_map

MISALIGNED = "fault cudaErrorMisalignedAddress"
EDGES = Edges()
COUNT = len(EDGES.cases)


def start_of(case):
    """The coordinates that the instruction gives."""
    return tuple((case["at"] + [0] * 5)[: case.get("insn_rank", case["rank"])])


def operation(case):
    return None if case["op"] in ("load", "store", "prefetch") else case["op"]


def is_encoded(case):
    return case["outcome"] != "CUDA_ERROR_INVALID_VALUE"


def reads(case):
    return case["op"] in ("load", "prefetch")


@pytest.mark.parametrize("index", range(COUNT))
def test_the_engine_faults_where_the_chip_did(index):
    case = EDGES.cases[index]
    if is_encoded(case):
        fault = tma.start_fault(
            recorded_map(case), start_of(case), not reads(case), operation(case)
        )
        is_off = case.get("shared_offset", 0) % tma.SHARED_ALIGN_NBYTES != 0
        assert (fault is not None) == (case["outcome"] == "fault cudaErrorIllegalInstruction")
        assert (is_off and fault is None) == (case["outcome"] == MISALIGNED)


@pytest.mark.parametrize("index", [i for i in range(COUNT) if EDGES.cases[i]["outcome"] == "ok"])
def test_the_engine_moves_the_bytes_that_the_chip_moved(index):
    case = EDGES.cases[index]
    tmap, at = recorded_map(case), start_of(case)
    tensor, shared = EDGES.before(case)
    smem = np.concatenate([np.zeros(SHARED_BASE, np.uint8), shared])
    spot = SHARED_BASE + case.get("shared_offset", 0)
    if case["op"] == "load":
        counted = tma.load(tmap, at, tensor, 0, smem, spot, spot)
        # Without `tx` an interleaved load was given another count than it has: see the README.
        if case["interleave"] == "NONE" or "tx" in case:
            assert (counted, case["done"]) == (box_nbytes(case), 1)
    elif case["op"] == "store":
        tma.store(tmap, at, tensor, 0, smem, spot, spot)
    elif case["op"] != "prefetch":
        tma.reduce(case["op"], tmap, at, tensor, 0, smem, spot, spot)
    want_tensor, want_shared = EDGES.after(index)
    assert np.array_equal(tensor, want_tensor)
    assert np.array_equal(smem[SHARED_BASE:], want_shared)
    assert not smem[:SHARED_BASE].any()


@functools.cache
def instruction(op, rank, offset):
    """A kernel around one copy whose tile begins `offset` bytes behind a multiple of 1024."""
    text = kernel(rank, "store" if op == "prefetch" else op)
    if op == "prefetch":
        coords = text.split("[%l0, {")[1].split("}")[0]
        asked = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
        other = f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [%l0, {{{coords}}}];"
        text = text.replace(f"{asked} [%l0, {{{coords}}}], [tile];", other)
    return text.replace("[tile]", f"[tile+{offset}]")


@pytest.mark.parametrize("index", range(COUNT))
def test_the_instruction_does_what_it_did_on_the_chip(index):
    case = EDGES.cases[index]
    tensor, shared = EDGES.before(case)
    tile = np.zeros(SMEM_NBYTES, np.uint8)
    tile[: shared.size] = shared
    done = np.zeros(1, np.uint32)
    tmap = recorded_map(case | dict(address=tensor))
    tx = tma.box_nbytes(tmap) if is_encoded(case) else 0
    at = [np.int32(c) for c in (case["at"] + [0] * 5)[:5]]
    text = instruction(case["op"], len(start_of(case)), case.get("shared_offset", 0))
    args = [tmap, *at, np.uint32(tx), tile, done]
    if not is_encoded(case):
        with pytest.raises(TensorMapError):
            launch(text, "k", 1, BLOCK, args)
        return
    ending, why = answer_of(lambda: launch(text, "k", 1, BLOCK, args))
    assert same_ending(case["outcome"].removeprefix("fault "), ending), why
    if ending == "ok":
        want_tensor, want_shared = EDGES.after(index)
        assert np.array_equal(tensor, want_tensor)
        assert done[0] == (case["op"] == "load")
        assert np.array_equal(tile[: want_shared.size], want_shared)


def test_the_recording_holds_every_kind_of_answer():
    answers = [case["outcome"] for case in EDGES.cases]
    assert len(answers) == 533
    assert answers.count("ok") == 364
    assert answers.count("fault cudaErrorIllegalInstruction") == 136
    assert answers.count(MISALIGNED) == 24


def test_a_dimension_copies_up_to_2_to_the_31():
    largest = {"ok": 0, "fault cudaErrorIllegalInstruction": 1 << 32}
    for case in EDGES.cases:
        size, ending = max(case["dims"]), case["outcome"]
        if size >= 1 << 28:
            choose = max if ending == "ok" else min
            largest[ending] = choose(largest[ending], size)
    assert list(largest.values()) == [1 << 31, (1 << 31) + 1]


def test_an_illegal_start_at_a_misaligned_address_is_an_illegal_instruction():
    both = [c for c in EDGES.cases if c["at"] == [1, 0] and c.get("shared_offset") == 16]
    assert {c["op"] for c in both} == {"load", "store"}
    assert {c["outcome"] for c in both} == {"fault cudaErrorIllegalInstruction"}
