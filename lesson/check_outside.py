"""Why a box lies outside of its tensor: what its coordinates would have to be to lie inside.

A guess is told only if it brings the boxes of all loads of its map inside, each at a multiple of
the box, as tiles lie; where no guess does as much, the coordinate alone is looked at.
"""

from __future__ import annotations

from itertools import combinations

from lesson.check_scene import Scene
from lesson.emulator.observe import Copy

Coords = tuple[int, ...]
AXES = "xyzuv"


def outside_hint(copy: Copy, k: int, scene: Scene) -> str:
    """What dimension `k` of the coordinates of a copy suggests; empty for no idea."""
    tmap = copy.tmap
    size, c = tmap.itemsize, copy.coords[k]
    loads = [each.coords for each in scene.observer.copies if each.tmap is tmap]
    bytes_given = f" {c} is {size} x {c // size}: bytes given for elements?"
    in_bytes = [tuple(at // size for at in coords) for coords in loads]
    innermost = [(coords[0] // size, *coords[1:]) for coords in loads]
    if size > 1 and any(_are_tiles(guess, copy) for guess in (in_bytes, innermost)):
        return bytes_given
    for a, b in combinations(range(len(tmap.dims)), 2):
        if _are_tiles([_swapped(coords, a, b) for coords in loads], copy):
            return f" With {AXES[a]} and {AXES[b]} swapped it would be inside."
    if size > 1 and c % size == 0 and c // size < tmap.dims[k]:
        return bytes_given
    if len(copy.coords) == 2 and copy.coords[1 - k] < tmap.dims[k] and c < tmap.dims[1 - k]:
        return " With x and y swapped it would be inside."
    return ""


def _swapped(coords: Coords, a: int, b: int) -> Coords:
    """The coordinates with two of them in each other's place."""
    at = list(coords)
    at[a], at[b] = at[b], at[a]
    return tuple(at)


def _are_tiles(every: list[Coords], copy: Copy) -> bool:
    """Whether boxes at these coordinates lie inside of the tensor, as tiles."""
    tmap = copy.tmap
    return all(
        0 <= c < d and c % b == 0
        for coords in every
        for c, b, d in zip(coords, tmap.box, tmap.dims, strict=True)
    )
