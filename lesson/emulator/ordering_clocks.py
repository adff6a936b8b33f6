"""Who knows what of whom: vector clocks whose rows are shared by lanes that know the same.

Follows the causality order of the PTX ISA, "Memory Consistency Model". A *domain* is a cluster (one
block without clusters): the threads that can share memory and barriers. Each lane stamps what it
does with its own clock, which goes on at each release. A row of `know` has one column a thread of
the domain and one for each pseudo-agent (an mbarrier: phases completed; a thread's bulk stores:
groups read or written): the latest stamp of that column that is known to happen before. A row of
`fenced` says the same of generic writes that a fence.proxy.async has published to the async proxy.
A thread always knows itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lesson.emulator.lanes import Mask

Lanes = NDArray[np.int64]
Row = NDArray[np.int32]
SPARE_COLUMNS = 16
FIRST_ROWS = 64


class Shared(NamedTuple):
    """What a release hands over: a row of knowledge and a row of what is fenced."""

    know: Row
    fenced: Row


class Clocks:
    """The knowledge of all lanes of a batch."""

    def __init__(self, nlanes: int, domain_lanes: int) -> None:
        self.domain_lanes = domain_lanes
        self.domain = np.arange(nlanes) // domain_lanes
        self.column = np.arange(nlanes) % domain_lanes
        ndomains = nlanes // domain_lanes
        self.clock = np.ones(nlanes, np.int32)
        self._snapshot: NDArray[np.int32] | None = None
        self.own_fenced = np.zeros(nlanes, np.int32)
        self.row = self.domain.copy()
        self._rows_of: tuple[Mask, NDArray[np.int64]] | None = None
        self.nrows = ndomains
        self.columns_used = [domain_lanes] * ndomains
        width = domain_lanes + SPARE_COLUMNS
        self.know = np.zeros((max(FIRST_ROWS, 4 * ndomains), width), np.int32)
        self.fenced = np.zeros_like(self.know)

    # ------------------------------------------------------------------------------------ room
    def new_column(self, domain: int) -> int:
        """A column for a pseudo-agent of a domain; all rows say 0 of it."""
        at = self.columns_used[domain]
        self.columns_used[domain] += 1
        if at >= self.know.shape[1]:
            more = ((0, 0), (0, self.know.shape[1] // 2))
            self.know, self.fenced = np.pad(self.know, more), np.pad(self.fenced, more)
        return at

    def empty(self) -> Shared:
        """Rows that know nothing."""
        width = self.know.shape[1]
        return Shared(np.zeros(width, np.int32), np.zeros(width, np.int32))

    def _rows(self, count: int) -> NDArray[np.int64]:
        """Numbers of fresh rows."""
        if self.nrows + count > self.know.shape[0]:
            used, self.row = np.unique(self.row, return_inverse=True)
            self._rows_of = None
            size = max(self.know.shape[0], 2 * (used.size + count))
            for name in ("know", "fenced"):
                table = np.zeros((size, self.know.shape[1]), np.int32)
                table[: used.size] = getattr(self, name)[used]
                setattr(self, name, table)
            self.nrows = used.size
        first = self.nrows
        self.nrows += count
        return np.arange(first, first + count)

    def snapshot(self) -> NDArray[np.int32]:
        """All clocks as they are now."""
        if self._snapshot is None:
            self._snapshot = self.clock.copy()
        return self._snapshot

    def tick(self, lanes: Lanes) -> None:
        """The clocks of lanes that have released go on."""
        self.clock[lanes] += 1
        self._snapshot = None

    def _move(self, lanes: Lanes, rows: NDArray[np.int64] | int) -> None:
        """Lanes know from now on what these rows say."""
        self.row[lanes] = rows
        self._rows_of = None

    # ------------------------------------------------------------------------------- questions
    def rows_of(self, act: Mask) -> NDArray[np.int64]:
        """The rows of some lanes, each at least once."""
        if self._rows_of is None or self._rows_of[0] is not act:
            rows = self.row[act.idx]
            self._rows_of = act, rows[np.flatnonzero(np.diff(rows, prepend=-1))]
        return self._rows_of[1]

    def knows(self, lanes: Lanes, column: NDArray, stamp: NDArray) -> NDArray[np.bool_]:
        """Whether each lane knows of that stamp of that column of its domain."""
        return (self.know[self.row[lanes], column] >= stamp) | (column == self.column[lanes])

    def lane_knows(self, lane: int, columns: NDArray, stamps: NDArray) -> NDArray[np.bool_]:
        """The same of one lane and many columns."""
        return (self.know[self.row[lane]][columns] >= stamps) | (columns == self.column[lane])

    def lane_sees_fenced(self, lane: int, columns: NDArray, stamps: NDArray) -> NDArray[np.bool_]:
        """Whether generic writes of those stamps are fenced on the way to this lane."""
        own = (columns == self.column[lane]) & (self.own_fenced[lane] >= stamps)
        return (self.fenced[self.row[lane]][columns] >= stamps) | own

    def lane_sees_one_fenced(self, lane: int, column: int, stamp: int) -> bool:
        """The same of one write."""
        if column == self.column[lane] and self.own_fenced[lane] >= stamp:
            return True
        return bool(self.fenced[self.row[lane], column] >= stamp)

    # ----------------------------------------------------------------------------------- edges
    def release(self, lanes: Lanes, into: Shared | None = None) -> Shared:
        """A row of what lanes of one domain know, and of what `into` says, which stays as it is;
        their clocks go on."""
        rows = self.row[lanes]
        rows = rows[:1] if rows.size == 1 or (rows == rows[0]).all() else np.unique(rows)
        know, fenced = self.know[rows].max(axis=0), self.fenced[rows].max(axis=0)
        if into is not None:
            before = self.padded(into)
            np.maximum(know, before.know, out=know)
            np.maximum(fenced, before.fenced, out=fenced)
        columns = self.column[lanes]
        know[columns] = self.clock[lanes]
        fenced[columns] = np.maximum(fenced[columns], self.own_fenced[lanes])
        self.tick(lanes)
        return Shared(know, fenced)

    def padded(self, shared: Shared) -> Shared:
        """The rows, as wide as the table is by now."""
        missing = self.know.shape[1] - shared.know.size
        if not missing:
            return shared
        return Shared(*(np.pad(each, (0, missing)) for each in shared))

    def acquire(self, lanes: Lanes, source: Shared) -> None:
        """Lanes of one domain learn a row."""
        know, fenced = self.padded(source)
        row = self.row[lanes]
        if (row == row[0]).all():
            if (self.know[row[0]] >= know).all() and (self.fenced[row[0]] >= fenced).all():
                return
            (fresh,) = self._rows(1)
            now = self.row[lanes[0]]
            np.maximum(self.know[now], know, out=self.know[fresh])
            np.maximum(self.fenced[now], fenced, out=self.fenced[fresh])
            self._move(lanes, fresh)
            return
        rows, inverse = np.unique(row, return_inverse=True)
        if (self.know[rows] >= know).all() and (self.fenced[rows] >= fenced).all():
            return
        fresh = self._rows(rows.size)
        rows = np.unique(self.row[lanes])  # the table may have been compacted
        self.know[fresh] = np.maximum(self.know[rows], know)
        self.fenced[fresh] = np.maximum(self.fenced[rows], fenced)
        self._move(lanes, fresh[inverse])

    def meet(self, lanes: Lanes, group: NDArray[np.int64], ngroups: int) -> None:
        """Lanes of each group (of one domain) learn all that the group knows."""
        know, fenced = self._joined(lanes, group, ngroups)
        fresh = self._rows(ngroups)
        self.know[fresh], self.fenced[fresh] = know, fenced
        self._move(lanes, fresh[group])
        self.tick(lanes)

    def _joined(
        self, lanes: Lanes, group: NDArray[np.int64], ngroups: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """What each group knows together, the own clocks of its lanes included: a row a group."""
        rows = self.row[lanes]
        first = np.flatnonzero(np.diff(group, prepend=-1))
        if first.size == ngroups and (rows == rows[first][group]).all():
            know, fenced = self.know[rows[first]], self.fenced[rows[first]]
        else:
            pairs = np.unique(group * np.int64(self.know.shape[0]) + rows)
            groups, pair_rows = np.divmod(pairs, self.know.shape[0])
            starts = np.flatnonzero(np.diff(groups, prepend=-1))
            know = np.maximum.reduceat(self.know[pair_rows], starts)
            fenced = np.maximum.reduceat(self.fenced[pair_rows], starts)
        columns = self.column[lanes]
        know[group, columns] = self.clock[lanes]
        fenced[group, columns] = np.maximum(fenced[group, columns], self.own_fenced[lanes])
        return know, fenced

    def release_all(self, parts: list[Lanes], into: list[Shared | None]) -> list[Shared]:
        """`release` of several sets of lanes, each into a row of its own."""
        if len(parts) == 1:
            return [self.release(parts[0], into[0])]
        lanes = np.concatenate(parts)
        group = np.repeat(np.arange(len(parts)), [part.size for part in parts])
        know, fenced = self._joined(lanes, group, len(parts))
        self.tick(lanes)
        for k, each in enumerate(into):
            if each is not None:
                before = self.padded(each)
                np.maximum(know[k], before.know, out=know[k])
                np.maximum(fenced[k], before.fenced, out=fenced[k])
        return [Shared(*pair) for pair in zip(know, fenced, strict=True)]

    def acquire_all(self, parts: list[Lanes], sources: list[Shared]) -> None:
        """`acquire` of several sets of lanes, each from a row of its own."""
        if len(parts) == 1:
            self.acquire(parts[0], sources[0])
            return
        wide = [self.padded(source) for source in sources]
        know, fenced = np.stack([w.know for w in wide]), np.stack([w.fenced for w in wide])
        lanes = np.concatenate(parts)
        sizes = [part.size for part in parts]
        group = np.repeat(np.arange(len(parts)), sizes)
        first = np.cumsum([0, *sizes[:-1]])
        rows = self.row[lanes]
        if not (rows == rows[first][group]).all():
            for part, source in zip(parts, sources, strict=True):
                self.acquire(part, source)
            return
        old = rows[first]
        if (self.know[old] >= know).all() and (self.fenced[old] >= fenced).all():
            return
        fresh = self._rows(len(parts))
        old = self.row[lanes[first]]
        self.know[fresh] = np.maximum(self.know[old], know)
        self.fenced[fresh] = np.maximum(self.fenced[old], fenced)
        self._move(lanes, fresh[group])

    def fence_async(self, lanes: Lanes) -> None:
        """fence.proxy.async: what each lane knows and wrote is published to the async proxy."""
        rows, inverse = np.unique(self.row[lanes], return_inverse=True)
        known = self.know[rows][:, : self.domain_lanes]
        if (self.fenced[rows][:, : self.domain_lanes] < known).any():
            fresh = self._rows(rows.size)
            rows = np.unique(self.row[lanes])
            self.know[fresh] = self.know[rows]
            self.fenced[fresh] = np.maximum(self.fenced[rows], self.know[rows])
            self._move(lanes, fresh[inverse])
        self.own_fenced[lanes] = self.clock[lanes]
        self.tick(lanes)

    def learn(self, lane: int, column: int, stamp: int) -> None:
        """One lane learns of one stamp."""
        if self.know[self.row[lane], column] >= stamp:
            return
        (fresh,) = self._rows(1)
        self.know[fresh] = self.know[self.row[lane]]
        self.fenced[fresh] = self.fenced[self.row[lane]]
        self.know[fresh, column] = stamp
        self._move(lane, fresh)


def by_owner(lanes: Lanes, size: int) -> list[tuple[int, Lanes]]:
    """The lanes, given in order, of each owner of `size` of them: a block, or a cluster."""
    if not lanes.size:
        return []
    first, last = int(lanes[0]) // size, int(lanes[-1]) // size
    if first == last:
        return [(first, lanes)]
    cuts = np.searchsorted(lanes, np.arange(first, last + 2) * size).tolist()
    every = zip(range(first, last + 1), cuts, cuts[1:], strict=False)
    return [(owner, lanes[a:b]) for owner, a, b in every if a < b]
