"""Asks a Hopper GPU the questions of `sync_questions` and writes its answers as `sync.npz`.

    python -m tests.gpu.record_sync_edges DIR

Needs numpy and CuPy. Every case has a process of its own, a few at a time, so one that faults or
hangs costs nothing but itself. `python -m tests.conformance DIR` then replays the answers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tests.gpu.sync_questions import Question, questions

WORKERS = 8
LIMIT_SECONDS = 20
FILL = 0xA5


def ask(question: Question, pipe: Any) -> None:
    """Run one case on the GPU and send its outcome and output."""
    import cupy as cp

    dtype, length = question.out
    program = cp.cuda.Module()
    try:
        program.load(question.module.encode() + b"\0")
        out = cp.asarray(np.full(length * np.dtype(dtype).itemsize, FILL, np.uint8).view(dtype))
        args = [cp.asarray(x) for x in question.inputs]
        args += [out] * (4 - len(args))
        program.get_function("k")((1, 1, 1), (question.block, 1, 1), tuple(args))
        cp.cuda.Device().synchronize()
        pipe.send(("ok", out.get()))
    except (cp.cuda.driver.CUDADriverError, cp.cuda.runtime.CUDARuntimeError) as error:
        pipe.send((str(error).split(":")[0], None))


def answer(question: Question) -> tuple[str, np.ndarray | None]:
    """The same in a child process; `timeout` where it does not come back, or dies."""
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=ask, args=(question, theirs))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(LIMIT_SECONDS) else ("timeout", None)
    except EOFError:
        return "timeout", None
    finally:
        child.kill()
        child.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    asked = questions()
    with ThreadPoolExecutor(WORKERS) as pool:
        answers = list(pool.map(answer, asked))
    arrays, meta = {}, []
    for number, (question, (outcome, out)) in enumerate(zip(asked, answers, strict=True)):
        inputs = dict(zip("abc", question.inputs, strict=False))
        arrays |= {f"{number}_{name}": array for name, array in inputs.items()}
        if question.mask is not None:
            arrays[f"{number}_mask"] = question.mask
        if out is not None:
            arrays[f"{number}_out"] = out
        ins = [(x.dtype.str[1:], x.size) for x in question.inputs]
        shape = {"grid": (1, 1, 1), "block": (question.block, 1, 1), "ins": ins, "struct": ""}
        about = {"set": question.set, "name": question.name, "out": question.out}
        row = {**about, **shape, "outcome": outcome, **question.notes, "module": question.module}
        meta.append(json.dumps(row))
    np.savez_compressed(folder / "sync.npz", **arrays, meta=np.array(meta))
    for outcome, count in Counter(outcome for outcome, _ in answers).items():
        print(f"{outcome}: {count}")


if __name__ == "__main__":
    main()
