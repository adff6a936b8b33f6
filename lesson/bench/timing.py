"""Seconds on the GPU, by CUDA events. Samples are whole nanoseconds, one for each launch.

`alone` times launches one by one, launch overhead and all, as a caller meets it at large sizes.
`graph` replays many launches as one CUDA graph, so that Python's own time cannot show: what is left
is what the GPU needs between one kernel and the next. `rounds` has contenders take turns, so that a
slow drift of the clock hits all of them alike.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any

from lesson.bench.device import Call

_MS_TO_NS = 1e6


def alone(cupy: Any, call: Call, repeats: int, warm_up: int = 2) -> list[int]:
    """Nanoseconds of each of `repeats` launches in a row, from event to event."""
    for _ in range(warm_up):
        call()
    events = [cupy.cuda.Event() for _ in range(repeats + 1)]
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    return _between(cupy, events)


def graph(cupy: Any, calls: Sequence[Call], replays: int, warm_up: int = 2) -> list[int]:
    """Nanoseconds a launch, one sample for each replay of all `calls` in a row."""
    for call in calls:
        call()  # compiles and loads: neither may happen during the capture
    cupy.cuda.Device().synchronize()
    with on_stream(cupy) as stream:
        stream.begin_capture()
        for call in calls:
            call()
        captured = stream.end_capture()
        for _ in range(warm_up):
            captured.launch(stream)
        events = [cupy.cuda.Event() for _ in range(replays + 1)]
        events[0].record(stream)
        for event in events[1:]:
            captured.launch(stream)
            event.record(stream)
        return [round(ns / len(calls)) for ns in _between(cupy, events)]


@contextlib.contextmanager
def on_stream(cupy: Any) -> Iterator[Any]:
    """A new stream that CuPy, and PyTorch if it is loaded, launch on."""
    import sys

    stream = cupy.cuda.Stream(non_blocking=True)
    torch = sys.modules.get("torch")
    with contextlib.ExitStack() as stack:
        stack.enter_context(stream)
        if torch is not None:
            stack.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)))
        yield stream


def rounds(
    cupy: Any, calls: dict[str, Call], seconds: float, most: int = 60, each: int = 4
) -> dict[str, list[int]]:
    """All contenders in turn, again and again, until the time is up. Samples by name."""
    stop = time.monotonic() + seconds
    samples: dict[str, list[int]] = {name: [] for name in calls}
    for turn in range(most):
        if turn and time.monotonic() > stop:
            break
        for name, call in calls.items():
            samples[name] += alone(cupy, call, each, warm_up=1)
    return samples


def _between(cupy: Any, events: Sequence[Any]) -> list[int]:
    events[-1].synchronize()
    elapsed = cupy.cuda.get_elapsed_time
    return [round(elapsed(a, b) * _MS_TO_NS) for a, b in itertools.pairwise(events)]
