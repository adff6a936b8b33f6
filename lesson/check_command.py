"""Name what is wrong with a kernel: `python -m lesson check FILE.cu`.

Runs the kernel in the emulator under every schedule of the copies, with the launch that the head
comments of the file describe or that the options give. Exit status: 0 when nothing was found, 1 on
a finding, 2 when it could not be run.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from lesson.check import SCHEDULES, check
from lesson.check_gpu import on_the_gpu
from lesson.errors import LessonError


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Register `check`."""
    parser = commands.add_parser(
        "check", help="name what is wrong with a kernel (.cu or .ptx)", description=__doc__
    )
    parser.add_argument("file", help="CUDA C++ or PTX; head comments may describe its launch")
    parser.add_argument("--kernel", help="its name; needed if the file has several")
    parser.add_argument("--grid", type=sizes, help="blocks in x, y, z, such as 4,4")
    parser.add_argument("--block", type=sizes, help="threads of a block, such as 256 or 32,8")
    parser.add_argument("--cluster", type=sizes, help="blocks of a cluster in x, y, z")
    parser.add_argument(
        "--map", metavar="JSON", help='what differs from the default map, such as {"box": [32, 64]}'
    )
    parser.add_argument("--shared", type=int, metavar="BYTES", help="dynamic shared memory")
    parser.add_argument("--schedule", choices=SCHEDULES, action="append", help="default: all")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--no-gpu", action="store_true", help="do not run it on a Hopper GPU, if there is one"
    )
    parser.set_defaults(main=main)


def sizes(text: str) -> tuple[int, ...]:
    """One to three whole numbers with commas between."""
    try:
        values = tuple(int(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 to 3 whole numbers above 0, got {text!r}")
    return values


def main(options: argparse.Namespace) -> int:
    """Check, print, and return the exit status."""
    try:
        report = check(
            options.file,
            kernel=options.kernel,
            grid=options.grid,
            block=options.block,
            cluster=options.cluster,
            shared_bytes=options.shared,
            tensor_maps={"map": map_of(options.map)} if options.map else None,
            schedules=options.schedule or SCHEDULES,
            gpu=None if options.no_gpu else on_the_gpu,
        )
    except LessonError as error:
        if options.json:
            print(json.dumps({"ok": False, "error": str(error), "findings": []}, indent=1))
        print(f"lesson check: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report.as_json(), indent=1) if options.json else report)
    return 0 if report.ok else 1


def map_of(text: str) -> dict[str, Any]:
    """The JSON object of --map."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise LessonError(f"--map must be JSON, got {text!r}. {error}.") from error
    if not isinstance(given, dict):
        raise LessonError(f"--map must be a JSON object, got {text!r}.")
    return given
