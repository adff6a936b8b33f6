"""What the recordings of tensor maps and tensor copies leave open, as cases to ask a GPU.

A case holds the parameters of `cuTensorMapEncodeTiled` by the tails of the driver's names, and for
a copy `op`, the start `at`, `shared_offset`, `insn_rank` (where the instruction's rank is not the
map's) and `data` (what memory holds, see `tma_memory.py`). `record_tma_edges.py` asks; nothing here
needs a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SIZE = dict(
    UINT8=1, UINT16=2, UINT32=4, INT32=4, UINT64=8, INT64=8, FLOAT16=2, FLOAT32=4,
    FLOAT64=8, BFLOAT16=2, FLOAT32_FTZ=4, TFLOAT32=4, TFLOAT32_FTZ=4,
)  # fmt: skip
PACKED = ("16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B")
SWIZZLES = ("NONE", "32B", "64B", "128B")
ATOMS = ("128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B")
OPS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
Case = dict[str, Any]


def a_map(**changes: Any) -> Case:
    """A legal 2-D map with the changes given; rank follows the shape."""
    case = dict(
        dtype="FLOAT32", offset=0, dims=[64, 32], strides=[256], box=[16, 8], estrides=[1, 1],
        interleave="NONE", swizzle="NONE", l2="NONE", oob="NONE",
    )  # fmt: skip
    case.update(changes)
    case.setdefault("rank", len(case["dims"]))
    return case


def box_of_units(units: int, rank: int) -> list[int] | None:
    """A UINT8 box of `rank` dimensions that holds exactly `units` * 16 bytes, or None."""
    for inner in range(16, 0, -1):
        if units % inner:
            continue
        rest, outer = units // inner, []
        for _ in range(rank - 1):
            fit = max(d for d in range(1, 257) if rest % d == 0)
            outer.append(fit)
            rest //= fit
        if rest == 1:
            return [inner * 16, *outer]
    return None


def box_limit_families() -> dict[str, Callable[[int], Case | None]]:
    """Ways to fill a box, to see which size the driver bounds; each maps 16-byte units to a map."""

    def plain(box: list[int], **changes: Any) -> Case:
        rank = len(box)
        strides = [4096 * 256**k for k in range(rank - 1)]
        base = dict(dims=[256] * rank, strides=strides, box=box, estrides=[1] * rank)
        return a_map(**(dict(dtype="UINT8") | base | changes))

    def narrow(units: int) -> Case | None:
        rows = box_of_units(units, 4)
        return rows and plain([16, rows[0] // 16, *rows[1:]], swizzle="128B")

    def stepped(axis: int, step: int) -> Callable[[int], Case | None]:
        def make(units: int) -> Case | None:
            box = box_of_units(units, 4)
            return box and plain(box, estrides=[step if k == axis else 1 for k in range(4)])

        return make

    def as_floats(units: int) -> Case | None:
        box = box_of_units(units, 4)
        return box and plain([box[0] // 4, *box[1:]], dtype="FLOAT32")

    def simple(units: int) -> Case | None:
        box = box_of_units(units, 4)
        return box and plain(box)

    def interleaved(units: int) -> Case | None:
        box = box_of_units(units, 4)
        return box and plain(box, interleave="16B")

    return dict(
        plain=simple, floats=as_floats, narrow_rows_under_128B=narrow, step_4_on_1=stepped(1, 4),
        step_4_on_0=stepped(0, 4), step_3_on_2=stepped(2, 3), interleaved=interleaved,
    )  # fmt: skip


def encode_list() -> list[Case]:
    """Single maps whose answer the first recordings do not hold."""
    return [*interleaved_maps(), *maps_of_later_chips(), *addresses_and_sizes()]


def interleaved_maps() -> list[Case]:
    """Rows of every width under both interleaves."""
    return [
        a_map(dtype="UINT8", dims=[inner, 8, 8], strides=[256, 2048], box=[inner, 4, 4],
              estrides=[1, 1, 1], interleave=kind, swizzle=swizzle)
        for kind in ("16B", "32B")
        for inner in (4, 8, 16, 24, 32, 48, 64, 128, 256)
        for swizzle in ("NONE", "32B", "128B")
    ]  # fmt: skip


def maps_of_later_chips() -> list[Case]:
    """The 128B_ATOM swizzles and the packed types."""
    out = [a_map(swizzle=s, box=[w, 8]) for s in ATOMS for w in (4, 8, 16, 32, 36, 64)]
    out += [a_map(swizzle=s, dtype=d, box=[16 // SIZE[d], 8]) for s in ATOMS for d in SIZE]
    for dtype in PACKED:
        legal = dict(dtype=dtype, dims=[256, 8], strides=[128], box=[128, 4])
        out += [a_map(**legal, swizzle=s) for s in (*SWIZZLES, *ATOMS)]
        for change in (dict(strides=[144]), dict(box=[64, 4]), dict(dims=[130, 8])):
            out.append(a_map(**legal | change))
        out.append(a_map(**legal, offset=16))
    return out


def addresses_and_sizes() -> list[Case]:
    """The ends of addresses, strides, dimensions and steps."""
    out = [a_map(address=a) for a in (0, 16, 1 << 40, 1 << 47, 1 << 49, 1 << 56, 1 << 57, 1 << 63)]
    five = dict(dims=[8] * 5, box=[4] * 5, estrides=[1] * 5)
    for k in range(4):
        for s in (0, 16, (1 << 40) - 16, 1 << 40):
            out.append(a_map(**five, strides=[s if j == k else 4096 for j in range(4)]))
    for k in range(5):
        for n in (1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 1):
            dims = [n if j == k else 8 for j in range(5)]
            out.append(a_map(**five | dict(dims=dims), strides=[4096] * 4))
    out += [a_map(**five | dict(dims=[1 << 32] * 5), strides=[(1 << 40) - 16] * 4)]
    out += [a_map(box=[16, 1], estrides=[1, e]) for e in (1, 2, 8, 9)]
    out += [a_map(dims=[64], strides=[], box=[16], estrides=[1], null_strides=n) for n in (0, 1)]
    return out


# ---------------------------------------------------------------- what to ask of the engine


def load_list() -> list[Case]:
    """Loads: conversions, interleave, atoms, shared addresses, extreme coordinates, other ranks."""
    cases = [
        *conversions(), *interleaved_loads(), *loads_of_later_chips(), *shared_addresses(),
        *far_coordinates(), *cut_and_stepped(), *other_ranks(),
    ]  # fmt: skip
    return [case | dict(op="load") for case in cases]


def conversions() -> list[Case]:
    """Every 4-byte type and both halves, over special words."""
    wide = dict(dims=[256, 8], strides=[1024], box=[256, 8])
    out = [a_map(**wide, dtype=d, data="words", at=[0, 0]) for d in SIZE if SIZE[d] == 4]
    out += [a_map(dims=[512, 8], strides=[1024], box=[256, 8], dtype=d, data="words", at=[0, 0])
            for d in ("FLOAT16", "BFLOAT16")]  # fmt: skip
    return out


def interleaved_loads() -> list[Case]:
    """Both interleaves under every swizzle, inside, outside, and with steps."""
    out = []
    for kind, unit in (("16B", 16), ("32B", 32)):
        for swizzle in SWIZZLES:
            for dtype, inner, at in (("FLOAT16", 1, [0, 0, 0, 0]), ("FLOAT16", 2, [0, 1, -1, 0]),
                                     ("UINT8", 1, [1, 0, 0, 1]), ("FLOAT32", 1, [0, 3, 2, 1]),
                                     ("FLOAT16", 1, [2, 0, 6, 0])):  # fmt: skip
                n = unit // SIZE[dtype]
                base = dict(dims=[n * 3, 8, 6, 4], strides=[64 * 2, 1024, 8192], estrides=[1] * 4,
                            box=[n * inner, 4, 3, 2], interleave=kind, swizzle=swizzle)  # fmt: skip
                out.append(a_map(**base, dtype=dtype, at=at))
        stepped = dict(dims=[8, 8, 6, 4], strides=[128, 1024, 8192], box=[8, 4, 3, 2])
        out.append(a_map(**stepped, estrides=[2, 1, 2, 1], interleave=kind, at=[0] * 4))
    return out


def loads_of_later_chips() -> list[Case]:
    """The 128B_ATOM swizzles, on three row widths."""
    return [
        a_map(swizzle=s, box=[w, 24], at=[0, 0], dtype=d)
        for s in ATOMS
        for w, d in ((32, "FLOAT32"), (16, "FLOAT32"), (8, "FLOAT64"))
    ]


def shared_addresses() -> list[Case]:
    """Destinations at every power of two below 1024, and between."""
    return [
        a_map(swizzle=swizzle, box=[8, 20], at=[4, 1], shared_offset=offset)
        for swizzle in SWIZZLES
        for offset in (8, 16, 32, 64, 128, 256, 384, 512, 640, 896)
    ]


def far_coordinates() -> list[Case]:
    """The ends of a 32-bit coordinate, on a small tensor and on the largest."""
    low, high = -(1 << 31), (1 << 31) - 4
    starts = ([low, 0], [high, 0], [0, low], [0, high], [low, low], [-16, -8], [-12, -4], [60, 28])
    huge = dict(dims=[1 << 32, 1 << 32], strides=[0])
    return [a_map(at=at, **more) for at in starts for more in ({}, huge)]


def cut_and_stepped() -> list[Case]:
    """Rows that are no whole units, and steps across both edges."""
    out = [a_map(dims=[5, 3], strides=[32], at=a) for a in ([0, 0], [-4, -2], [4, 2])]
    return out + [a_map(estrides=[1, 3], at=[0, y]) for y in (-4, -1, 25, 30)]


def other_ranks() -> list[Case]:
    """Instructions of another rank than the map's."""
    cube = dict(dims=[8] * 3, strides=[32, 256], box=[8] * 3, estrides=[1] * 3)
    out = [a_map(at=[0, 0, 0], insn_rank=r) for r in (1, 3)]
    return [*out, a_map(**cube, at=[0, 0], insn_rank=2)]


def store_list() -> list[Case]:
    """Stores and reductions: every operation on every dtype, special values, steps, overlap."""
    return [*every_reduction(), *steps_and_overlaps(), *stores_from_addresses(), *far_stores()]


def every_reduction() -> list[Case]:
    """Every operation on every type, over special words."""
    out = []
    for dtype, size in SIZE.items():
        wide = dict(dims=[256, 8], strides=[256 * size], box=[64, 8], dtype=dtype)
        out += [a_map(**wide, at=[0, 0], data="words", op=op) for op in ("store", *OPS)]
    return out


def steps_and_overlaps() -> list[Case]:
    """Steps, rows that overlap, rows that are cut off the 16-byte boundary."""
    both = ("store", "add")
    out = [a_map(estrides=[1, 3], at=[0, y], op=op) for y in (0, 27) for op in both]
    whole = dict(at=[0, 0], dtype="UINT32")
    out += [a_map(estrides=[2, 1], op=op, **whole) for op in both]
    out += [a_map(strides=[s], op=op, **whole) for s in (0, 16, 48) for op in both]
    cut = dict(dims=[13, 9], strides=[64], at=[8, 4], dtype="UINT32")
    out += [a_map(**cut, op=op) for op in ("store", "add", "min")]
    row = dict(dims=[13], strides=[], box=[16], estrides=[1], at=[0], dtype="UINT16")
    return [*out, a_map(**row, op="store")]


def stores_from_addresses() -> list[Case]:
    """Sources at other addresses than multiples of 1024, and both interleaves."""
    out = [
        a_map(swizzle=swizzle, box=[8, 20], at=[4, 1], shared_offset=offset, op="store")
        for swizzle in SWIZZLES
        for offset in (16, 64, 128, 384, 640)
    ]
    for kind, n in (("16B", 4), ("32B", 8)):
        out.append(a_map(dims=[n, 8, 6], strides=[64, 1024], estrides=[1] * 3, box=[n, 4, 3],
                         interleave=kind, at=[0, 1, 1], op="store"))  # fmt: skip
    return out


def far_stores() -> list[Case]:
    """Stores and prefetches at the edges and outside."""
    top = (1 << 31) - 4
    out = [a_map(at=at, op="store") for at in ([top, 0], [0, top], [64, 0], [0, 32], [0, -1])]
    starts = ([0, 0], [1, 0], [-4, 0], [0, -1], [64, 0])
    return out + [a_map(at=at, op="prefetch") for at in starts]
