"""Special registers: where a thread stands in its warp, block, cluster and grid.

PTX ISA, "Special Registers". `SPECIALS[name](m, axis)` gives raw bits, one element a lane or one
for all. The clocks change while the batch runs and are read by `isa_move`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lesson.emulator.windows import SHARED_FIRST

if TYPE_CHECKING:
    from lesson.emulator.machine import Machine

Values = NDArray[np.generic]
SM_COUNT = 132
"""Multiprocessors of an H200."""
RESERVED_GROUPS = 0x200
"""Where cooperative groups would keep their state. Its address may be taken; nothing lies there."""

CLOCKS = frozenset(
    {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}
)


def _uniform(value: int, dtype: type = np.uint32) -> Values:
    return np.array([value], dtype)


def _size(sizes: tuple[int, int, int], axis: str) -> Values:
    return _uniform(sizes["xyz".index(axis)] if axis != "w" else 0)


def _tid(m: Machine, axis: str) -> Values:
    if axis == "w" or m.block["xyz".index(axis)] == 1:
        return _uniform(0)
    x, y, _ = m.block
    linear = np.arange(m.padded_threads, dtype=np.uint32)
    at = {"x": linear % x, "y": linear // x % y, "z": linear // (x * y)}[axis]
    return np.tile(at.astype(np.uint32), m.nblocks)


def _over_blocks(m: Machine, values: NDArray[np.int64]) -> Values:
    """One value a block, spread over its lanes."""
    if (values == values[0]).all():
        return _uniform(int(values[0]))
    return np.repeat(values.astype(np.uint32), m.padded_threads)


def _numbers(m: Machine) -> NDArray[np.int64]:
    return np.arange(m.first_block, m.first_block + m.nblocks)


def _ctaid(m: Machine, axis: str) -> Values:
    if axis == "w":
        return _uniform(0)
    return _over_blocks(m, m.shape.block_xyz(_numbers(m))["xyz".index(axis)])


def _clusterid(m: Machine, axis: str) -> Values:
    if axis == "w":
        return _uniform(0)
    at = "xyz".index(axis)
    return _over_blocks(m, m.shape.block_xyz(_numbers(m))[at] // m.shape.cluster[at])


def _cluster_ctaid(m: Machine, axis: str) -> Values:
    if axis == "w":
        return _uniform(0)
    at = "xyz".index(axis)
    return _over_blocks(m, m.shape.block_xyz(_numbers(m))[at] % m.shape.cluster[at])


def _nclusterid(m: Machine, axis: str) -> Values:
    sizes = tuple(g // c for g, c in zip(m.grid, m.shape.cluster, strict=True))
    return _size(sizes, axis)  # type: ignore[arg-type]


def _laneid(m: Machine, axis: str) -> Values:
    return np.tile(np.arange(32, dtype=np.uint32), m.nlanes // 32)


def _warpid(m: Machine, axis: str) -> Values:
    return np.tile(np.arange(m.padded_threads, dtype=np.uint32) // np.uint32(32), m.nblocks)


def _lanemask(which: str) -> Callable[[Machine, str], Values]:
    """Bits of the lanes that compare so with the lane itself."""
    below = [(1 << lane) - 1 for lane in range(32)]
    bit = [1 << lane for lane in range(32)]
    every = (1 << 32) - 1
    table = {
        "eq": bit,
        "lt": below,
        "le": [low | one for low, one in zip(below, bit, strict=True)],
        "ge": [every ^ low for low in below],
        "gt": [every ^ low ^ one for low, one in zip(below, bit, strict=True)],
    }[which]
    return lambda m, axis: np.tile(np.array(table, np.uint32), m.nlanes // 32)


def _shared_total(m: Machine, axis: str) -> Values:
    return _uniform(m.shared_nbytes)


SPECIALS: dict[str, Callable[[Machine, str], Values]] = {
    "tid": _tid,
    "ntid": lambda m, axis: _size(m.block, axis),
    "ctaid": _ctaid,
    "nctaid": lambda m, axis: _size(m.grid, axis),
    "clusterid": _clusterid,
    "nclusterid": _nclusterid,
    "cluster_ctaid": _cluster_ctaid,
    "cluster_nctaid": lambda m, axis: _size(m.shape.cluster, axis),
    "cluster_ctarank": lambda m, axis: _over_blocks(m, _numbers(m) % m.cluster_nblocks),
    "cluster_nctarank": lambda m, axis: _uniform(m.cluster_nblocks),
    "is_explicit_cluster": lambda m, axis: np.array([m.shape.has_explicit_cluster]),
    "laneid": _laneid,
    "warpid": _warpid,
    "nwarpid": lambda m, axis: _uniform(m.padded_threads // 32),
    "smid": lambda m, axis: _over_blocks(m, _numbers(m) % SM_COUNT),
    "nsmid": lambda m, axis: _uniform(SM_COUNT),
    "gridid": lambda m, axis: _uniform(1, np.uint64),
    "lanemask_eq": _lanemask("eq"),
    "lanemask_lt": _lanemask("lt"),
    "lanemask_le": _lanemask("le"),
    "lanemask_gt": _lanemask("gt"),
    "lanemask_ge": _lanemask("ge"),
    "dynamic_smem_size": lambda m, axis: _uniform(m.shape.dynamic_nbytes),
    "total_smem_size": _shared_total,
    "aggr_smem_size": _shared_total,
    "reserved_smem_offset_begin": lambda m, axis: _uniform(0),
    "reserved_smem_offset_0": lambda m, axis: _uniform(0),
    "reserved_smem_offset_1": lambda m, axis: _uniform(RESERVED_GROUPS),
    "reserved_smem_offset_end": lambda m, axis: _uniform(SHARED_FIRST),
    "reserved_smem_offset_cap": lambda m, axis: _uniform(SHARED_FIRST),
    "current_graph_exec": lambda m, axis: _uniform(0, np.uint64),
}
