"""A kernel to check, with all that a launch of it needs: from arguments, or from the head of its
file.

A file may describe itself in head comments, `// key: value`: `map` and `omap` (JSON: what differs
from the default tensor map), `launch` (grid, block, dynamic_smem in bytes, opt_in, cluster), `out`
(prefill, elems, width), `args` (JSON list of names or numbers), `expect` (add1, in-plus-prefill,
transposed). `case`, `says`, `verdict`, `class`, `twin` and `note` are for readers and are not
looked at. The input is elems floats 0, 1, 2, ...
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lesson.errors import LaunchError
from lesson.tensor_map import TensorMap

MAP = {
    "target": "in", "dtype": "FLOAT32", "gdim": [256, 256], "gstrides": None, "box": [64, 64],
    "elemstrides": None, "swizzle": "NONE", "interleave": "NONE", "l2": "NONE", "oob": "NONE",
    "base_offset_bytes": 0,
}  # fmt: skip
LAUNCH = {"grid": [4, 4], "block": 256, "dynamic_smem": 0, "opt_in": True, "cluster": None}
OUT = {"prefill": 0.0, "elems": 65536, "width": 256}
EXPECTED = ("add1", "in-plus-prefill", "transposed")
USED = ("map", "omap", "launch", "out", "args", "expect")
FOR_READERS = ("case", "says", "verdict", "class", "twin", "note")
_HEAD = re.compile(r"//\s*([a-z]+):\s*(.*)$")


@dataclass(frozen=True)
class Head:
    """The keys of a file's head with the line that each stands in; empty if it has none."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def line(self, *keys: str) -> int:
        """The line of the first of these keys that is there, or 0."""
        return next((self.lines[key] for key in keys if key in self.lines), 0)


@dataclass(frozen=True)
class Case:
    """What is checked. `args` are names of arrays and maps, or values; `expected`: array name ->
    contents."""

    name: str
    source: str
    path: str = ""
    kernel: str | None = None
    grid: Any = (1,)
    block: Any = (1,)
    cluster: Any = None
    shared_bytes: int = 0
    opt_in: bool = True
    args: tuple[Any, ...] = ()
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    maps: dict[str, TensorMap] = field(default_factory=dict)
    expected: dict[str, np.ndarray] = field(default_factory=dict)
    width: int = 0
    head: Head = field(default_factory=Head)

    @property
    def is_ptx(self) -> bool:
        """Whether the source is PTX rather than CUDA C++."""
        return bool(re.match(r"\s*(//[^\n]*\n\s*)*\.version\b", self.source))

    def fresh(self) -> tuple[list[Any], dict[str, np.ndarray]]:
        """Arguments over new copies of the arrays, and the copies by name."""
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        twins = {id(array): arrays[name] for name, array in self.arrays.items()}
        maps = {
            name: replace(tmap, base=twins.get(id(tmap.base), tmap.base))
            for name, tmap in self.maps.items()
        }
        named: dict[str, Any] = {**arrays, **maps}
        return [named[arg] if isinstance(arg, str) else arg for arg in self.args], arrays


def read_head(source: str, name: str = "") -> Head:
    """The head comments; LaunchError for a key that nobody knows, if there is a head at all."""
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(source.splitlines(), 1):
        found = _HEAD.match(line)
        if found is None:
            break
        key, value = found.groups()
        values[key] = f"{values[key]} {value}" if key in values else value
        lines.setdefault(key, number)
    if not set(values) & set(USED):
        return Head()
    unknown = sorted(set(values) - set(USED) - set(FOR_READERS))
    if unknown:
        raise LaunchError(
            f"a key of the head must be one of {', '.join(USED + FOR_READERS)}, got "
            f"{unknown[0]!r}. "
            f"{name or 'the source'} line {lines[unknown[0]]}. Remove it, or mend its spelling."
        )
    return Head(values, lines)


def _table(head: Head, key: str, defaults: dict[str, Any], name: str) -> dict[str, Any]:
    """The JSON object of a key over its defaults."""
    text = head.values.get(key, "{}")
    where = f"{name or 'the source'} line {head.line(key)}"
    try:
        given = json.loads(text)
    except ValueError as error:
        raise LaunchError(f"{key} must be JSON, got {text!r}. {where}. {error}.") from error
    return merged(given, key, defaults, where)


def merged(given: Any, key: str, defaults: dict[str, Any], where: str) -> dict[str, Any]:
    """A JSON object over its defaults; LaunchError for a key that is none of theirs."""
    if not isinstance(given, dict):
        raise LaunchError(f"{key} must be a JSON object, got {given!r}. {where}.")
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise LaunchError(
            f"a key of {key} must be one of {', '.join(defaults)}, got {unknown[0]!r}. {where}. "
            "Remove it, or mend its spelling."
        )
    return {**defaults, **given}


def tensor_map(given: dict[str, Any], arrays: dict[str, np.ndarray]) -> TensorMap:
    """The map that a (merged) JSON object describes."""
    dims = list(given["gdim"])
    strides = given["gstrides"]
    if strides is None:
        strides, nbytes = [], 4
        for size in dims[:-1]:
            nbytes *= size
            strides.append(nbytes)
    if given["target"] not in arrays:
        raise LaunchError(
            f"the target of a map must be one of {', '.join(arrays)}, got {given['target']!r}."
        )
    return TensorMap(
        dtype=given["dtype"],
        dims=tuple(dims),
        strides_bytes=tuple(strides),
        box=tuple(given["box"]),
        element_strides=tuple(given["elemstrides"] or [1] * len(dims)),
        interleave=given["interleave"],
        swizzle=given["swizzle"],
        l2_promotion=given["l2"],
        oob_fill=given["oob"],
        base=arrays[given["target"]],
        base_offset_bytes=given["base_offset_bytes"],
    )


def from_head(source: str, name: str, path: str, extra_map: str | None = None) -> Case:
    """The case that a head describes, or that its defaults do; `extra_map`: JSON over the head's
    map."""
    head = read_head(source, name)
    launch = _table(head, "launch", LAUNCH, name)
    out = _table(head, "out", OUT, name)
    n = int(out["elems"])
    before = np.arange(n, dtype=np.float32)
    prefill = before.copy() if out["prefill"] == "in" else np.full(n, out["prefill"], np.float32)
    arrays = {"in": before, "out": prefill}
    maps = {}
    for key in ("map", "omap"):
        if key == "map" or key in head.values:
            given = _table(head, key, MAP, name)
            if key == "map" and extra_map:
                given = merged(json.loads(extra_map), "--map", given, "the command line")
            maps[key] = tensor_map(given, arrays)
    maps["map_ptr"] = maps["map"]
    expect = head.values.get("expect", "add1")
    if expect not in EXPECTED:
        raise LaunchError(
            f"expect must be one of {', '.join(EXPECTED)}, got {expect!r}. {name} line "
            f"{head.line('expect')}."
        )
    right = before + (prefill if expect == "in-plus-prefill" else np.float32(1))
    if expect == "transposed":
        right = before.reshape(-1, int(out["width"])).T.ravel()
    args = tuple(json.loads(head.values.get("args", '["map", "out"]')))
    unknown = [arg for arg in args if isinstance(arg, str) and arg not in {**arrays, **maps}]
    if unknown:
        raise LaunchError(
            f"an argument must be one of {', '.join({**arrays, **maps})} or a number, got "
            f"{unknown[0]!r}. "
            f"{name} line {head.line('args')}."
        )
    writes_out = "out" in args or any(maps[a].base is prefill for a in args if a in maps)
    return Case(
        name=name,
        source=source,
        path=path,
        grid=launch["grid"],
        block=launch["block"],
        cluster=launch["cluster"],
        shared_bytes=int(launch["dynamic_smem"]),
        opt_in=bool(launch["opt_in"]),
        args=args,
        arrays=arrays,
        maps=maps,
        expected={"out": right} if head.values and writes_out else {},
        width=int(out["width"]),
        head=head,
    )


def read_source(source_or_path: Any) -> tuple[str, str, str]:
    """Text, name and path of what is to be checked: a path, or the text itself."""
    text = str(source_or_path)
    looks_like_path = isinstance(source_or_path, Path) or (
        "\n" not in text and text.strip().endswith((".cu", ".ptx", ".cuh"))
    )
    if not looks_like_path:
        return text, "cell.cu", ""
    path = Path(text)
    try:
        return path.read_text(encoding="utf-8"), path.name, str(path)
    except OSError as error:
        raise LaunchError(
            f"the file must be one that can be read, got {text!r} ({error.strerror}). Check the "
            "path."
        ) from error
    except UnicodeDecodeError as error:
        raise LaunchError(
            f"the file must be UTF-8 text, got {text!r}. Save it as UTF-8."
        ) from error
