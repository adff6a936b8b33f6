"""The hints to each exercise, in the order in which they give more away."""

from __future__ import annotations

_EDGES = """
The map says where the matrix ends, and the engine fills the rest of a box. So describe the matrix
as it is: x first, and the bytes from a row to the next.

The bytes to wait for stay those of a whole box. What an edge tile must not do is to store its fill:
behind the last column of a row, the next row begins.

Store where tileX + column < kWidth and tileY + row < kHeight, and nowhere else. The map has
dims=(200, 120) and strides_bytes=(800,).
"""

_RING = """
Ask for as many tiles as there are stages before the loop begins. In the loop, tile n stands in
stage n % kStages.

Each stage has a barrier with phases of its own. Tile n is number n / kStages in its stage, and the
parity of that phase is the number's last bit.

The stage of tile n is free when all threads have stored it: behind __syncthreads(). Then one thread
asks for tile n + kStages, if there is such a tile.
"""

_STORE = """
After the wait the tile belongs to the threads: they can add 1 to it in place. Then the engine reads
what they wrote. Through which door?

Each thread that wrote runs ptx::fence_proxy_async(ptx::space_shared), then all meet, then thread 0
asks: ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &outMap, start, tile).

A store reports to no barrier. Behind it, thread 0 closes a group with
ptx::cp_async_bulk_commit_group(), and waits until the engine has read the tile with
ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{}).
"""

_SWIZZLE = """
A row of the tile is 128 bytes, one word a bank, so a column lies in one bank. The map can have the
engine shuffle each row differently: swizzle="128B".

The engine moves pieces of 16 bytes, 4 floats. Piece p of row r of the tile goes to place
p ^ (r % 8) of that row.

const int place = ((column / 4) ^ (row % 8)) * 4 + column % 4;
"""


def _split(text: str) -> tuple[str, ...]:
    """Paragraphs, each on one line."""
    return tuple(" ".join(part.split()) for part in text.strip().split("\n\n"))


HINTS = {
    "edges": _split(_EDGES),
    "ring": _split(_RING),
    "store": _split(_STORE),
    "swizzle": _split(_SWIZZLE),
}
