"""The command line: `python -m lesson COMMAND`.

Each command is a module with a function `add_to(commands)` that registers it and sets `main`, a
function from the parsed options to an exit status. Status 2 means that the command could not do its
work, with one sentence on stderr saying why.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from typing import NoReturn

from lesson import __version__, bench_command, check_command, get_notebook, info, run_lesson, slides
from lesson.errors import LessonError

COMMANDS = (run_lesson, slides, check_command, bench_command, get_notebook, info)


class Parser(argparse.ArgumentParser):
    """argparse, with a guess at what a mistyped command was meant to be."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the complaint; exit with status 2."""
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}{self.guess(message)}\n")

    def guess(self, message: str) -> str:
        """` Did you mean run?` when the complaint is of a choice that is nearly right."""
        found = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message)
        if found is None:
            return ""
        near = difflib.get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), n=1)
        return f" Did you mean {near[0]}?" if near else ""


def parser() -> argparse.ArgumentParser:
    """All commands in one parser."""
    top = Parser(prog="python -m lesson", description="One tile a block through TMA, as a lesson.")
    top.add_argument("--version", action="version", version=f"tma-lesson {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_to(commands)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run one command; what the lesson can explain becomes one sentence, not a traceback."""
    options = parser().parse_args(arguments)
    try:
        return options.main(options)
    except LessonError as error:
        print(f"lesson {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nlesson {options.command}: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
