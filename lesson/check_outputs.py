"""Why an output is wrong: whose data stands where, and which mistake does that.

The default input holds a different number in each element, so a wrong value says where it came
from. Each guess is a function that predicts where the elements of a block's tile would come from;
the first that explains most of the wrong elements is the finding. Outputs that repeat values are
only counted.
"""

from __future__ import annotations

import numpy as np

from lesson.check_outside import outside_hint
from lesson.check_scene import Scene
from lesson.check_tiles import GUESSES, Tile, write_line
from lesson.emulator.observe import Copy
from lesson.emulator.windows import SHARED_FIRST
from lesson.findings import Finding, Place
from lesson.map_doctor import explain

MAP_KINDS = frozenset(
    (
        "dtype-size", "dtype-format", "sizes-in-bytes", "x-y-swapped", "strides-in-elements",
        "view-stride", "rows-overlap", "slices-ignored", "step-ignored", "innermost-gaps",
        "other-start",
    )
)  # fmt: skip
TILES_LOOKED_AT = 64


def explain_output(name: str, got: np.ndarray, want: np.ndarray, scene: Scene) -> list[Finding]:
    """Findings for an array that is not what it should be; the most likely first."""
    got, want = got.reshape(-1), want.reshape(-1)
    wrong = _bits(got) != _bits(want)
    if not wrong.any():
        return []
    owner = _owners(name, scene)
    width = scene.case.width or want.size
    for look in (_suspicious_map, _outside, _unaligned_swizzle, _reduced_often):
        early = look(scene)
        if early is not None:
            return [early]
    tiles = _tiles(got, want, wrong, owner, width, scene)
    for guess in GUESSES:
        found = guess(tiles, scene) if tiles else None
        if found is not None:
            return [found]
    unwritten = wrong & (owner == -1) if owner is not None else np.zeros_like(wrong)
    unwritten &= _bits(got) == _bits(scene.case.arrays[name].reshape(-1))  # by whatever way
    if unwritten.sum() * 2 >= wrong.sum():
        return [_never_written(name, unwritten, width, scene)]
    return [_plainly_wrong(name, got, want, wrong, width, scene)]


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(f"u{values.itemsize}")


def _owners(name: str, scene: Scene) -> np.ndarray | None:
    """The block that wrote each element last; -1 for none."""
    m, array = scene.m, scene.case.arrays.get(name)
    if m is None or array is None or array.itemsize != 4:
        return None
    number = next((n for n, arg in enumerate(scene.case.args) if arg == name), None)
    shadow = scene.observer.global_shadow
    for held in m.arguments.held.values():
        if held.data.size == array.nbytes and (
            f"argument {number} " in held.segment.name or _is_target(name, held, scene)
        ):
            start = held.segment.start >> 2
            return shadow.owner[start : start + array.size]
    return None


def _is_target(name: str, held: object, scene: Scene) -> bool:
    """Whether an allocation is the tensor of a map over this array."""
    case = scene.case
    return any(
        isinstance(arg, str)
        and arg in case.maps
        and case.maps[arg].base is case.arrays[name]
        and held.segment.name.startswith(f"the tensor of argument {n} ")
        for n, arg in enumerate(case.args)
    )


def _suspicious_map(scene: Scene) -> Finding | None:
    """A map that the driver accepts and that is not that of its array."""
    for name, tmap in scene.case.maps.items():
        array = tmap.base
        if not isinstance(array, np.ndarray):
            continue
        width = scene.case.width
        if array.ndim == 1 and width and array.size % width == 0 and len(tmap.dims) == 2:
            array = array.reshape(-1, width)
        found = [s for s in explain(tmap, array).suspicions if s.kind in MAP_KINDS]
        if found:
            line = scene.head_line(name, "map") or _copy_place_of(scene)
            place = (Place(line, "the map", scene.text_at(line)),) if line else ()
            return scene.finding(
                None,
                f"map-{found[0].kind}",
                line,
                found[0].says,
                found[0].cure,
                {"array": f"{array.shape} {array.dtype}", "map": f"{tmap.dims} {tmap.dtype.value}"},
                place,
            )
    return None


def _copy_place_of(scene: Scene) -> int:
    return next((scene.line_of(c.instr) for c in scene.observer.copies if c.tmap is not None), 0)


# --------------------------------------------------------------------------------------- tiles
def _tiles(
    got: np.ndarray, want: np.ndarray, wrong: np.ndarray, owner: np.ndarray | None, width: int,
    scene: Scene,
) -> list[Tile]:  # fmt: skip
    """The wrong tiles, by who wrote them."""
    if owner is None or np.unique(want).size != want.size or want.size % width:
        return []
    order = np.argsort(want)
    at = np.minimum(np.searchsorted(want[order], got), want.size - 1)
    source = np.where(want[order][at] == got, order[at], -1)
    loads: dict[int, Copy] = {}
    for copy, issuer in zip(scene.observer.copies, scene.observer.issuers, strict=True):
        if copy.kind in ("load", "bulk_load"):
            loads.setdefault(issuer, copy)
    found = []
    for block in np.unique(owner[wrong & (owner >= 0)]).tolist()[:TILES_LOOKED_AT]:
        mine = np.flatnonzero(owner == block)
        rows, columns = np.divmod(mine, width)
        y, x = int(rows.min()), int(columns.min())
        src = source[mine]
        found.append(
            Tile(
                block, y, x, rows - y, columns - x, np.where(src < 0, -1, src // width),
                np.where(src < 0, -1, src % width), wrong[mine], loads.get(block),
            )
        )  # fmt: skip
    return found


# ------------------------------------------------------------------------------------ the rest
def _outside(scene: Scene) -> Finding | None:
    """A load whose box lies wholly outside of the tensor."""
    for copy in scene.observer.copies:
        tmap = copy.tmap
        if tmap is None or copy.kind != "load":
            continue
        spans = zip(copy.coords, tmap.box, tmap.dims, strict=True)
        out = [k for k, (c, b, d) in enumerate(spans) if c >= d or c + b <= 0]
        if not out:
            continue
        k = out[0]
        b, d = tmap.box[k], tmap.dims[k]
        hint = outside_hint(copy, k, scene)
        return scene.finding(
            None, "box-outside-tensor", scene.line_of(copy.instr),
            f"The box at ({', '.join(map(str, copy.coords))}) lies wholly outside of the tensor, "
            f"which has {d} elements in "
            f"dimension {k}: all of it is fill.{hint}",
            "Coordinates count elements, innermost first: {tile x * tile width, tile y * tile "
            "height}.",
            {"coordinates": copy.coords, "tensor": " x ".join(map(str, tmap.dims)), "box": b},
            scene.place(copy.instr, "the copy"),
        )  # fmt: skip
    return None


def _unaligned_swizzle(scene: Scene) -> Finding | None:
    """A swizzle pattern repeats every 8 rows of its span, counted from address 0."""
    for copy in scene.observer.copies:
        if copy.tmap is None or copy.tmap.swizzle.value == "NONE" or scene.m is None:
            continue
        period = 8 * int(copy.tmap.swizzle.value.removesuffix("B").split("_")[0])
        address = SHARED_FIRST + copy.smem_start % scene.m.shared_stride
        if not address % period:
            continue
        found = scene.variable(copy.smem_start)
        name = found[0] if found else "the tile"
        line = scene.find_line(rf"\*\s*(?:const\s+)?\w+\s*=[^=].*\b{name}\b")
        return scene.finding(
            None, "swizzle-misaligned", line or scene.line_of(copy.instr),
            f"The tile starts at shared address {address:#x}, no multiple of {period}: the pattern "
            "of "
            f"the {copy.tmap.swizzle.value} swizzle goes by the address, so it is not the one that "
            "the "
            "kernel undoes by row numbers.",
            f"Align the tile to {period} bytes (alignas({period})), or undo the swizzle by "
            "addresses.",
            {"address": f"{address:#x}", "period": period}, scene.place(copy.instr, "the copy"),
        )  # fmt: skip
    return None


def _reduced_often(scene: Scene) -> Finding | None:
    """Several threads of a block add one tile to one place."""
    threads: dict[tuple[object, ...], set[int]] = {}
    for copy in scene.observer.copies:
        if copy.kind in ("reduce", "bulk_reduce"):
            place = (copy.lane // scene.m.padded_threads, copy.coords, copy.global_start)
            key = (id(copy.instr), *place, copy.smem_start)
            mine = threads.setdefault(key, set())
            mine.add(copy.lane)
            if len(mine) > 1:
                found = copy
    most = max(threads.values(), key=len, default=set())
    if len(most) < 2:
        return None
    return scene.finding(
        None, "every-thread-issues", scene.line_of(found.instr),
        f"{len(most)} threads of a block issue the same reduction: the tile is combined with "
        f"global memory {len(most)} times.",
        "Let one thread issue it: `if (threadIdx.x == 0)`, or elect.sync in one warp.",
        {"threads that issue": len(most), "bytes each": found.nbytes},
        scene.place(found.instr, "the reduction is issued"),
    )  # fmt: skip


def _never_written(name: str, unwritten: np.ndarray, width: int, scene: Scene) -> Finding:
    at = np.flatnonzero(unwritten)
    rows, columns = np.divmod(at, width)
    if _brought(rows, columns, width, scene):
        return _half_written(name, at, width, scene)
    line = scene.head_line("launch") or scene.find_line(r"__global__")
    return scene.finding(
        None,
        "never-written",
        line,
        f"{at.size} elements of {name} are never written, from row {rows.min()}, column "
        f"{columns.min()} to row {rows.max()}, "
        f"column {columns.max()}: the grid is too small, or a guard keeps threads from them.",
        "Launch enough blocks to cover the output: ceil(width / tile width) x ceil(height / tile "
        "height).",
        {"elements": at.size, "grid": scene.case.grid},
        (Place(line, "the launch", scene.text_at(line)),) if line else (),
    )


def _brought(rows: np.ndarray, columns: np.ndarray, width: int, scene: Scene) -> bool:
    """Whether loads have brought all tiles that these elements of a matrix stand in."""
    seen = np.zeros((int(rows.max()) + 1, width), np.bool_)
    for copy in scene.observer.copies:
        if copy.kind != "load" or copy.tmap is None or len(copy.coords) != 2:
            continue
        (x, y), (nx, ny) = copy.coords, copy.tmap.box
        seen[max(y, 0) : max(y + ny, 0), max(x, 0) : max(x + nx, 0)] = True
    return bool(seen[rows, columns].all())


def _half_written(name: str, at: np.ndarray, width: int, scene: Scene) -> Finding:
    """Blocks bring their tiles whole, and write a part of them."""
    line, places = write_line(scene)
    head = scene.head_line("launch")
    if head:
        places += (Place(head, "the launch", scene.text_at(head)),)
    return scene.finding(
        None, "never-written", line or head,
        f"{at.size} elements of {name} are never written, the first in row {at[0] // width}, "
        f"column {at[0] % width}, though their tiles are brought: the blocks write only a part.",
        "Let the loop that writes go over the whole tile, in steps of the threads that there are.",
        {"elements": at.size, "threads of a block": scene.case.block}, places,
    )  # fmt: skip


def _all_off_by(got: np.ndarray, want: np.ndarray) -> str:
    """Whether the wrong elements differ by one and the same number."""
    with np.errstate(all="ignore"):
        off = np.unique(got.astype(np.float64) - want.astype(np.float64))
    return f" Each of them is off by {off[0]:+g}." if len(off) == 1 and len(got) > 1 else ""


def _plainly_wrong(
    name: str, got: np.ndarray, want: np.ndarray, wrong: np.ndarray, width: int, scene: Scene
) -> Finding:
    at = int(np.flatnonzero(wrong)[0])
    line, places = write_line(scene)
    return scene.finding(
        None, "output-wrong", line,
        f"{int(wrong.sum())} of {wrong.size} elements of {name} are wrong; the first is row "
        f"{at // width}, column "
        f"{at % width}: got {got[at]}, want {want[at]}.{_all_off_by(got[wrong], want[wrong])}",
        "Compare what the block brings, what it computes, and where it writes, at that element.",
        {"wrong": int(wrong.sum()), "first": at}, places,
    )  # fmt: skip
