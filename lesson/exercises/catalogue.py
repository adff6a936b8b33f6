"""The four exercises: their data, and what is asked of a run.

A want is a function from what was seen of a run to a sentence on why it does not hold, or None.
It judges structure (copies, overlap, passes); bits and findings are judged for all alike (`judge`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lesson.banks import BankCounter
from lesson.exercises.tally import Tally
from lesson.tensor_map import TensorMap

ENOUGH_PASSES = 4  # what the 128-byte swizzle leaves of the 32 of a column of floats


@dataclass(frozen=True)
class Seen:
    """One run of a reader's kernel, copies late."""

    tally: Tally
    banks: BankCounter


@dataclass(frozen=True)
class Piece:
    """What an exercise is about. Sizes in elements, x first; `tiles` are those of the matrix.

    `grid`: blocks in x and y. `asks`: the wants in words, of a run and of the map. `is_transposed`:
    whether `out` is the transpose. `has_out_map`: whether the kernel takes a map of `out` as well.
    """

    name: str
    kernel: str
    size: tuple[int, int]
    box: tuple[int, int]
    grid: tuple[int, int]
    asks: str
    wants: tuple[Callable[[Seen, Piece], str | None], ...]
    map_wants: tuple[Callable[[TensorMap, Piece], str | None], ...] = ()
    is_transposed: bool = False
    has_out_map: bool = False

    @property
    def tiles(self) -> int:
        """How many boxes cover the matrix."""
        return -(-self.size[0] // self.box[0]) * -(-self.size[1] // self.box[1])


def map_is_of_the_matrix(tmap: TensorMap, piece: Piece) -> str | None:
    """Shape x first, stride in bytes."""
    width, height = piece.size
    if tmap.dims == piece.size and tmap.strides_bytes == (width * 4,):
        return None
    got = " x ".join(map(str, tmap.dims))
    strides = ", ".join(map(str, tmap.strides_bytes))
    return (
        f"The map must describe the matrix, {height} rows of {width} floats one after the other,"
        f" got {got} elements (x first), {strides} bytes from row to row."
    )


def one_load_a_tile(seen: Seen, piece: Piece) -> str | None:
    """Each tile is asked for, and once."""
    return _one_a_tile(seen.tally.loads, piece, "fetched")


def one_store_a_tile(seen: Seen, piece: Piece) -> str | None:
    """The engine stores each tile, and once."""
    return _one_a_tile(seen.tally.stores, piece, "stored by the engine")


def _one_a_tile(issued: list, piece: Piece, done: str) -> str | None:
    places = {each.coords for each in issued}
    if len(issued) == piece.tiles == len(places):
        return None
    return (
        f"Each of the {piece.tiles} tiles must be {done} once, got {len(issued)} copies of"
        f" {len(places)} different boxes."
    )


def no_plain_store(seen: Seen, piece: Piece) -> str | None:
    """Threads store nothing to global memory."""
    count = seen.tally.plain_stores
    if not count:
        return None
    return f"No thread may store to global memory itself, got {count} elements stored that way."


def both_stages(seen: Seen, piece: Piece) -> str | None:
    """Every stage is filled, as often as another."""
    fills: dict[int, int] = {}
    for each in seen.tally.loads:
        fills[each.place] = fills.get(each.place, 0) + 1
    if len(fills) == 2 and len(set(fills.values())) == 1:
        return None
    counts = " and ".join(str(fills[place]) for place in sorted(fills)) or "no"
    return f"The two stages must take turns, got {counts} tiles in {len(fills)} of them."


def next_is_on_its_way(seen: Seen, piece: Piece) -> str | None:
    """Nearly every copy is issued while another of the block is in flight."""
    loads = seen.tally.loads
    together = sum(each.beside > 0 for each in loads)
    blocks = len({each.block for each in loads})
    if together >= len(loads) - 2 * blocks:
        return None
    return (
        f"The next tile must be on its way while a block works on one, got {together} of"
        f" {len(loads)} copies that were asked for while another was in flight."
    )


def few_passes(seen: Seen, piece: Piece) -> str | None:
    """No read of shared memory by a warp has many bank conflicts."""
    worst = max((read.passes for read in seen.banks.reads), default=0)
    if worst <= ENOUGH_PASSES:
        return None
    return (
        f"A warp's read of the tile must take {ENOUGH_PASSES} passes at most, got {worst}: so many"
        " of its 32 elements lie in one bank."
    )


PIECES = (
    Piece(
        name="edges",
        kernel="edgeTiles",
        size=(200, 120),
        box=(64, 64),
        grid=(4, 2),
        asks="the map of the matrix, one copy a tile",
        wants=(one_load_a_tile,),
        map_wants=(map_is_of_the_matrix,),
    ),
    Piece(
        name="ring",
        kernel="ringOfStages",
        size=(128, 256),
        box=(32, 32),
        grid=(4, 1),
        asks="one copy a tile, stages in turn, the next tile on its way",
        wants=(one_load_a_tile, both_stages, next_is_on_its_way),
    ),
    Piece(
        name="store",
        kernel="storeByEngine",
        size=(256, 128),
        box=(64, 64),
        grid=(4, 2),
        asks="no plain store, one engine store a tile",
        wants=(no_plain_store, one_store_a_tile),
        has_out_map=True,
    ),
    Piece(
        name="swizzle",
        kernel="transposeTile",
        size=(128, 64),
        box=(32, 32),
        grid=(4, 2),
        asks=f"{ENOUGH_PASSES} passes a read at most",
        wants=(few_passes, one_load_a_tile),
        is_transposed=True,
    ),
)
