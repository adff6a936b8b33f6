"""A tensor map's arguments one by one, each with its verdict: the text under `check_map`.

Does: groups the rules of `tensor_map` by the argument that they judge, shows each argument's
value, and closes with the driver's verdict. The text is the same on both targets.
Does not: know any rule. `tensor_map_rules` does, with the section of the driver API that states it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lesson.errors import TensorMapError
from lesson.tensor_map import BrokenRule, TensorMap, check

ACCEPTED = "The driver accepts this map."
REFUSED = "The driver refuses this map (CUDA_ERROR_INVALID_VALUE):"


def _by(values: Sequence[int], unit: str) -> str:
    return " x ".join(str(v) for v in values) + f" {unit}"


def _arguments(tmap: TensorMap) -> list[tuple[str, str]]:
    """(the driver's name of an argument, its value in words)."""
    aligned = "on a 16-byte boundary" if tmap.address % 16 == 0 else "off the 16-byte boundaries"
    return [
        ("data_type", f"{tmap.dtype.value}, {tmap.itemsize} bytes"),
        ("tensor_rank", str(tmap.rank)),
        ("global_address", aligned),
        ("global_dim", _by(tmap.dims, "elements")),
        ("global_strides", _by(tmap.strides_bytes, "bytes")),
        ("box_dim", _by(tmap.box, "elements") + _row(tmap)),
        ("element_strides", _by(tmap.element_strides, "").strip()),
        ("interleave", tmap.interleave.value),
        ("swizzle", tmap.swizzle.value),
        ("oob_fill", tmap.oob_fill.value),
    ]


def _row(tmap: TensorMap) -> str:
    """The bytes of a row of the box, where it has a whole number of elements."""
    if not tmap.box or not isinstance(tmap.box[0], int):
        return ""
    return f", {tmap.box[0] * tmap.itemsize} bytes a row"


def report(tmap: TensorMap) -> str:
    """One line an argument, then the verdict, then each broken rule with its cure."""
    broken = check(tmap)
    rows = [
        f"{'no' if _concerns(broken, name) else 'ok'}  {name:16} {value}"
        for name, value in _arguments(tmap)
    ]
    if not broken:
        return "\n".join([*rows, ACCEPTED])
    return "\n".join([*rows, REFUSED, *(f"  {rule}" for rule in broken)])


def verdict(tmap: TensorMap) -> str:
    """The driver's verdict in a line, with the first broken rule's words where it refuses."""
    broken = check(tmap)
    if not broken:
        return "accepted"
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return f"refused: {broken[0]}{more}"


def _concerns(broken: Sequence[BrokenRule], argument: str) -> bool:
    """Whether a broken rule names this argument; `global_dim[0] * itemsize` names global_dim."""
    return any(rule.argument.split("[")[0].split(" ")[0] == argument for rule in broken)


def ask_driver(tmap: TensorMap) -> None:
    """Raises TensorMapError where the driver and our rules disagree."""
    from lesson import gpu

    if gpu.driver_accepts(tmap) == bool(check(tmap)):
        raise TensorMapError(
            "the driver's verdict must be that of the rules, got the opposite. This is a bug of"
            f" the lesson; report it with your driver's version and this map: {tmap}"
        )
