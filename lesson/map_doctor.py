"""The tensor-map doctor: the driver's verdict on a map, and what is likely wrong with a legal one.

`explain` takes a map, or an array to be mapped, and says: accepted or refused; every broken rule
with the nearest legal value; and each suspicion with its reason (`map_suspicions`). It runs
nothing and needs no GPU. The rules are those of the CUDA Driver API, `cuTensorMapEncodeTiled`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lesson.errors import TensorMapError
from lesson.map_suspicions import GROUPS, Suspicion
from lesson.tensor_map import BrokenRule, Interleave, TensorMap, check
from lesson.tensor_map_array import ArrayLayout, address_of, read_layout
from lesson.tensor_map_enums import choose

ACCEPTED = "The driver accepts this map."
REFUSED = "The driver refuses this map (CUDA_ERROR_INVALID_VALUE):"
NO_MAP = "No tensor map can describe this array:"
LIKELY_WRONG = "It is likely not what was meant:"


@dataclass(frozen=True)
class Explanation:
    """What the doctor found. `refusal` is for an array that no map can describe."""

    broken: tuple[BrokenRule, ...] = ()
    suspicions: tuple[Suspicion, ...] = ()
    refusal: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the driver would encode the map."""
        return not self.broken and not self.refusal

    def __str__(self) -> str:
        if self.refusal:
            return f"{NO_MAP}\n  {self.refusal}"
        lines = [ACCEPTED] if self.accepted else [REFUSED]
        lines += [f"  {rule}" for rule in self.broken]
        if self.suspicions:
            lines.append(LIKELY_WRONG)
            lines += [f"  {suspicion}" for suspicion in self.suspicions]
        return "\n".join(lines)


def explain(subject: Any, array: Any = None, *, box: Any = None, **options: Any) -> Explanation:
    """The verdict on a map, or on an array mapped with `box` and the options of `from_array`.

    `array` is the numpy or CuPy array that the map is meant for; by default the map's own base.
    Without `box` an array is judged with the smallest box that there is.
    """
    if isinstance(subject, TensorMap):
        return _explain_map(subject, array)
    try:
        tmap = TensorMap.from_array(subject, box or _smallest_box(subject, **options), **options)
    except TensorMapError as error:
        return Explanation(refusal=str(error))
    return _explain_map(tmap, subject)


def _smallest_box(array: Any, *, interleave: Any = "NONE", **_: Any) -> tuple[int, ...]:
    """One unit of 16 bytes in each dimension of the map."""
    layout = read_layout(array)
    has_slices = choose(Interleave, "interleave", interleave) is not Interleave.NONE
    return (max(1, 16 // layout.itemsize), *(1 for _ in layout.shape[1 + has_slices :]))


def _explain_map(tmap: TensorMap, array: Any) -> Explanation:
    broken = tuple(check(tmap))
    if not _is_well_formed(tmap):
        return Explanation(broken)
    if array is None and not isinstance(tmap.base, (int, np.integer)):
        array = tmap.base
    # The slices of an interleaved array are no dimension of its map: they are not compared.
    is_compared = array is not None and tmap.interleave is Interleave.NONE
    layout = _as_the_map_sees_it(tmap, read_layout(array)) if is_compared else None
    found = []
    for group in GROUPS:
        found += [s for s in (judge(tmap, layout) for judge in group) if s is not None][:1]
    if layout is not None:
        found += [s for s in (_elsewhere(tmap, array), _beyond(tmap, layout, found)) if s]
    return Explanation(broken, tuple(found))


def _as_the_map_sees_it(tmap: TensorMap, layout: ArrayLayout) -> ArrayLayout:
    """A column-major array turned round, where the map has its columns as dimension 0."""
    column_major = layout.strides_bytes[:1] == (layout.itemsize,) != layout.strides_bytes[-1:]
    return layout.transposed if column_major and tmap.dims == layout.shape else layout


def _is_well_formed(tmap: TensorMap) -> bool:
    """Whether sizes and strides are positive whole numbers, as many as the rank says."""
    outer = tmap.rank - 1 if isinstance(tmap.rank, int) else -1
    if outer < 0 or len(tmap.strides_bytes) != outer:
        return False
    others = (tmap.dims, tmap.box, tmap.element_strides)
    return all(
        len(values) == tmap.rank and all(isinstance(n, int) and n > 0 for n in values)
        for values in others
    ) and all(isinstance(n, int) and n >= 0 for n in tmap.strides_bytes)


def _elsewhere(tmap: TensorMap, array: Any) -> Suspicion | None:
    """The map starts at one address, the array at another."""
    base = tmap.base
    on_host = isinstance(array, np.ndarray)
    if base is None or on_host != isinstance(base, np.ndarray):
        return None
    if on_host and not np.may_share_memory(base, array):
        return Suspicion(
            "other-array",
            "The base of the map is another array than this one: they share no memory.",
            "Map this array, or explain the map beside its own.",
        )
    distance = _true_address(base) + tmap.base_offset_bytes - _true_address(array)
    if distance == 0:
        return None
    side = "behind" if distance > 0 else "in front of"
    return Suspicion(
        "other-start",
        f"The map starts {abs(distance)} bytes {side} the first element of the array.",
        "Take the array itself as base: a view's pointer already holds its offset.",
    )


def _true_address(base: Any) -> int:
    if isinstance(base, np.ndarray):
        return address_of(base)
    return int(base) if isinstance(base, (int, np.integer)) else read_layout(base).address


def _beyond(tmap: TensorMap, layout: ArrayLayout, found: list[Suspicion]) -> Suspicion | None:
    """The map's last element lies behind the array's, and nothing said so far explains it."""
    strides = (tmap.itemsize, *tmap.strides_bytes)
    ends = tmap.itemsize + sum((d - 1) * s for d, s in zip(tmap.dims, strides, strict=True))
    pairs = zip(layout.shape, layout.strides_bytes, strict=True)
    last = layout.itemsize + sum((n - 1) * max(s, 0) for n, s in pairs)
    if ends <= last or any(s.kind != "box-beyond-tensor" for s in found):
        return None
    return Suspicion(
        "beyond-array",
        f"The map's last element ends at byte {ends}, the array at byte {last}: boxes there read "
        "and write memory of others.",
        f"Say the shape of the array, {layout.shape[::-1]}, innermost first.",
    )
