"""A bar for what takes longer than two seconds; silence for what does not.

A kernel with a loop that does not end keeps a cell busy until the emulator's time limit. The bar
says that it is at work, and when it gives up. It shows time, not work done: how far a kernel is,
nobody knows. TQDM_DISABLE=1 in the environment switches it off, as for all of tqdm's bars.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

DELAY_S = 2.0
TICK_S = 0.25
FORMAT = "{desc}: {n:.0f} s of at most {total:.0f} s |{bar:30}|"


@contextmanager
def shown(what: str, limit_s: float) -> Iterator[None]:
    """While the block runs: from DELAY_S on, a bar on stderr; it goes away with the block."""
    done = threading.Event()
    ticker = threading.Thread(target=_tick, args=(what, limit_s, done), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()


def _tick(what: str, limit_s: float, done: threading.Event) -> None:
    start = time.monotonic()
    if done.wait(DELAY_S):
        return
    try:
        from tqdm import tqdm
    except ImportError:  # an image of its own, without it: the run matters, the bar does not
        return
    with tqdm(total=limit_s, desc=what, leave=False, bar_format=FORMAT) as bar:
        while not done.wait(TICK_S):
            bar.update(min(time.monotonic() - start, limit_s) - bar.n)
