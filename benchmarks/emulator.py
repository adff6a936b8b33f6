"""What the emulator costs: `python benchmarks/emulator.py [--json] [--quick]`.

Reports, in one run: the lesson's kernel against numba's CUDA simulator on the same tile copy; the
cost from 256 x 256 to 4096 x 4096, with the time per element and the peak memory of a process that
does nothing else; import and parsing, and their share of a first run; and where the time of a
launch goes by class of instruction. Every size and numba run in a process of their own. Times are
the best of several runs, since other work on the machine only adds to them; medians and processor
times stand beside. On a busy machine the processor times are the ones to compare.

The larger matrices need NVRTC: the shipped source is compiled with other constants.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SIZES = (256, 512, 1024, 2048, 4096)


def in_child(what: str, path: Path, *numbers: int) -> dict[str, Any]:
    """The answer of `emulator_child.py` on a PTX file."""
    return answer("emulator_child.py", what, str(path), *map(str, numbers))


def answer(script: str, *arguments: str) -> dict[str, Any]:
    """The JSON object that a script of this folder prints."""
    command = [sys.executable, str(FOLDER / script), *arguments]
    # As on a learner's machine, modules are compiled once and not in each process.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900, env=env)
    return json.loads(done.stdout)


def compiled(width: int, folder: Path) -> Path:
    """The PTX of the lesson's kernel for a matrix of another width."""
    from lesson.compile import to_ptx
    from lesson.kernel_source import TileKernel

    text = TileKernel().source().text
    for name in ("kGmemWidth", "kGmemHeight"):
        text = text.replace(f"constexpr int {name} = 256;", f"constexpr int {name} = {width};")
    path = folder / f"{width}.ptx"
    path.write_text(to_ptx(text).text, encoding="utf-8")
    return path


def measured(is_quick: bool) -> dict[str, Any]:
    """All numbers of the report."""
    import numpy as np

    sizes = SIZES[:3] if is_quick else SIZES
    with tempfile.TemporaryDirectory() as name:
        texts = {width: compiled(width, Path(name)) for width in sizes}
        runs = {width: max(3, min(50, 12_000_000 // width**2)) for width in sizes}
        emulated = {width: in_child("size", texts[width], width, runs[width]) for width in sizes}
        parsing = in_child("parse", texts[256], 5)
        classes = in_child("classes", texts[256], 256, 50)
    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": answer("numba_simulator.py", "1" if is_quick else "3"),
        "sizes": {str(width): each for width, each in emulated.items()},
        "parsing": parsing,
        "classes": classes,
    }


def machine() -> str:
    """Processor, cores and system, as far as they say."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = lines[0].split(":")[1].strip() if lines else name
    return f"{name}, {os.cpu_count()} cores, {platform.system()}"


def report(found: dict[str, Any]) -> str:
    """The numbers as a page of text."""
    head = f"{found['date']}, {found['machine']}, Python {found['python']}, numpy {found['numpy']}"
    parts = [head, versus(found), sizes(found), once(found), classes(found)]
    return "\n\n".join(parts)


def versus(found: dict[str, Any]) -> str:
    """The lesson's kernel, here and in numba's simulator."""
    own, other = found["sizes"]["256"], found["numba"]
    best, cpu = min(own["seconds"]), min(own["cpu_seconds"])
    simulator, simulator_cpu = min(other["seconds"]), min(other["cpu_seconds"])
    return (
        f"lesson's kernel, 256 x 256: {1e3 * best:.2f} ms (median "
        f"{1e3 * statistics.median(own['seconds']):.2f}, processor {1e3 * cpu:.2f}), "
        f"{own['steps']} steps, {1e6 * best / own['steps']:.1f} us a step\n"
        f"numba {other['version']}, CUDA simulator: {1e3 * simulator:.0f} ms (processor "
        f"{1e3 * simulator_cpu:.0f}), {simulator / best:.0f} times as long (processor "
        f"{simulator_cpu / cpu:.0f})"
    )


def sizes(found: dict[str, Any]) -> str:
    """One line a size."""
    lines = [
        "  matrix       best     median  processor ns/element  copies  batches  peak MB  added MB"
    ]
    for width, each in found["sizes"].items():
        best, median = min(each["seconds"]), statistics.median(each["seconds"])
        cpu = min(each["cpu_seconds"])
        lines.append(
            f"{width + ' x ' + width:>11} {1e3 * best:7.1f} ms {1e3 * median:7.1f} ms "
            f"{1e3 * cpu:7.1f} ms {1e9 * cpu / int(width) ** 2:10.1f} {each['copies']:7} "
            f"{each['batches']:8} {each['peak_nbytes'] / 1e6:8.0f} "
            f"{each['added_nbytes'] / 1e6:9.0f}" + ("" if each["right"] else "   WRONG")
        )
    return "\n".join(lines)


def once(found: dict[str, Any]) -> str:
    """What is paid once: import, parsing, compiling."""
    parsing, launch = found["parsing"], min(found["sizes"]["256"]["cpu_seconds"])
    first = parsing["parse_seconds"] + parsing["link_seconds"]
    return (
        f"processor times: import {1e3 * parsing['import_seconds']:.0f} ms; "
        f"{parsing['nbytes'] / 1e3:.0f} kB of PTX: parse "
        f"{1e3 * parsing['parse_seconds']:.1f} ms, compile "
        f"{1e3 * parsing['link_seconds']:.1f} ms: {first / (first + launch):.0%} of a first run"
    )


def classes(found: dict[str, Any]) -> str:
    """Where a launch of the lesson's kernel spends its time."""
    total = found["classes"]["total_seconds"]
    lines = [f"where {1e3 * total:.2f} ms go:"]
    for kind, seconds in sorted(found["classes"]["classes"].items(), key=lambda item: -item[1]):
        lines.append(f"  {kind:26} {1e6 * seconds:6.0f} us {seconds / total:5.0%}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """The command line described above."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON")
    parser.add_argument("--quick", action="store_true", help="up to 1024 x 1024")
    given = parser.parse_args(arguments)
    found = measured(given.quick)
    print(json.dumps(found, indent=1) if given.json else report(found))
    return 0 if all(each["right"] for each in found["sizes"].values()) else 1


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parent))
    sys.exit(main(sys.argv[1:]))
