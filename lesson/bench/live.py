"""The whole measurement on this machine's GPU, from an empty GPU to a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lesson import gpu, gpu_status
from lesson.bench import evidence, measure, tools, tune
from lesson.bench.build import Builder
from lesson.bench.contenders import GIB
from lesson.bench.device import Bench
from lesson.bench.measure import Session
from lesson.errors import TargetError

FLOATS = GIB  # of each of the two arrays: 4 GiB
TOOLS = ("counters", "sanitizers")
_SPARE_BYTES = GIB


def run(
    say: Callable[[str], None],
    sections: tuple[str, ...] = (*measure.SECTIONS, *TOOLS),
    tune_seconds: float = 0,
    keep: Callable[[dict[str, Any]], None] = lambda record: None,
) -> dict[str, Any]:
    """Measures `sections`; with `tune_seconds`, after a search that long.

    `keep` gets the record after each section: a run that is cut short has not been for nothing.
    """
    device = gpu.require(gpu_status.status())
    builder = Builder(f"sm_{device.capability[0]}{device.capability[1]}")
    try:
        _room()
        bench = Bench(FLOATS, builder)
        record = evidence.heading(bench.properties)
        session = Session(bench, say)
        if tune_seconds:
            say(f"searching for {tune_seconds:g} s ...")
            session.copies = tune.tune(session, tune_seconds)
        measure.run(session, record, [n for n in sections if n in measure.SECTIONS], keep)
        record["clocks_after"] = evidence.clocks()
    finally:
        builder.close()
    every = session.copies | session.transposes
    bench.release()
    if "counters" in sections:
        say("counters ...")
        record["counters"] = tools.counters(every)
        keep(record)
    if "sanitizers" in sections:
        say("sanitizers ...")
        record["sanitizers"] = tools.sanitizers(every)
        keep(record)
    return record


def _room() -> None:
    """TargetError unless the arrays fit."""
    import cupy

    free, _ = cupy.cuda.runtime.memGetInfo()
    need = 8 * FLOATS + _SPARE_BYTES
    if free < need:
        raise TargetError(
            f"the GPU must have {need / GIB:.0f} GiB free, got {free / GIB:.1f} GiB. End what else "
            "uses it."
        )
