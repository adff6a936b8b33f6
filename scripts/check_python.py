"""Refuse a Python that is too old, in words; name one on this machine that would do.

    python3 scripts/check_python.py

Runs on any Python from 2.7 on, so that an old one gets the sentence and not a syntax error.
"""

import os
import sys

OLDEST = (3, 11)


def newer_pythons(path):  # noqa: ANN001, ANN201 - Python 2 has no annotations
    """Names such as python3.12 in the folders of `path`, the newest first."""
    folders = path.split(os.pathsep)
    names = ["python3.%d" % minor for minor in range(20, OLDEST[1] - 1, -1)]
    return [n for n in names if any(os.access(os.path.join(f, n), os.X_OK) for f in folders)]


def complaint(version, executable, path):  # noqa: ANN001, ANN201 - as above
    """The sentence for a Python that is too old, or None for one that will do."""
    if tuple(version[:2]) >= OLDEST:
        return None
    newer = newer_pythons(path)
    cure = (
        "Say: make PYTHON=%s ..." % newer[0]
        if newer
        else "Install one, or name it: make PYTHON=..."
    )
    got = "%d.%d (%s)" % (version[0], version[1], executable)
    return "Python must be %d.%d or newer, got %s. %s" % (OLDEST[0], OLDEST[1], got, cure)


if __name__ == "__main__":
    sys.exit(complaint(sys.version_info, sys.executable, os.environ.get("PATH", "")))
