"""Memory of a launch: where an address lies, whether it may be accessed, and the bytes.

PTX ISA, "State Spaces". Models global memory (one arena with guard gaps, also home of constants and
kernel parameters), shared memory (one flat array a batch), local memory (one row a lane) and
generic addressing. An access outside of every allocation, or off its natural alignment, is a fault
as on the chip, but at the byte: the chip notices only when a page or window ends. Caches do not
exist here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lesson.emulator.lanes import Mask
from lesson.emulator.windows import (
    CALL_PARAM_BASE,
    GLOBAL_BASE,
    LOCAL_WINDOW,
    SHARED_FIRST,
    SHARED_OFFSET_MASK,
    SHARED_RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_NBYTES,
)
from lesson.errors import IllegalAddress, MisalignedAddress

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine
    from lesson.emulator.ptx import Instr

Index = NDArray[np.int64]
ALLOCATION_ALIGN = 1024
GUARD_NBYTES = 4096
_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4, 32: 5}


class Buffer:
    """Bytes, also as wider words. `size` is a multiple of 32."""

    __slots__ = ("u8", "views")

    def __init__(self, u8: NDArray[np.uint8]) -> None:
        self.u8 = u8
        self.views = {
            1: u8,
            2: u8.view(np.uint16),
            4: u8.view(np.uint32),
            8: u8.view(np.uint64),
        }


@dataclass(slots=True, eq=False)
class Segment:
    """One allocation: arena bytes [start, start + nbytes). `space`: global, const or param.

    `is_written`: whether the kernel may have changed it, so that it has to be copied back.
    """

    start: int
    nbytes: int
    name: str
    space: str
    is_writable: bool
    is_written: bool = False

    @property
    def address(self) -> int:
        """Its address on the device."""
        return GLOBAL_BASE + self.start


class Place(NamedTuple):
    """Where some lanes access: a buffer, a byte index a lane (or one for all), the space's name."""

    buffer: Buffer
    index: Index
    space: str


class GlobalMemory:
    """The arena. Allocate first, then `build`, then access."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.nbytes = GUARD_NBYTES
        self.buffer = Buffer(np.zeros(32, np.uint8))
        self.starts = np.zeros(0, np.int64)
        self.last: Segment | None = None
        self.base = np.uint64(0)

    def allocate(
        self, nbytes: int, name: str, space: str = "global", is_writable: bool = True
    ) -> Segment:
        """Reserve room behind the last allocation and a guard gap."""
        segment = Segment(self.nbytes, nbytes, name, space, is_writable)
        self.nbytes += -(-(nbytes + GUARD_NBYTES) // ALLOCATION_ALIGN) * ALLOCATION_ALIGN
        self.segments.append(segment)
        return segment

    def build(self) -> None:
        """Make the arena; its bytes are undefined until written."""
        self.buffer = Buffer(np.empty(self.nbytes, np.uint8))
        self.starts = np.array([segment.start for segment in self.segments], np.int64)
        self.remember(self.segments[0])

    def remember(self, segment: Segment) -> None:
        """The segment that the next access is likely to hit."""
        self.last = segment
        self.base = np.uint64(segment.start + GLOBAL_BASE)

    def segment_of(self, index: int) -> Segment | None:
        """The allocation that holds an arena byte, or None."""
        at = int(np.searchsorted(self.starts, index, "right")) - 1
        if at < 0 or index >= self.segments[at].start + self.segments[at].nbytes:
            return None
        return self.segments[at]

    def bytes_of(self, segment: Segment) -> NDArray[np.uint8]:
        """The bytes of an allocation, as a view."""
        return self.buffer.u8[segment.start : segment.start + segment.nbytes]

    def near(self, address: int) -> str:
        """Words on the allocation next to an address that hits none."""
        at = int(np.searchsorted(self.starts, address - GLOBAL_BASE, "right")) - 1
        if not 0 <= address - GLOBAL_BASE < self.nbytes or at < 0:
            return "no allocation is near"
        segment = self.segments[at]
        beyond = address - segment.address - segment.nbytes
        if beyond < 0:
            return f"it is in {segment.name} ({segment.nbytes} bytes, {segment.space} memory)"
        return f"{beyond} bytes past the end of {segment.name} ({segment.nbytes} bytes)"


def _aligned(
    m: Machine, instr: Instr, offset: NDArray[np.uint64], nbytes: int, act: Mask, addr: NDArray
) -> None:
    """Fault unless every offset is a multiple of the access."""
    if nbytes > 1 and int(np.bitwise_or.reduce(offset)) & (nbytes - 1):
        at = int(np.flatnonzero(offset & np.uint64(nbytes - 1))[0])
        raise m.fault(
            MisalignedAddress,
            f"the address of {instr.name} must be a multiple of {nbytes} bytes, got "
            f"{int(addr[at]):#x}",
            instr,
            m.lane_of(act, at),
            "Align the variable, or access it in smaller pieces.",
        )


def global_place(
    m: Machine, instr: Instr, addr: NDArray[np.uint64], nbytes: int, act: Mask, is_write: bool
) -> Place:
    """Where global (or generic, non-window) addresses lie."""
    memory = m.memory
    for _ in range(2):
        segment, offset = memory.last, addr - memory.base
        if int(np.maximum.reduce(offset)) <= segment.nbytes - nbytes:
            if is_write:
                if not segment.is_writable:
                    break
                segment.is_written = True
            _aligned(m, instr, offset, nbytes, act, addr)
            return Place(memory.buffer, offset.view(np.int64) + segment.start, segment.space)
        found = memory.segment_of(int(addr[0]) - GLOBAL_BASE)
        if found is None or found is segment:
            break
        memory.remember(found)
    return _search(m, instr, addr, nbytes, act, is_write)


def _search(
    m: Machine, instr: Instr, addr: NDArray[np.uint64], nbytes: int, act: Mask, is_write: bool
) -> Place:
    """The slow way: any allocation for any lane."""
    memory = m.memory
    _aligned(m, instr, addr, nbytes, act, addr)
    index = (addr - np.uint64(GLOBAL_BASE)).view(np.int64)
    at = np.searchsorted(memory.starts, index, "right") - 1
    ends = np.array([s.start + s.nbytes for s in memory.segments])
    bad = (at < 0) | (index > ends[at] - nbytes) | (index < 0)
    if is_write:
        bad |= ~np.array([s.is_writable for s in memory.segments])[at]
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        address = int(addr[first])
        raise m.fault(
            IllegalAddress,
            f"the address of {instr.name} must be inside {'a writable' if is_write else 'an'} "
            f"allocation, got {address:#x}: "
            f"{memory.near(address)}",
            instr,
            m.lane_of(act, first),
            "Check the index against the bounds of the array.",
        )
    for number in np.unique(at).tolist() if is_write else ():
        memory.segments[number].is_written = True
    segment = memory.segments[int(at[0])]
    memory.remember(segment)
    return Place(memory.buffer, index, segment.space)


def shared_place(
    m: Machine,
    instr: Instr,
    addr: NDArray[np.generic],
    nbytes: int,
    act: Mask,
    is_cluster: bool = False,
    align: int = 0,
) -> Place:
    """Where addresses of the shared window lie; a peer's memory only with `is_cluster`.

    `align` is for accesses whose alignment is not their size.
    """
    addr = addr.astype(np.uint64) if addr.dtype != np.uint64 else addr
    first = m.of(m.shared_first, act)
    offset = addr - first
    if int(np.maximum.reduce(offset)) > m.shared_nbytes - nbytes:
        return _cluster_place(m, instr, addr, nbytes, act, is_cluster, align)
    _aligned(m, instr, addr, align or nbytes, act, addr)
    return Place(m.shared, offset.view(np.int64) + m.of(m.shared_base, act), "shared")


def _cluster_place(
    m: Machine,
    instr: Instr,
    addr: NDArray[np.uint64],
    nbytes: int,
    act: Mask,
    is_cluster: bool,
    align: int,
) -> Place:
    """Shared addresses that are not all in the lane's own block."""
    addr = np.broadcast_to(addr, act.n) if addr.size == 1 else addr
    _aligned(m, instr, addr, align or nbytes, act, addr)
    rank = (addr >> np.uint64(SHARED_RANK_SHIFT)).view(np.int64)
    offset = (addr & np.uint64(SHARED_OFFSET_MASK)).view(np.int64) - SHARED_FIRST
    block = m.block_of[act.idx]
    own = block % m.cluster_nblocks
    bad = (offset < 0) | (offset > m.shared_nbytes - nbytes) | (rank >= m.cluster_nblocks)
    if not is_cluster:
        bad |= rank != own
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise m.fault(
            IllegalAddress,
            f"the shared address of {instr.name} must be inside the {m.shared_nbytes} bytes of "
            "its block from "
            f"{int(own[at]) << SHARED_RANK_SHIFT | SHARED_FIRST:#x}, got {int(addr[at]):#x}",
            instr,
            int(act.idx[at]),
            "Check the index, and the shared memory that the launch asks for.",
        )
    index = (block - own + rank) * m.shared_stride + offset
    return Place(m.shared, index, "shared")


def local_place(
    m: Machine, instr: Instr, addr: NDArray[np.generic], nbytes: int, act: Mask
) -> Place:
    """Where addresses of the local window lie: each lane has its own row."""
    offset = addr.astype(np.uint64) if addr.dtype != np.uint64 else addr
    if int(np.maximum.reduce(offset)) > m.local_stride - nbytes:
        at = int(np.argmax(offset))
        raise m.fault(
            IllegalAddress,
            f"the local address of {instr.name} must be inside the thread's {m.local_stride} "
            f"bytes, got {int(addr[at]):#x}",
            instr,
            m.lane_of(act, at),
            "Check the index against the bounds of the array.",
        )
    _aligned(m, instr, offset, nbytes, act, addr)
    row = m.local_row if act.n == m.nlanes else m.local_row[act.idx]
    return Place(m.local, row + offset.view(np.int64), "local")


def param_place(
    m: Machine, instr: Instr, addr: NDArray[np.generic], nbytes: int, act: Mask
) -> Place:
    """Where addresses of .param space lie: kernel parameters, or those of a device function."""
    wide = addr.astype(np.uint64)
    if int(wide[0]) >= CALL_PARAM_BASE:
        return local_place(m, instr, wide - np.uint64(CALL_PARAM_BASE), nbytes, act)
    return global_place(m, instr, wide + np.uint64(m.param_segment.address), nbytes, act, False)


def generic_place(
    m: Machine, instr: Instr, addr: NDArray[np.uint64], nbytes: int, act: Mask, is_write: bool
) -> Place | None:
    """Where generic addresses lie; None if the lanes mean more than one space."""
    window = addr >> np.uint64(32)
    first = int(window[0])
    is_shared, is_local = first == SHARED_WINDOW >> 32, first == LOCAL_WINDOW >> 32
    if not (is_shared or is_local):
        low, high = np.uint64(SHARED_WINDOW >> 32), np.uint64(LOCAL_WINDOW >> 32)
        if ((window == low) | (window == high)).any():
            return None
        return global_place(m, instr, addr, nbytes, act, is_write)
    if int(window.max()) != first or int(window.min()) != first:
        return None
    offset = addr & np.uint64(WINDOW_NBYTES - 1)
    if is_shared:
        return shared_place(m, instr, offset, nbytes, act, is_cluster=True)
    return local_place(m, instr, offset, nbytes, act)
