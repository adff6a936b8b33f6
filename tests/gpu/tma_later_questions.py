"""A second round of questions: what rules and engine had to assume after `tma_questions.py`.

Cases as there; `tx` is the byte count that a load is told to expect. Each function says what is
asked, and what the answer was where the first assumption was wrong. `record_tma_edges.py` asks.
"""

from __future__ import annotations

from tests.gpu.tma_questions import SWIZZLES, Case, a_map

FOUR = dict(dims=[256] * 4, strides=[4096, 1 << 20, 1 << 28], dtype="UINT8")


def encode_list() -> list[Case]:
    """Maps for the driver."""
    return [*boxes_shorter_than_their_step(), *last_addresses()]


def copy_list() -> list[Case]:
    """Copies for the engine."""
    copies = [*largest_tensors(), *interleaved_edges(), *interleaved_swizzles()]
    return [*copies, *sums_of_nans(), *two_faults()]


def boxes_shorter_than_their_step() -> list[Case]:
    """Does `box_fits` count boxDim / elementStrides, rounded down, as at least 1? No, as 0."""
    return [
        a_map(**FOUR, box=[256, 229, 4, n], estrides=[1, 1, 1, e])
        for n, e in ((1, 1), (1, 2), (1, 8), (3, 4), (2, 2))
    ] + [a_map(**FOUR, box=[256, 256, n, 256], estrides=[1, 1, 2, 8]) for n in (1, 2)]


def last_addresses() -> list[Case]:
    """Where addresses end, above 2^56, which is accepted, and below 2^57, which is not."""
    return [a_map(address=a) for a in ((1 << 56) + 16, 3 << 55, 7 << 54, (1 << 57) - 16, 1 << 60)]


def largest_tensors() -> list[Case]:
    """At which size of a dimension, 2^32 at the latest, a copy becomes an illegal instruction."""
    sizes = [
        1 << 28,
        1 << 29,
        1 << 30,
        (1 << 31) - 1,
        1 << 31,
        (1 << 31) + 1,
        (1 << 32) - 1,
        1 << 32,
    ]
    out = []
    for n in sizes:
        for dims in ([n, 32], [64, n], [n, n]):
            out += [a_map(dims=dims, at=[4, 1], op=op) for op in ("load", "store", "prefetch")]
            out.append(a_map(dims=dims, dtype="UINT8", at=[16, 1], op="load"))
    return out


def interleaved_edges() -> list[Case]:
    """Does dimension 0 end after its size in slices, and do bytes count as moved?"""
    out = []
    for kind, unit in (("16B", 16), ("32B", 32)):
        flat = dict(dims=[6, 5, 4], strides=[256, 2048], estrides=[1] * 3, box=[4, 2, 3])
        deep = dict(dims=[6, 5, 4, 3, 2], strides=[256, 2048, 8192, 24576], estrides=[1] * 5,
                    box=[4, 2, 2, 3, 2])  # fmt: skip
        for base, moved, starts in (
            (flat, 4 * 1 * 3, ([0, 0, 0], [4, 0, 0], [-2, 0, 2], [0, 4, 0], [0, 5, 0], [1, -1, 0])),
            (deep, 4 * 2 * 2 * 1 * 2, ([0] * 5, [4, 4, 3, 2, 1], [-1, -1, -1, 0, -1])),
        ):
            for at in starts:
                case = a_map(**base, interleave=kind, at=at, tx=moved * unit)
                out += [case | dict(op="load"), case | dict(op="load", oob="NAN_REQUEST_ZERO_FMA")]
                out += [case | dict(op=op, dtype="UINT32") for op in ("store", "add")]
        stepped = flat | dict(estrides=[2, 2, 2])
        out.append(a_map(**stepped, interleave=kind, at=[1, 1, 0], tx=2 * 1 * 2 * unit, op="load"))
        out.append(a_map(**stepped, interleave=kind, at=[1, 1, 0], op="store"))
        words = flat | dict(dtype="TFLOAT32", data="words")
        out.append(a_map(**words, interleave=kind, at=[0, 0, 0], tx=12 * unit, op="load"))
    return out


def interleaved_swizzles() -> list[Case]:
    """Rows of an interleaved box under a swizzle, such that the box ends inside a span."""
    return [
        a_map(dims=[16, 5, 9], strides=[1024, 8192], estrides=[1] * 3, box=[inner, 1, 7],
              dtype=dtype, interleave=kind, swizzle=swizzle, at=[0, 1, 1], tx=inner * 7 * unit,
              shared_offset=offset, op=op)
        for kind, unit in (("16B", 16), ("32B", 32))
        for swizzle in SWIZZLES
        for dtype, inner in (("FLOAT64", 2), ("FLOAT32", 4))
        for offset in (0, 384)
        for op in ("load", "store")
    ]  # fmt: skip


def sums_of_nans() -> list[Case]:
    """What FLOAT64 adds of NaNs and of inf - inf. Of two NaNs the one in memory loses."""
    wide = dict(dims=[128, 8], strides=[1024], box=[64, 8], at=[0, 0])
    return [a_map(**wide, dtype="FLOAT64", data="doubles", op="add")]


def two_faults() -> list[Case]:
    """Which of two faults is reported, and whether a prefetch of another rank is one."""
    return [
        a_map(at=[1, 0], shared_offset=16, op="load"),
        a_map(at=[1, 0], shared_offset=16, op="store"),
        a_map(at=[0, 0, 0], insn_rank=3, op="prefetch"),
        a_map(at=[0, 0, 0], insn_rank=3, op="store"),
    ]
