"""Atomics against one lane after another in plain Python, and their float rounding as recorded."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

from lesson.emulator import atomics
from lesson.errors import UnsupportedPtx

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the machine runs so

PLAIN: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "dec": lambda old, b: b if old == 0 or old > b else old - 1,
    "exch": lambda old, b: b,
}
INTEGERS = [
    *[f"{op}.{kind}" for op in ("min", "max") for kind in ("u32", "s32", "u64", "s64")],
    *["add.u32", "add.s32", "add.u64", "inc.u32", "dec.u32", "exch.b32", "exch.b64"],
    *[f"{op}.{kind}" for op in ("and", "or", "xor") for kind in ("b32", "b64")],
]


def one_by_one(
    memory: np.ndarray, index: np.ndarray, op: str, b: np.ndarray, signed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The old values and the memory after, a lane at a time."""
    bits = memory.dtype.itemsize * 8
    number = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    cells, old = memory.view(number).tolist(), []
    for at, operand in zip(index.tolist(), b.view(number).tolist(), strict=True):
        old.append(cells[at] % 2**bits)
        cells[at] = PLAIN[op](cells[at], operand)
        if op == "add":
            cells[at] %= 2**bits
    return np.array(old, memory.dtype), np.array([c % 2**bits for c in cells], memory.dtype)


@pytest.mark.parametrize("words", [1, 3, 40, 5000])
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_lanes_act_one_after_another(name: str, words: int) -> None:
    op, kind = name.split(".")
    rng = np.random.default_rng([words, *name.encode()])
    dtype = np.dtype(f"u{int(kind[1:]) // 8}")
    top = 20 if op in ("inc", "dec") else 2 ** (8 * dtype.itemsize)
    memory = rng.integers(0, top, words, dtype)
    index = rng.integers(0, words, 300)
    b = rng.integers(0, top, 300, dtype)
    old, after = one_by_one(memory, index, op, b, kind[0] == "s")
    assert atomics.apply(memory, index, op, kind, b).tolist() == old.tolist()
    assert memory.tolist() == after.tolist()


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_cas_lets_one_lane_win_a_lock(kind: str) -> None:
    dtype = np.dtype(f"u{int(kind[1:]) // 8}")
    memory, index = np.zeros(3, dtype), np.array([1, 1, 2, 1])
    mine = np.array([5, 6, 7, 8], dtype)
    old = atomics.apply(memory, index, "cas", kind, np.zeros(1, dtype), mine)
    assert old.tolist() == [0, 5, 0, 5]
    assert memory.tolist() == [0, 5, 7]


@pytest.mark.parametrize("lanes", [20, 500])
@pytest.mark.parametrize("kind, flush", [("f32", False), ("f32", True), ("f64", False)])
def test_float_sums_round_after_every_lane(kind: str, flush: bool, lanes: int) -> None:
    dtype = {"f32": np.float32, "f64": np.float64}[kind]
    rng = np.random.default_rng([lanes, flush])
    values = (rng.standard_normal(lanes) * 10.0 ** rng.integers(-9, 9, lanes)).astype(dtype)
    values[lanes // 2] = np.finfo(dtype).tiny / 4
    index = rng.integers(0, 2, lanes)
    memory = np.zeros(2, dtype)
    expected, old = memory.copy(), []
    for at, value in zip(index, values, strict=True):
        old.append(expected[at])
        expected[at] += dtype(0) if flush and abs(value) < np.finfo(dtype).tiny else value
    bits = np.dtype(f"u{dtype().itemsize}")
    got = atomics.apply(memory.view(bits), index, "add", kind, values.view(bits), flush=flush)
    assert got.tolist() == np.array(old, dtype).view(bits).tolist()
    assert memory.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "memory, operand, flush, after",
    [
        (0x00000001, 0x00000001, False, 0x00000002),
        (0x00000001, 0x00000001, True, 0x00000000),
        (0x80800000, 0x807FFFFF, True, 0x80800000),
        (0x807FFFFF, 0x00000001, True, 0x00000000),
        (0x7F800000, 0xFF800000, False, 0x7FFFFFFF),
    ],
)
def test_f32_subnormals_are_flushed_in_global_memory_alone(memory, operand, flush, after) -> None:
    cells = np.array([memory], np.uint32)
    atomics.apply(cells, np.array([0]), "add", "f32", np.array([operand], np.uint32), flush=flush)
    assert cells[0] == after


def test_each_half_of_a_packed_word_is_rounded_by_itself() -> None:
    cells = np.array([0x3C00_7BFF], np.uint32)
    atomics.apply(cells, np.array([0, 0]), "add", "f16x2", np.array([0x1400_4C00], np.uint32))
    assert cells[0] == 0x3C02_7C00


def test_an_operation_that_the_type_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedPtx, match=r"got inc\.f32|got and\.f32"):
        atomics.apply(np.zeros(1, np.uint32), np.array([0]), "and", "f32", np.zeros(1, np.uint32))
