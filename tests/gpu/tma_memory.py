"""What memory holds before a copy that a GPU is asked for, and what the copy is told to expect.

`data` of a case: "words", special float32 patterns; "doubles", special float64 patterns; otherwise
random bytes, by seeds that must not change: the recorded answers depend on them.
"""

from __future__ import annotations

import math

import numpy as np

from tests.gpu.tma_questions import SIZE, Case

GLOBAL_NBYTES = 1 << 18
SHARED_NBYTES = 32768


def special_words() -> np.ndarray:
    """2048 float32 patterns: zeros, denormals, ties of TF32, infinities, NaNs, and random ones."""
    rng = np.random.default_rng(76)
    edges = [0, 1, 0xFFF, 0x1000, 0x1001, 0x2000, 0x3000, 0x7FFFFF, 0x7FF000, 0x800000, 0x800FFF,
             0x801000, 0x803000, 0x3F801000, 0x3F803000, 0x3F800FFF, 0x7F7FFFFF, 0x7F7FF000,
             0x7F7FEFFF, 0x7F7FF001, 0x7F800000, 0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FFFFFFF,
             0x7F801000, 0x7FFFE000, 0x7FF77FF7]  # fmt: skip
    words = np.array(edges + [e | 0x80000000 for e in edges], np.uint32)
    ties = rng.integers(0, 1 << 32, 300, np.uint32) & ~np.uint32(0x1FFF) | np.uint32(0x1000)
    small = rng.integers(0, 1 << 24, 300, np.uint32) | rng.integers(0, 2, 300, np.uint32) << 31
    rest = rng.integers(0, 1 << 32, 2048 - len(words) - 600, np.uint32)
    return np.concatenate([words, ties, small.astype(np.uint32), rest])


def special_doubles() -> np.ndarray:
    """1024 float64 patterns: zeros, denormals, infinities, NaNs of both kinds and signs."""
    edges = [0, 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0x7FEFFFFFFFFFFFFF,
             0x7FF0000000000000, 0x7FF0000000000001, 0x7FF7FFFFFFFFFFFF, 0x7FF8000000000000,
             0x7FF8000000000123, 0x7FFFFFFFFFFFFFFF]  # fmt: skip
    signed = np.array([e | sign << 63 for e in edges for sign in (0, 1)], np.uint64)
    return np.random.default_rng(64).choice(signed, 1024)


def memory_before(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Global and shared bytes before a case: special floats, or random bytes; 0xA5 under a load."""
    if case.get("data") in ("words", "doubles"):
        words = special_words() if case["data"] == "words" else special_doubles()
        before = np.resize(words.view(np.uint8), GLOBAL_NBYTES)
        shared = np.resize(
            np.random.default_rng(5).permutation(words).view(np.uint8), SHARED_NBYTES
        )
    else:
        before = np.random.default_rng(11).integers(0, 256, GLOBAL_NBYTES, np.uint8)
        shared = np.random.default_rng(12).integers(0, 256, SHARED_NBYTES, np.uint8)
    if case["op"] == "load":
        shared = np.full(SHARED_NBYTES, 0xA5, np.uint8)
    return before, shared


def box_nbytes(case: Case) -> int:
    """Bytes that a load is told to expect: `tx`, or what the box has as a plain one."""
    if "tx" in case:
        return case["tx"]
    steps = case["estrides"] if case["interleave"] != "NONE" else [1, *case["estrides"][1:]]
    return SIZE[case["dtype"]] * math.prod(
        -(-b // e) for b, e in zip(case["box"], steps, strict=True)
    )
