"""Why an output is wrong: whose data stands where, and which mistake does that.

The default input holds a different number in each element, so a wrong value says where it came from. Each guess is
a function that predicts where the elements of a block's tile would come from; the first that explains most of the
wrong elements is the finding. Outputs that repeat values are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lesson.check_scene import Scene
from lesson.emulator.observe import Copy
from lesson.findings import Finding, Place
from lesson.map_doctor import explain

MOST = 0.9
MAP_KINDS = frozenset(
    "dtype-size dtype-format sizes-in-bytes x-y-swapped strides-in-elements view-stride rows-overlap "
    "slices-ignored step-ignored innermost-gaps other-start".split()
)
TILES_LOOKED_AT = 64
UNIT_NBYTES = 16


@dataclass(frozen=True)
class Tile:
    """What one block wrote: rows and columns from (y, x), and the element that each one's value belongs to.

    `source_y` is -1 where the value is none of the expected ones. `copy`: the block's first load, if any.
    """

    block: int
    y: int
    x: int
    rows: np.ndarray
    columns: np.ndarray
    source_y: np.ndarray
    source_x: np.ndarray
    is_wrong: np.ndarray
    copy: Copy | None

    @property
    def width(self) -> int:
        return int(self.columns.max()) + 1


def explain_output(name: str, got: np.ndarray, want: np.ndarray, scene: Scene) -> list[Finding]:
    """Findings for an array that is not what it should be; the most likely first."""
    got, want = got.reshape(-1), want.reshape(-1)
    wrong = _bits(got) != _bits(want)
    if not wrong.any():
        return []
    owner = _owners(name, scene)
    width = scene.case.width or want.size
    for early in (_suspicious_map(scene), _outside(scene)):
        if early is not None:
            return [early]
    tiles = _tiles(got, want, wrong, owner, width, scene)
    for guess in (_swapped, _transposed, _swizzled, _row_length, _moved):
        found = guess(tiles, scene) if tiles else None
        if found is not None:
            return [found]
    unwritten = wrong & (owner == -1) if owner is not None else np.zeros_like(wrong)
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
    if not held.segment.name.startswith("the tensor"):
        return False
    array = scene.case.arrays[name]
    return any(tmap.base is array for tmap in scene.case.maps.values())


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
                None, f"map-{found[0].kind}", line, found[0].says, found[0].cure,
                {"array": f"{array.shape} {array.dtype}", "map": f"{tmap.dims} {tmap.dtype.value}"}, place,
            )  # fmt: skip
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


def _share(tiles: list[Tile], predict) -> float:
    """Which part of the wrong elements a prediction explains."""
    hits = total = 0
    for tile in tiles:
        y, x = predict(tile)
        ok = (tile.source_y == y) & (tile.source_x == x) & tile.is_wrong
        hits += int(ok.sum())
        total += int(tile.is_wrong.sum())
    return hits / max(total, 1)


def _copy_place(tiles: list[Tile], scene: Scene) -> tuple[int, tuple[Place, ...]]:
    copy = next((tile.copy for tile in tiles if tile.copy is not None), None)
    instr = copy.instr if copy is not None else None
    return scene.line_of(instr), scene.place(instr, "the copy")


def _write_line(scene: Scene) -> tuple[int, tuple[Place, ...]]:
    """Where the output is written."""
    writers = list(scene.observer.global_shadow.writers.values())
    instr = writers[-1] if writers else None
    return scene.line_of(instr), scene.place(instr, "the output is written")


def _where(tile: Tile) -> str:
    return f"the tile at row {tile.y}, column {tile.x}"


# ------------------------------------------------------------------------------------- guesses
def _swapped(tiles: list[Tile], scene: Scene) -> Finding | None:
    """Tile (y, x) holds tile (x, y)."""
    if _share(tiles, lambda t: (t.x + t.rows, t.y + t.columns)) < MOST:
        return None
    line, places = _copy_place(tiles, scene)
    t = tiles[0]
    return scene.finding(
        None, "x-y-swapped", line,
        f"{_where(t).capitalize()} holds the data from row {t.x}, column {t.y}: x and y are swapped in the coordinates.",
        "Give the innermost coordinate first: {column, row}, that is {x, y}.",
        {"wrong tiles": len(tiles)}, places,
    )  # fmt: skip


def _transposed(tiles: list[Tile], scene: Scene) -> Finding | None:
    """Rows and columns inside of the tile change places."""
    if _share(tiles, lambda t: (t.y + t.columns, t.x + t.rows)) < MOST:
        return None
    line, places = _write_line(scene)
    return scene.finding(
        None, "tile-transposed", line,
        "Each tile stands transposed in the output: element (row, column) holds (column, row).",
        "Read the tile as tile[row * width + column], the row being the slower index.",
        {"wrong tiles": len(tiles)}, places,
    )  # fmt: skip


def _swizzled(tiles: list[Tile], scene: Scene) -> Finding | None:
    """16-byte units of a row change places by an exclusive or with the row."""
    for span in (128, 64, 32):
        bits = {128: 7, 64: 3, 32: 1}[span]

        def predict(t: Tile, span: int = span, bits: int = bits) -> tuple[np.ndarray, np.ndarray]:
            pitch = max(t.width * 4, span)
            address = t.rows * pitch + t.columns * 4
            unit = (address >> 4) ^ ((address >> 7) & bits)
            at = unit * UNIT_NBYTES + address % UNIT_NBYTES
            return t.y + at // pitch, t.x + at % pitch // 4

        if _share(tiles, predict) >= MOST:
            return _swizzle_finding(span, tiles, scene)
    return None


def _swizzle_finding(span: int, tiles: list[Tile], scene: Scene) -> Finding:
    line, places = _write_line(scene)
    maps = {tmap.swizzle.value for tmap in scene.case.maps.values()}
    is_mapped = maps != {"NONE"}
    says = (
        f"The map swizzles ({span}B), and the kernel reads the tile as if it did not: 16-byte units of each row "
        "stand in each other's place."
        if is_mapped
        else "The kernel undoes a swizzle that the map does not do: 16-byte units of each row stand in each other's place."
    )
    return scene.finding(
        None, "swizzle-not-undone", line, says,
        "Read 16-byte unit u of row r at unit u ^ (r % 8) (128B swizzle, rows of 128 bytes); or encode the map with "
        f"{'no swizzle' if is_mapped else 'the swizzle that the kernel undoes'}.",
        {"wrong tiles": len(tiles), "swizzle of the map": ", ".join(sorted(maps))}, places,
    )  # fmt: skip


def _row_length(tiles: list[Tile], scene: Scene) -> Finding | None:
    """The tile was brought in rows of another length than it is read."""
    copies = [t.copy for t in tiles if t.copy is not None and t.copy.tmap is not None]
    if not copies or len(copies[0].coords) != 2:
        return None
    box = copies[0].tmap.box

    def predict(t: Tile) -> tuple[np.ndarray, np.ndarray]:
        if t.copy is None:
            return t.rows - 1 - t.rows, t.columns
        linear = t.rows * t.width + t.columns
        return t.copy.coords[1] + linear // box[0], t.copy.coords[0] + linear % box[0]

    if all(box[0] == t.width for t in tiles) or _share(tiles, predict) < MOST / 2:
        return None
    line, places = _copy_place(tiles, scene)
    head = scene.head_line("map")
    swapped = box[0] != box[1] and all(t.width == box[1] for t in tiles)
    hint = " The two sizes of the box are swapped." if swapped else ""
    if head:
        places += (Place(head, "the map", scene.text_at(head)),)
    return scene.finding(
        None, "row-length-wrong", head or line,
        f"The box of the map brings rows of {box[0]} elements, and the kernel reads the tile in rows of {tiles[0].width}: "
        f"every row behind the first stands in the wrong place.{hint}",
        f"Make the box {tiles[0].width} elements wide (innermost dimension first), or read rows of {box[0]}.",
        {"box": " x ".join(map(str, box)), "row that is read": tiles[0].width}, places,
    )  # fmt: skip


def _moved(tiles: list[Tile], scene: Scene) -> Finding | None:
    """Each tile holds other data of the input, shifted by a whole step."""
    steps = []
    for t in tiles:
        some = t.is_wrong & (t.source_y >= 0)
        if not some.any():
            return None
        dy = t.source_y[some] - t.y - t.rows[some]
        dx = t.source_x[some] - t.x - t.columns[some]
        pairs, counts = np.unique(np.stack([dy, dx]), axis=1, return_counts=True)
        best = int(counts.argmax())
        if counts[best] < MOST * t.is_wrong.sum() / 2:
            return None
        steps.append((int(pairs[0, best]), int(pairs[1, best])))
    line, places = _copy_place(tiles, scene)
    if not line:
        line, places = _write_line(scene)
    t, (dy, dx) = tiles[0], steps[0]
    if len(set(steps)) == 1:
        return scene.finding(
            None, "tile-shifted", line,
            f"All tiles hold data from {dy:+d} rows and {dx:+d} columns beside: the start of the box is off by that.",
            "Start the box at the tile's own first element.", {"rows": dy, "columns": dx}, places,
        )  # fmt: skip
    hint = _scale_hint(tiles, steps)
    return scene.finding(
        None, "wrong-tile", line,
        f"{_where(t).capitalize()} holds the data from row {t.y + dy}, column {t.x + dx}: the coordinates of the copy "
        f"are those of another tile.{hint}",
        "Coordinates count elements, innermost first: {tile x * tile width, tile y * tile height}.",
        {"wrong tiles": len(tiles)}, places,
    )  # fmt: skip


def _scale_hint(tiles: list[Tile], steps: list[tuple[int, int]]) -> str:
    """Whether the starts are a multiple, or a part, of what they should be."""
    for t, (dy, dx) in zip(tiles, steps, strict=True):
        for right, got in ((t.x, t.x + dx), (t.y, t.y + dy)):
            if right and got and got != right:
                if got % right == 0:
                    return f" They are {got // right} times what they should be."
                if right % got == 0:
                    return f" They are 1/{right // got} of what they should be: tiles given for elements?"
    return ""


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
        c, b, d = copy.coords[k], tmap.box[k], tmap.dims[k]
        hint = ""
        if c % tmap.itemsize == 0 and tmap.itemsize > 1 and c // tmap.itemsize < d:
            hint = f" {c} is {tmap.itemsize} x {c // tmap.itemsize}: bytes given for elements?"
        elif len(copy.coords) == 2 and copy.coords[1 - k] < d and c < tmap.dims[1 - k]:
            hint = " With x and y swapped it would be inside."
        return scene.finding(
            None, "box-outside-tensor", scene.line_of(copy.instr),
            f"The box at ({', '.join(map(str, copy.coords))}) lies wholly outside of the tensor, which has {d} elements in "
            f"dimension {k}: all of it is fill.{hint}",
            "Coordinates count elements, innermost first: {tile x * tile width, tile y * tile height}.",
            {"coordinates": copy.coords, "tensor": " x ".join(map(str, tmap.dims)), "box": b},
            scene.place(copy.instr, "the copy"),
        )  # fmt: skip
    return None


def _never_written(name: str, unwritten: np.ndarray, width: int, scene: Scene) -> Finding:
    at = np.flatnonzero(unwritten)
    rows, columns = np.divmod(at, width)
    line = scene.head_line("launch") or scene.find_line(r"__global__")
    return scene.finding(
        None, "never-written", line,
        f"{at.size} elements of {name} are never written, from row {rows.min()}, column {columns.min()} to row {rows.max()}, "
        f"column {columns.max()}: the grid is too small, or a guard keeps threads from them.",
        "Launch enough blocks to cover the output: ceil(width / tile width) x ceil(height / tile height).",
        {"elements": at.size, "grid": scene.case.grid}, (Place(line, "the launch", scene.text_at(line)),) if line else (),
    )  # fmt: skip


def _plainly_wrong(
    name: str, got: np.ndarray, want: np.ndarray, wrong: np.ndarray, width: int, scene: Scene
) -> Finding:
    at = int(np.flatnonzero(wrong)[0])
    line, places = _write_line(scene)
    return scene.finding(
        None, "output-wrong", line,
        f"{int(wrong.sum())} of {wrong.size} elements of {name} are wrong; the first is row {at // width}, column "
        f"{at % width}: got {got[at]}, want {want[at]}.",
        "Compare what the block brings, what it computes, and where it writes, at that element.",
        {"wrong": int(wrong.sum()), "first": at}, places,
    )  # fmt: skip
