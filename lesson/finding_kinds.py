"""The catalogue: every kind of finding by its stable name, with what it means.

`rank` orders causes before consequences: of all that one run showed, the lowest rank is most
likely the mistake itself and the rest followed from it.
"""

from __future__ import annotations

from dataclasses import dataclass

REFUSED, SET_UP, CAUSE, LIFETIME, FAULT, HANG, OUTPUT = range(7)


@dataclass(frozen=True)
class Kind:
    """One kind of mistake. `says`: what it is, in a line of the catalogue."""

    name: str
    rank: int
    says: str


def _kinds(rank: int, table: str) -> tuple[Kind, ...]:
    """Lines of `name: meaning`."""
    rows = (line.split(": ", 1) for line in table.strip().splitlines())
    return tuple(Kind(name, rank, says) for name, says in rows)


# What the driver refuses before any thread runs.
_REFUSED = _kinds(
    REFUSED,
    """
map-refused: cuTensorMapEncodeTiled refuses the tensor map
launch-refused: the grid, block, cluster or shared memory of the launch is not allowed
shared-memory-opt-in: more than 48 KiB of dynamic shared memory without raising the limit
""",
)
# Barriers, maps, places and sizes that are wrong from the start.
_SET_UP = _kinds(
    SET_UP,
    """
map-not-grid-constant: the map is copied to local memory for want of __grid_constant__
map-pointer-unfenced: a map in global memory is used without fence.proxy.tensormap
map-not-a-map: the address of the map does not point at a tensor map
barrier-not-initialised: a barrier is used that nobody has initialised
barrier-init-unsynced: threads use a barrier without knowing that it is initialised
barrier-not-published: no fence makes the initialised barrier visible to the copy engine
barrier-reinit: a barrier is initialised again while it is live
barrier-after-inval: a barrier is used after mbarrier.inval
barrier-inval-early: a barrier is invalidated while other threads may still wait at it
barrier-overwritten: data is stored over a live barrier, without mbarrier.inval
barrier-read-as-data: the bytes of a live barrier are read as data
init-count-too-small: more threads arrive in a phase than the barrier was initialised for
init-count-too-large: the barrier waits for more arrivals than there are threads to arrive
misaligned-shared: the shared memory address of a copy is not aligned
misaligned-barrier: an mbarrier does not lie on a multiple of 8 bytes
misaligned-coordinate: the innermost start coordinate is off the 16-byte boundary
negative-store-coordinate: a tensor store or reduction starts at a negative coordinate
bulk-size: the size of a bulk copy is no multiple of 16 bytes
reduction-type: the map's type has no such reduction
copy-overruns-array: a copy writes past the end of its shared array
copy-overruns-barrier: a copy writes over the barrier that lies behind its buffer
every-thread-issues: many threads issue the same copy
""",
)
# The order of copies, threads and proxies; bytes and phases.
_CAUSE = _kinds(
    CAUSE,
    """
too-few-bytes-expected: the barrier expects fewer bytes than the copies bring
too-many-bytes-expected: the barrier expects more bytes than the copies bring: a hang
bytes-not-expected: the barrier expects none of the bytes that a copy brings
no-copy-issued: bytes are expected, and no copy was ever issued
bytes-out-of-range: the transaction count leaves its range of 2**20 - 1 bytes
phase-over-early: a phase is over though a copy of it is still in flight
read-before-wait: bytes of a copy are read without waiting for its barrier
wait-wrong-parity: a wait asks for the parity of another phase than the one it means
read-uninitialised: shared memory is read that nothing has written
read-unsynced: shared memory is read with nothing to order the read behind the write
write-while-read: shared memory is written while another thread may still read it
read-before-cp-async: bytes of a cp.async are read before its group was waited for
write-into-copy: threads write into bytes that a copy is still filling
copy-into-copy: a copy writes into bytes that another copy is still filling
copy-over-unsynced-write: a copy overwrites what a thread wrote, with nothing to order them
buffer-reused-early: a copy refills a buffer that other threads may still read
store-unfenced: no proxy fence between plain writes and the bulk store that reads them
store-unsynced: a bulk store reads what other threads wrote, with nothing to order them
store-before-phase: a bulk store reads bytes of a copy whose phase was not waited for
store-of-uninitialised: a bulk store reads shared memory that nothing has written
store-source-reused: the source of a bulk store is overwritten before it has been read
global-unfenced: global memory that threads wrote is read by a bulk copy without a proxy fence
global-read-early: the result of a bulk store is read before the store is complete
remote-before-start: a peer's shared memory is used before that block is known to run
""",
)
# What ends before what needs it.
_LIFETIME = _kinds(
    LIFETIME,
    """
store-not-committed: a bulk store is never committed to a bulk group
store-not-waited: the thread exits before its bulk store has read shared memory
copy-never-waited: the block exits while a copy may still write its shared memory
block-exits-early: a block exits while others may still use its shared memory
""",
)
# What the chip stops a kernel for.
_FAULT = _kinds(
    FAULT,
    """
misaligned-address: an access is not aligned to its size
out-of-bounds: an access outside of its array
shared-out-of-bounds: an access outside of the shared memory of the block
fault: the chip stops the kernel with an error
""",
)
# Who waits for ever.
_HANG = _kinds(
    HANG,
    """
different-barriers: threads of one block wait at different barriers, each for the others
divergent-barrier: some threads wait at a block barrier that the others never reach
arrivals-missing: a barrier waits for arrivals that never come
phase-never-ends: a wait for a phase that nobody completes
hang: threads wait for ever
no-end: the kernel did not finish within the limits
""",
)
# Outputs that are not what they should be.
_OUTPUT = _kinds(
    OUTPUT,
    """
written-by-several-blocks: several blocks write different values to one element
map-dtype-size: the map's element is not as large as the array's
map-dtype-format: the map's element type is another format than the array's
map-sizes-in-bytes: the sizes of the map count bytes
map-x-y-swapped: the sizes of the map are in numpy's order
map-strides-in-elements: the strides of the map count elements
map-view-stride: the stride of the map is not that of the view
map-rows-overlap: the rows of the map overlap in memory
map-slices-ignored: the map ignores a slice of the array
map-step-ignored: the map ignores the step of a view
map-innermost-gaps: neighbours in a row of the array do not touch
map-other-start: the map starts at another address than the array
box-outside-tensor: a box lies wholly outside of the tensor: all of it is fill
x-y-swapped: tiles hold the data of the tile with x and y swapped
wrong-tile: tiles hold the data of other tiles
tile-transposed: tiles are transposed
swizzle-not-undone: the data is permuted as a swizzle does it
swizzle-misaligned: a swizzled tile does not start where its pattern does
row-length-wrong: rows of the tile are cut at another length than they were brought in
tile-shifted: the data is shifted
never-written: elements of the output are never written
output-wrong: the output differs from what is expected
""",
)

KINDS = {
    kind.name: kind for kind in _REFUSED + _SET_UP + _CAUSE + _LIFETIME + _FAULT + _HANG + _OUTPUT
}
