"""Guesses at why tiles hold the wrong data: each predicts where their elements would come from.

A guess that explains most of the wrong elements is the finding. Guesses know nothing of the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from lesson.check_scene import Scene
from lesson.emulator.observe import Copy
from lesson.findings import Finding, Place

Predict = Callable[["Tile"], tuple[np.ndarray, np.ndarray]]
MOST = 0.9
UNIT_NBYTES = 16


@dataclass(frozen=True)
class Tile:
    """What one block wrote: rows and columns from (y, x), and the element that each one's value
    belongs to.

    `source_y` is -1 where the value is none of the expected ones. `copy`: the block's first load,
    if any.
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


def _share(tiles: list[Tile], predict: Predict) -> float:
    """Which part of the wrong elements a prediction explains."""
    hits = total = 0
    for tile in tiles:
        y, x = predict(tile)
        ok = (tile.source_y == y) & (tile.source_x == x) & tile.is_wrong
        hits += int(ok.sum())
        total += int(tile.is_wrong.sum())
    return hits / max(total, 1)


def copy_place(tiles: list[Tile], scene: Scene) -> tuple[int, tuple[Place, ...]]:
    """Where the first of these tiles was loaded."""
    copy = next((tile.copy for tile in tiles if tile.copy is not None), None)
    instr = copy.instr if copy is not None else None
    return scene.line_of(instr), scene.place(instr, "the copy")


def write_line(scene: Scene) -> tuple[int, tuple[Place, ...]]:
    """Where the output is written."""
    writers = list(scene.observer.global_shadow.writers.values())
    instr = writers[-1] if writers else None
    return scene.line_of(instr), scene.place(instr, "the output is written")


def _where(tile: Tile) -> str:
    return f"the tile at row {tile.y}, column {tile.x}"


def _swapped(tiles: list[Tile], scene: Scene) -> Finding | None:
    """Tile (y, x) holds tile (x, y)."""
    if _share(tiles, lambda t: (t.x + t.rows, t.y + t.columns)) < MOST:
        return None
    line, places = copy_place(tiles, scene)
    t = tiles[0]
    return scene.finding(
        None, "x-y-swapped", line,
        f"{_where(t).capitalize()} holds the data from row {t.x}, column {t.y}: x and y are "
        "swapped in the coordinates.",
        "Give the innermost coordinate first: {column, row}, that is {x, y}.",
        {"wrong tiles": len(tiles)}, places,
    )  # fmt: skip


def _transposed(tiles: list[Tile], scene: Scene) -> Finding | None:
    """Rows and columns inside of the tile change places."""
    if _share(tiles, lambda t: (t.y + t.columns, t.x + t.rows)) < MOST:
        return None
    line, places = write_line(scene)
    return scene.finding(
        None, "tile-transposed", line,
        "Each tile stands transposed in the output: element (row, column) holds (column, row).",
        "Read the tile as tile[row * width + column], the row being the slower index.",
        {"wrong tiles": len(tiles)}, places,
    )  # fmt: skip


def _swizzled(tiles: list[Tile], scene: Scene) -> Finding | None:
    """16-byte units of a row change places by an exclusive or with the row.

    A kernel that transposes writes rows of the tile as columns of the output.
    """
    for is_transposed in (False, True):
        for span in (128, 64, 32):
            predict = partial(_swizzled_from, span=span, is_transposed=is_transposed)
            if _share(tiles, predict) >= MOST:
                return _swizzle_finding(span, tiles, scene)
    return None


def _swizzled_from(t: Tile, span: int, is_transposed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where elements come from if only one of map and kernel swizzles."""
    bits = {128: 7, 64: 3, 32: 1}[span]
    rows, columns = (t.columns, t.rows) if is_transposed else (t.rows, t.columns)
    pitch = max((int(columns.max()) + 1) * 4, span)
    address = rows * pitch + columns * 4
    unit = (address >> 4) ^ ((address >> 7) & bits)
    at = unit * UNIT_NBYTES + address % UNIT_NBYTES
    row, column = at // pitch, at % pitch // 4
    return (t.y + column, t.x + row) if is_transposed else (t.y + row, t.x + column)


def _swizzle_finding(span: int, tiles: list[Tile], scene: Scene) -> Finding:
    line, places = write_line(scene)
    maps = {tmap.swizzle.value for tmap in scene.case.maps.values()}
    is_mapped = maps != {"NONE"}
    says = (
        f"The map swizzles ({span}B), and the kernel reads the tile as if it did not: 16-byte "
        "units of each row "
        "stand in each other's place."
        if is_mapped
        else (
            "The kernel undoes a swizzle that the map does not do: 16-byte units of each row "
            "stand in each other's place."
        )
    )
    return scene.finding(
        None, "swizzle-not-undone", line, says,
        "Read 16-byte unit u of row r at unit u ^ (r % 8) (128B swizzle, rows of 128 bytes); or "
        "encode the map with "
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
    line, places = copy_place(tiles, scene)
    head = scene.head_line("map")
    swapped = box[0] != box[1] and all(t.width == box[1] for t in tiles)
    hint = " The two sizes of the box are swapped." if swapped else ""
    if head:
        places += (Place(head, "the map", scene.text_at(head)),)
    return scene.finding(
        None, "row-length-wrong", head or line,
        f"The box of the map brings rows of {box[0]} elements, and the kernel reads the tile in "
        f"rows of {tiles[0].width}: "
        f"every row behind the first stands in the wrong place.{hint}",
        f"Make the box {tiles[0].width} elements wide (innermost dimension first), or read rows of "
        f"{box[0]}.",
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
        if counts[best] < MOST * t.is_wrong.sum() / 2 or 2 * t.is_wrong.sum() <= t.is_wrong.size:
            return None  # what moves as a whole leaves little right
        steps.append((int(pairs[0, best]), int(pairs[1, best])))
    line, places = copy_place(tiles, scene)
    if not line:
        line, places = write_line(scene)
    t, (dy, dx) = tiles[0], steps[0]
    if len(set(steps)) == 1:
        tmap = t.copy.tmap if t.copy is not None else None
        if tmap is not None and dy == 0 and dx * tmap.itemsize % UNIT_NBYTES:
            return None  # no box starts there
        return scene.finding(
            None, "tile-shifted", line,
            f"All tiles hold data from {dy:+d} rows and {dx:+d} columns beside: the start of the "
            "box is off by that.",
            "Start the box at the tile's own first element.", {"rows": dy, "columns": dx}, places,
        )  # fmt: skip
    hint = _scale_hint(tiles, steps)
    return scene.finding(
        None, "wrong-tile", line,
        f"{_where(t).capitalize()} holds the data from row {t.y + dy}, column {t.x + dx}: the "
        "coordinates of the copy "
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
                    return (
                        f" They are 1/{right // got} of what they should be: tiles given for "
                        "elements?"
                    )
    return ""


def _row_step(tiles: list[Tile], scene: Scene) -> Finding | None:
    """The kernel steps another number of elements from row to row than a row of the box has."""
    with_box = [t for t in tiles if t.copy is not None and t.copy.tmap is not None]
    if len(with_box) < len(tiles) or any(len(t.copy.coords) != 2 for t in tiles):
        return None
    length = tiles[0].copy.tmap.box[0]
    step, start = max((_fitted_step(t, length) for t in tiles), key=lambda fit: fit[2])[:2]
    if step in (length, 0):
        return None

    def predict(t: Tile) -> tuple[np.ndarray, np.ndarray]:
        linear = start + t.rows * step + t.columns
        return t.copy.coords[1] + linear // length, t.copy.coords[0] + linear % length

    if _share(tiles, predict) < MOST:
        return None
    line, places = write_line(scene)
    return scene.finding(
        None, "row-length-wrong", line,
        f"The box of the map brings rows of {length} elements, and the kernel steps {step} "
        "elements from row to row of the tile: every row behind the first stands in the wrong "
        "place.",
        f"Read the tile as tile[row * {length} + column]; or make the box {step} elements wide.",
        {"row of the box": length, "step that is read": step}, places + copy_place(tiles, scene)[1],
    )  # fmt: skip


def _fitted_step(t: Tile, length: int) -> tuple[int, int, int]:
    """Elements between rows as they are read, where the first is, and how many rows say so."""
    linear = (t.source_y - t.copy.coords[1]) * length + t.source_x - t.copy.coords[0]
    linear -= t.columns
    some = (t.source_y >= 0) & (linear >= 0)
    firsts = np.full(int(t.rows.max()) + 1, -1)
    for row in np.unique(t.rows[some]).tolist():
        values, counts = np.unique(linear[some & (t.rows == row)], return_counts=True)
        firsts[row] = values[counts.argmax()]
    steps = np.diff(firsts)[(firsts[1:] >= 0) & (firsts[:-1] >= 0)]
    if not steps.size:
        return 0, 0, 0
    values, counts = np.unique(steps, return_counts=True)
    best = int(values[counts.argmax()])
    known = np.flatnonzero(firsts >= 0)
    starts, how_often = np.unique(firsts[known] - best * known, return_counts=True)
    return best, int(starts[how_often.argmax()]), int(counts.max())


GUESSES = (_swapped, _transposed, _swizzled, _row_length, _row_step, _moved)
