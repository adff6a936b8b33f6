"""The catalogue: every kind of finding by its stable name, with what it means.

`rank` orders causes before consequences: of all that one run showed, the lowest rank is most likely the mistake
itself and the rest followed from it.
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


_ALL = (
    # What the driver refuses before any thread runs.
    Kind("map-refused", REFUSED, "cuTensorMapEncodeTiled refuses the tensor map"),
    Kind("launch-refused", REFUSED, "the grid, block, cluster or shared memory of the launch is not allowed"),
    Kind("shared-memory-opt-in", REFUSED, "more than 48 KiB of dynamic shared memory without raising the limit"),
    # The map as an argument.
    Kind("map-not-grid-constant", SET_UP, "the map is copied to local memory for want of __grid_constant__"),
    Kind("map-pointer-unfenced", SET_UP, "a map in global memory is used without fence.proxy.tensormap"),
    Kind("map-not-a-map", SET_UP, "the address of the map does not point at a tensor map"),
    # Setting up barriers.
    Kind("barrier-not-initialised", SET_UP, "a barrier is used that nobody has initialised"),
    Kind("barrier-init-unsynced", SET_UP, "threads use a barrier without knowing that it is initialised"),
    Kind("barrier-not-published", SET_UP, "no fence makes the initialised barrier visible to the copy engine"),
    Kind("barrier-reinit", SET_UP, "a barrier is initialised again while it is live"),
    Kind("barrier-after-inval", SET_UP, "a barrier is used after mbarrier.inval"),
    Kind("barrier-overwritten", SET_UP, "data is stored over a live barrier, without mbarrier.inval"),
    Kind("barrier-read-as-data", SET_UP, "the bytes of a live barrier are read as data"),
    Kind("init-count-too-small", SET_UP, "more threads arrive in a phase than the barrier was initialised for"),
    Kind("init-count-too-large", SET_UP, "the barrier waits for more arrivals than there are threads to arrive"),
    # Alignment, sizes, places.
    Kind("misaligned-shared", SET_UP, "the shared memory address of a copy is not aligned"),
    Kind("misaligned-barrier", SET_UP, "an mbarrier does not lie on a multiple of 8 bytes"),
    Kind("misaligned-address", FAULT, "an access is not aligned to its size"),
    Kind("misaligned-coordinate", SET_UP, "the innermost start coordinate is off the 16-byte boundary"),
    Kind("negative-store-coordinate", SET_UP, "a tensor store or reduction starts at a negative coordinate"),
    Kind("bulk-size", SET_UP, "the size of a bulk copy is no multiple of 16 bytes"),
    Kind("reduction-type", SET_UP, "the map's type has no such reduction"),
    Kind("copy-overruns-array", SET_UP, "a copy writes past the end of its shared array"),
    Kind("copy-overruns-barrier", SET_UP, "a copy writes over the barrier that lies behind its buffer"),
    # Issuing copies and counting their bytes.
    Kind("every-thread-issues", SET_UP, "many threads issue the same copy"),
    Kind("too-few-bytes-expected", CAUSE, "the barrier expects fewer bytes than the copies bring"),
    Kind("too-many-bytes-expected", CAUSE, "the barrier expects more bytes than the copies bring: a hang"),
    Kind("bytes-not-expected", CAUSE, "the barrier expects none of the bytes that a copy brings"),
    Kind("no-copy-issued", CAUSE, "bytes are expected, and no copy was ever issued"),
    Kind("bytes-out-of-range", CAUSE, "the transaction count leaves its range of 2**20 - 1 bytes"),
    Kind("phase-over-early", CAUSE, "a phase is over though a copy of it is still in flight"),
    # Waiting and reading.
    Kind("read-before-wait", CAUSE, "bytes of a copy are read without waiting for its barrier"),
    Kind("wait-wrong-parity", CAUSE, "a wait asks for the parity of another phase than the one it means"),
    Kind("read-uninitialised", CAUSE, "shared memory is read that nothing has written"),
    Kind("read-unsynced", CAUSE, "shared memory is read with nothing to order the read behind the write"),
    Kind("write-while-read", CAUSE, "shared memory is written while another thread may still read it"),
    Kind("read-before-cp-async", CAUSE, "bytes of a cp.async are read before its group was waited for"),
    Kind("write-into-copy", CAUSE, "threads write into bytes that a copy is still filling"),
    Kind("copy-into-copy", CAUSE, "a copy writes into bytes that another copy is still filling"),
    Kind("copy-over-unsynced-write", CAUSE, "a copy overwrites what a thread wrote, with nothing to order them"),
    Kind("buffer-reused-early", CAUSE, "a copy refills a buffer that other threads may still read"),
    # Stores through the engine.
    Kind("store-unfenced", CAUSE, "no proxy fence between plain writes and the bulk store that reads them"),
    Kind("store-unsynced", CAUSE, "a bulk store reads what other threads wrote, with nothing to order them"),
    Kind("store-before-phase", CAUSE, "a bulk store reads bytes of a copy whose phase was not waited for"),
    Kind("store-of-uninitialised", CAUSE, "a bulk store reads shared memory that nothing has written"),
    Kind("store-source-reused", CAUSE, "the source of a bulk store is overwritten before it has been read"),
    Kind("store-not-committed", LIFETIME, "a bulk store is never committed to a bulk group"),
    Kind("store-not-waited", LIFETIME, "the thread exits before its bulk store has read shared memory"),
    Kind("global-unfenced", CAUSE, "global memory that threads wrote is read by a bulk copy without a proxy fence"),
    Kind("global-read-early", CAUSE, "the result of a bulk store is read before the store is complete"),
    # Lifetimes.
    Kind("copy-never-waited", LIFETIME, "the block exits while a copy may still write its shared memory"),
    Kind("remote-before-start", CAUSE, "a peer's shared memory is used before that block is known to run"),
    Kind("block-exits-early", LIFETIME, "a block exits while others may still use its shared memory"),
    # Hangs.
    Kind("different-barriers", HANG, "threads of one block wait at different barriers, each for the others"),
    Kind("divergent-barrier", HANG, "some threads wait at a block barrier that the others never reach"),
    Kind("arrivals-missing", HANG, "a barrier waits for arrivals that never come"),
    Kind("phase-never-ends", HANG, "a wait for a phase that nobody completes"),
    Kind("hang", HANG, "threads wait for ever"),
    Kind("no-end", HANG, "the kernel did not finish within the limits"),
    # Faults.
    Kind("out-of-bounds", FAULT, "an access outside of its array"),
    Kind("shared-out-of-bounds", FAULT, "an access outside of the shared memory of the block"),
    Kind("fault", FAULT, "the chip stops the kernel with an error"),
    # Outputs.
    Kind("written-by-several-blocks", OUTPUT, "several blocks write different values to one element"),
    Kind("map-dtype-size", OUTPUT, "the map's element is not as large as the array's"),
    Kind("map-dtype-format", OUTPUT, "the map's element type is another format than the array's"),
    Kind("map-sizes-in-bytes", OUTPUT, "the sizes of the map count bytes"),
    Kind("map-x-y-swapped", OUTPUT, "the sizes of the map are in numpy's order"),
    Kind("map-strides-in-elements", OUTPUT, "the strides of the map count elements"),
    Kind("map-view-stride", OUTPUT, "the stride of the map is not that of the view"),
    Kind("map-rows-overlap", OUTPUT, "the rows of the map overlap in memory"),
    Kind("map-slices-ignored", OUTPUT, "the map ignores a slice of the array"),
    Kind("map-step-ignored", OUTPUT, "the map ignores the step of a view"),
    Kind("map-innermost-gaps", OUTPUT, "neighbours in a row of the array do not touch"),
    Kind("map-other-start", OUTPUT, "the map starts at another address than the array"),
    Kind("box-outside-tensor", OUTPUT, "a box lies wholly outside of the tensor: all of it is fill"),
    Kind("x-y-swapped", OUTPUT, "tiles hold the data of the tile with x and y swapped"),
    Kind("wrong-tile", OUTPUT, "tiles hold the data of other tiles"),
    Kind("tile-transposed", OUTPUT, "tiles are transposed"),
    Kind("swizzle-not-undone", OUTPUT, "the data is permuted as a swizzle does it"),
    Kind("row-length-wrong", OUTPUT, "rows of the tile are cut at another length than they were brought in"),
    Kind("tile-shifted", OUTPUT, "the data is shifted"),
    Kind("never-written", OUTPUT, "elements of the output are never written"),
    Kind("output-wrong", OUTPUT, "the output differs from what is expected"),
)  # fmt: skip

KINDS = {kind.name: kind for kind in _ALL}
