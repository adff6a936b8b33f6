"""Precompiled headers: NVRTC reads libcu++ once a process for each kernel, not once a compile.

Nearly all of a compile's time goes into the headers, which are the same for every edit of a
kernel. NVRTC 12.8 and later keep what they have read in a file and take it up again where source
and options begin alike (NVRTC manual, "Precompiled Headers"). The PTX stays the same to the letter:
a test says so. Writing the file costs a quarter of a compile, and saves three quarters of the next.
The files live as long as the process, since they fit no other build of NVRTC and no other address
space.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from functools import lru_cache

from lesson.cuda_headers import Version

FIRST_VERSION = (12, 8)
_BEGINNING = re.compile(r".*^\s*#\s*include[^\n]*", re.DOTALL | re.MULTILINE)


def options(version: Version, source: str) -> tuple[str, ...]:
    """NVRTC's options for precompiled headers; none where it has none, or no headers."""
    beginning = _BEGINNING.match(source)
    if version < FIRST_VERSION or not beginning:
        return ()
    folder = _folder()
    if folder is None:
        return ()
    return ("--pch", f"--pch-dir={folder}", "--pch-verbose=false", "--pch-messages=false")


@lru_cache(maxsize=1)
def _folder() -> str | None:
    """A folder of this process; None where nobody may write: compiles then just take longer."""
    try:
        folder = tempfile.mkdtemp(prefix="tma-lesson-")
    except OSError:
        return None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
