"""Mistakes that stop a launch before any thread runs: the map's rules, the limits of a launch."""

from __future__ import annotations

from lesson.check_case import Case
from lesson.check_scene import Scene
from lesson.findings import Finding, Place
from lesson.tensor_map import BrokenRule, TensorMap, check

DEFAULT_DYNAMIC_NBYTES = 48 << 10


def refused_maps(case: Case, scene: Scene) -> list[Finding]:
    """One finding a map that the driver refuses; every broken rule is in it."""
    found, seen = [], set()
    for name, tmap in case.maps.items():
        if id(tmap) in seen:
            continue
        seen.add(id(tmap))
        broken = check(tmap)
        if broken:
            found.append(_refused(name, tmap, broken, scene))
    return found


def _refused(name: str, tmap: TensorMap, broken: list[BrokenRule], scene: Scene) -> Finding:
    line = scene.head_line(name, "map") or scene.find_line(r"\bCUtensorMap\b.*[,)]")
    more = f" ({len(broken)} rules are broken)" if len(broken) > 1 else ""
    place = (Place(line, "the map", scene.text_at(line)),) if line else ()
    first = broken[0]
    says = f"{first.argument} must be {first.rule}, got {first.value}"
    return scene.finding(
        None, "map-refused", line,
        f"The driver refuses the tensor map {name} (CUDA_ERROR_INVALID_VALUE): {says}{more}.",
        " ".join(dict.fromkeys(rule.cure for rule in broken)),
        {rule.name or rule.argument: str(rule) for rule in broken}, place,
    )  # fmt: skip


def refused_launch(text: str, scene: Scene) -> Finding:
    """A launch that the chip refuses, by the words of the error."""
    line = scene.head_line("launch") or scene.find_line(r"__global__")
    what, _, cure = text.partition(". ")
    return scene.finding(
        None,
        "launch-refused",
        line,
        f"The launch is refused (CUDA_ERROR_INVALID_VALUE): {what}.",
        cure or "Change the launch.",
        {},
        (Place(line, "the launch", scene.text_at(line)),) if line else (),
    )


def opt_in(case: Case, scene: Scene) -> Finding | None:
    """Dynamic shared memory beyond 48 KiB needs a function attribute."""
    if case.opt_in or case.shared_bytes <= DEFAULT_DYNAMIC_NBYTES:
        return None
    line = scene.head_line("launch")
    return scene.finding(
        None, "shared-memory-opt-in", line,
        f"The launch asks for {case.shared_bytes} bytes of dynamic shared memory, and without an "
        "opt-in a kernel may have "
        f"{DEFAULT_DYNAMIC_NBYTES}: the driver refuses it (CUDA_ERROR_INVALID_VALUE).",
        "Raise the limit of the kernel first: cudaFuncSetAttribute(k, "
        "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) "
        "(CuPy: kernel.max_dynamic_shared_size_bytes).",
        {"bytes": case.shared_bytes, "limit": DEFAULT_DYNAMIC_NBYTES},
        (Place(line, "the launch", scene.text_at(line)),) if line else (),
    )  # fmt: skip
