"""One measurement of `emulator.py`, in a process that does nothing else.

    python benchmarks/emulator_child.py size|parse|classes PTX_FILE NUMBERS

`size WIDTH RUNS` launches the lesson's kernel, `classes WIDTH RUNS` tells what each class of
instruction takes, `parse RUNS` imports the emulator and parses. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TILE = 64
THREADS = 256
CLASSES = {
    "tensor copies": ("cp.async.bulk",),
    "mbarriers": ("mbarrier",),
    "loads": ("ld", "ldu"),
    "stores": ("st",),
    "barriers, warps, fences": ("bar", "barrier", "fence", "membar", "shfl", "vote", "elect"),
    "control flow": ("bra", "ret", "exit", "call", "brx"),
}


def launch_args(width: int) -> list[Any]:
    """The map of a new matrix, and the output."""
    import numpy as np

    from lesson.tensor_map import TensorMap

    matrix = np.arange(width * width, dtype=np.float32).reshape(width, width)
    box, strides = (TILE, TILE), (4 * width,)
    tmap = TensorMap("FLOAT32", (width, width), strides, box, base=matrix)
    return [tmap, np.zeros_like(matrix)]


def peak_nbytes() -> int:
    """Most memory that this program has held; on Linux without what its parent held at the fork."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measure_size(ptx: str, width: int, runs: int) -> dict[str, Any]:
    """Launches of one size: seconds of each, what they did, and the memory that they took."""
    import numpy as np

    from lesson.emulator import launch

    args, grid = launch_args(width), (width // TILE, width // TILE)
    before = peak_nbytes()
    first = launch(ptx, None, grid, THREADS, args)
    seconds, cpu_seconds = [], []
    for _ in range(runs):
        start = time.process_time()
        seconds.append(launch(ptx, None, grid, THREADS, args).seconds)
        cpu_seconds.append(time.process_time() - start)
    peak = peak_nbytes()
    source, out = args[0].base, args[1]
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "first_seconds": first.seconds,
        "parse_seconds": first.parse_seconds,
        "steps": first.steps,
        "copies": first.copies,
        "batches": first.batches,
        "peak_nbytes": peak,
        "added_nbytes": peak - before,
        "right": bool((out.view(np.uint32) == (source + np.float32(1)).view(np.uint32)).all()),
    }


def measure_classes(ptx: str, width: int, runs: int) -> dict[str, Any]:
    """Seconds of a launch by class of instruction, best of some; the rest is the launch itself."""
    from lesson.emulator import isa, launch

    found: dict[tuple[int, str], float] = {}

    def timed(entry: isa.Entry) -> isa.Entry:
        def build(instr: Any, builder: Any) -> Callable[..., Any]:
            run, key = entry.build(instr, builder), (instr.line, instr.name)

            def measure(*given: Any) -> Any:
                start = time.perf_counter()
                result = run(*given)
                took = time.perf_counter() - start
                found[key] = min(found.get(key, took), took)
                return result

            return measure

        return isa.Entry(build, entry.is_control, entry.reads_guard)

    isa.TABLE.update({name: timed(entry) for name, entry in isa.TABLE.items()})
    args, grid = launch_args(width), (width // TILE, width // TILE)
    total = min(launch(ptx, None, grid, THREADS, args).seconds for _ in range(runs))
    classes: dict[str, float] = {}
    for (_, name), seconds in found.items():
        kind = class_of(name)
        classes[kind] = classes.get(kind, 0.0) + seconds
    classes["the launch around them"] = max(total - sum(classes.values()), 0.0)
    return {"total_seconds": total, "classes": classes}


def class_of(name: str) -> str:
    """The class of an instruction, by the longest of its names in the table."""
    for kind, names in CLASSES.items():
        if any(name == each or name.startswith(each + ".") for each in names):
            return kind
    return "arithmetic and moves"


def measure_parse(ptx: str, runs: int) -> dict[str, Any]:
    """Processor seconds to import the emulator, to parse the text and to compile the kernel."""
    start = time.process_time()
    from lesson.emulator.program import Program
    from lesson.emulator.ptx import parse

    imported = time.process_time() - start
    seconds: dict[str, list[float]] = {"parse": [], "link": []}
    for _ in range(runs):
        parse.cache_clear()
        start = time.process_time()
        module = parse(ptx)
        seconds["parse"].append(time.process_time() - start)
        start = time.process_time()
        Program(module, module.entries[0])
        seconds["link"].append(time.process_time() - start)
    return {
        "import_seconds": imported,
        "parse_seconds": min(seconds["parse"]),
        "link_seconds": min(seconds["link"]),
        "nbytes": len(ptx),
    }


def main(what: str, path: str, *numbers: str) -> None:
    """Measure and print."""
    run = {"size": measure_size, "classes": measure_classes, "parse": measure_parse}[what]
    print(json.dumps(run(Path(path).read_text(encoding="utf-8"), *map(int, numbers))))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main(*sys.argv[1:])
