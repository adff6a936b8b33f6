"""Is a launch one that the chip accepts: grid, block, cluster, shared memory.

CUDA C++ Programming Guide, "Compute Capabilities: Technical Specifications" (9.0), and the
directives .reqntid, .maxntid and .reqnctapercluster of the PTX ISA.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lesson.emulator.machine import Shape
from lesson.emulator.words import shown
from lesson.errors import LaunchError

if TYPE_CHECKING:
    from lesson.emulator.ptx import Function

MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_CLUSTER = 16
MAX_SHARED_NBYTES = 232_448


def triple(what: str, given: Any) -> tuple[int, int, int]:
    """One to three whole numbers, filled up with ones."""
    try:
        values = (
            [operator.index(v) for v in given]
            if isinstance(given, Iterable)
            else [operator.index(given)]
        )
    except TypeError:
        values = []
    if not 1 <= len(values) <= 3:
        raise LaunchError(f"{what} must be one to three whole numbers, got {shown(given)}.")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _within(what: str, values: tuple[int, int, int], most: tuple[int, int, int]) -> None:
    for axis, value, limit in zip("xyz", values, most, strict=True):
        if not 1 <= value <= limit:
            raise LaunchError(f"{what}.{axis} must be 1 to {limit}, got {shown(value)}.")


def checked(function: Function, grid: Any, block: Any, cluster: Any, dynamic_nbytes: Any) -> Shape:
    """The shape of a launch; LaunchError if the chip would refuse it."""
    sizes, threads = triple("grid", grid), triple("block", block)
    _within("grid", sizes, MAX_GRID)
    _within("block", threads, MAX_BLOCK)
    count = threads[0] * threads[1] * threads[2]
    if count > MAX_THREADS:
        raise LaunchError(
            f"a block must have at most {MAX_THREADS} threads, got {count} ({threads}). Make the "
            "grid larger instead."
        )
    _directives(function, threads, count)
    try:
        nbytes = operator.index(dynamic_nbytes)
    except TypeError:
        nbytes = -1
    if nbytes < 0:
        raise LaunchError(
            f"shared_bytes must be a whole number of bytes, got {shown(dynamic_nbytes)}."
        )
    required = function.directives.get("reqnctapercluster")
    is_explicit = (
        cluster is not None or required is not None or "explicitcluster" in function.directives
    )
    return Shape(sizes, threads, _cluster(cluster, required, sizes), nbytes, is_explicit)


def _directives(function: Function, threads: tuple[int, int, int], count: int) -> None:
    """What the kernel itself demands of its block."""
    required = function.directives.get("reqntid")
    if required and threads != (*required, 1, 1)[:3]:
        raise LaunchError(
            f"the block must be {required}, as .reqntid of {function.name} says, got {threads}."
        )
    most = function.directives.get("maxntid")
    if most:
        bound = 1
        for size in most:
            bound *= size
        if count > bound:
            raise LaunchError(
                f"the block must have at most {bound} threads, as __launch_bounds__ of "
                f"{function.name} says, got {count}."
            )


def _cluster(
    given: Any, required: tuple[int, ...] | None, grid: tuple[int, int, int]
) -> tuple[int, int, int]:
    """Blocks of a cluster, which divide the grid."""
    own = triple("the cluster", required) if required else None
    cluster = own or (1, 1, 1) if given is None else triple("cluster", given)
    if own is not None and cluster != own:
        raise LaunchError(f"the cluster must be {own}, as the kernel says, got {cluster}.")
    _within("cluster", cluster, (MAX_CLUSTER,) * 3)
    blocks = cluster[0] * cluster[1] * cluster[2]
    if blocks > MAX_CLUSTER:
        raise LaunchError(f"a cluster must have at most {MAX_CLUSTER} blocks, got {blocks}.")
    for axis, size, width in zip("xyz", grid, cluster, strict=True):
        if size % width:
            raise LaunchError(
                f"grid.{axis} must be a multiple of the cluster's {width} blocks, got {size}."
            )
    return cluster


def check_shared(nbytes: int, static_nbytes: int) -> None:
    """All shared memory of a block."""
    if nbytes > MAX_SHARED_NBYTES:
        raise LaunchError(
            f"shared memory of a block must be at most {MAX_SHARED_NBYTES} bytes, got {nbytes} "
            f"({static_nbytes} static). "
            "Make the tile or the number of stages smaller."
        )
