"""What a tensor copy does to values on their way: TF32 rounding on loads, arithmetic of reductions.

Loads under TFLOAT32 and TFLOAT32_FTZ round to the nearest value with 10 bits of mantissa, ties to
even; any NaN becomes 0x7FFFE000; denormals are rounded, not flushed. Every other type is moved bit
for bit, FLOAT32_FTZ too: the recorded H200 keeps denormals that its name says are flushed. Stores
move every type bit for bit.

Reductions follow PTX ISA, `cp.reduce.async.bulk.tensor`: integers wrap; `inc` and `dec` wrap at the
operand; floats round to nearest even. As recorded on an H200:

* `add` works on all float32 types and on FLOAT64. It rounds to float32, for TFLOAT32 too. It keeps
  denormals, but FLOAT32_FTZ and TFLOAT32_FTZ flush operands and results to the zero of their sign.
* A NaN that comes out is all ones but for the sign: 0x7FFF, 0x7FFFFFFF. FLOAT64 hands a NaN operand
  on as it is, signalling or not, and of two the one from shared memory; inf - inf is
  0xFFF8000000000000.
* `min` and `max` prefer the number to the NaN, and -0 is below +0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lesson.tensor_map import DType

_TF32_NAN = np.uint32(0x7FFFE000)
_TF32 = (DType.TFLOAT32, DType.TFLOAT32_FTZ)


def rounds_on_load(dtype: DType) -> bool:
    """Whether a load of this type changes bits."""
    return dtype in _TF32


def to_tf32(words: np.ndarray) -> np.ndarray:
    """float32 patterns (uint32) rounded as a load under a TFLOAT32 map rounds them."""
    even = (words >> np.uint32(13)) & np.uint32(1)
    rounded = (words + (np.uint32(0xFFF) + even)) & np.uint32(0xFFFFE000)
    is_nan = (words & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, _TF32_NAN, rounded)


_STORAGE: dict[int, type] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_BY_DTYPE: dict[DType, type] = {
    DType.INT32: np.int32,
    DType.INT64: np.int64,
    DType.FLOAT16: np.float16,
    DType.FLOAT32: np.float32,
    DType.FLOAT32_FTZ: np.float32,
    DType.TFLOAT32: np.float32,
    DType.TFLOAT32_FTZ: np.float32,
}
_FLUSHED = (DType.FLOAT32_FTZ, DType.TFLOAT32_FTZ)
_NAN = {2: np.uint16(0x7FFF), 4: np.uint32(0x7FFFFFFF)}
_DOUBLE_NAN = np.uint64(0xFFF8000000000000)
Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


def storage(dtype: DType) -> type:
    """The numpy type in which a reduction of this type computes.

    BFLOAT16, which numpy does not have, and FLOAT64, whose NaNs are kept, compute on their bits.
    """
    return _BY_DTYPE.get(dtype, _STORAGE[dtype.itemsize])


def _increment(held: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """PTX `inc`: 0 once the limit is reached, else one more."""
    return np.where(held >= limit, 0, held + np.uint32(1)).astype(np.uint32)


def _decrement(held: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """PTX `dec`: the limit from 0 or from above it, else one less."""
    return np.where((held == 0) | (held > limit), limit, held - np.uint32(1)).astype(np.uint32)


def _widened(bits: np.ndarray) -> np.ndarray:
    """bfloat16 patterns as float32 values."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _to_bfloat16(values: np.ndarray) -> np.ndarray:
    """float32 values as bfloat16 patterns, rounded to nearest even; any NaN is 0x7FFF."""
    words = values.view(np.uint32)
    even = (words >> np.uint32(16)) & np.uint32(1)
    rounded = ((words + (np.uint32(0x7FFF) + even)) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(values), _NAN[2], rounded)


def _as_bfloat16(combine: Combine) -> Combine:
    return lambda held, given: _to_bfloat16(combine(_widened(held), _widened(given)))


def _with_one_nan(combine: Combine) -> Combine:
    """Whatever NaN comes out becomes the one that the chip writes."""

    def combined(held: np.ndarray, given: np.ndarray) -> np.ndarray:
        values = combine(held, given)
        nan = _NAN[values.itemsize].view(values.dtype)
        return np.where(np.isnan(values), nan, values)

    return combined


def _flush(values: np.ndarray) -> np.ndarray:
    """float32 values with denormals as zeros of the same sign."""
    words = values.view(np.uint32)
    is_small = (words & np.uint32(0x7F800000)) == 0
    return np.where(is_small, words & np.uint32(0x80000000), words).view(np.float32)


def _add_flushed(held: np.ndarray, given: np.ndarray) -> np.ndarray:
    return _flush(_flush(held) + _flush(given))


def _add_doubles(held: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The sum of float64 patterns; a NaN operand is the result as it is, `given` before `held`."""
    x, y = held.view(np.float64), given.view(np.float64)
    total = x + y
    words = np.where(np.isnan(total), _DOUBLE_NAN, total.view(np.uint64))
    return np.where(np.isnan(y), given, np.where(np.isnan(x), held, words))


def _smaller(held: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The number of the two where one is NaN, and -0 below +0."""
    return np.where(
        (held == given) & np.signbit(held),
        held,
        np.where(held == given, given, np.fmin(held, given)),
    )


def _larger(held: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The number of the two where one is NaN, and +0 above -0."""
    return np.where(
        (held == given) & np.signbit(held),
        given,
        np.where(held == given, held, np.fmax(held, given)),
    )


_INTEGER: dict[str, Combine] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_FLOAT: dict[str, Combine] = {"add": np.add, "min": _smaller, "max": _larger}
_WORDS = (DType.UINT32, DType.INT32, DType.UINT64, DType.INT64)
_HALVES = (DType.FLOAT16, DType.BFLOAT16)
_SINGLES = (DType.FLOAT32, DType.FLOAT32_FTZ, DType.TFLOAT32, DType.TFLOAT32_FTZ)
_TYPES_OF: dict[str, tuple[DType, ...]] = {
    "add": (DType.UINT32, DType.INT32, DType.UINT64, *_HALVES, *_SINGLES, DType.FLOAT64),
    "min": (*_WORDS, *_HALVES),
    "max": (*_WORDS, *_HALVES),
    "inc": (DType.UINT32,),
    "dec": (DType.UINT32,),
    "and": (DType.UINT32, DType.INT32, DType.UINT64),
    "or": (DType.UINT32, DType.INT32, DType.UINT64),
    "xor": (DType.UINT32, DType.INT32, DType.UINT64),
}


def types_of(op: str) -> tuple[DType, ...]:
    """The element types that a reduction works on; empty for an unknown operation.

    Recorded for every operation and type: all others are an illegal instruction.
    """
    return _TYPES_OF.get(op, ())


def reduction(op: str, dtype: DType) -> Combine:
    """The function of (held, given) that a reduction computes, on arrays of `storage(dtype)`."""
    if op in ("inc", "dec"):
        return _increment if op == "inc" else _decrement
    if dtype is DType.FLOAT64:
        return _add_doubles
    if dtype is DType.BFLOAT16:
        return _as_bfloat16(_FLOAT[op])
    if dtype in _FLUSHED:
        return _with_one_nan(_add_flushed)
    return _with_one_nan(_FLOAT[op]) if dtype.is_float else _INTEGER[op]
