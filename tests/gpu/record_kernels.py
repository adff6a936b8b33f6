"""Runs the sample kernels of tests/kernels on a Hopper GPU and records every output bit.

    python3 tests/gpu/record_kernels.py --out DIR [--only PATTERN] [--merge] [--jobs 8] [--sanitize]

The PTX texts come from the pack that `tests.kernels.build` wrote (tests/data/kernels/ptx.json.gz);
every text for sm_90 or sm_90a whose PTX ISA the driver knows is loaded and run, each sample in a
process of its own with a time limit, three times on fresh memory. Written to DIR: outputs.npz
(arrays `sample/array`, from the first text that ran; `sample/array@compiler` where another gave
other bits) and outcomes.json; with --merge, what DIR holds of samples that were not run now stays.
One line a sample is printed. Needs Python 3.11, numpy and the
driver (libcuda); nothing else. Exit status 1 where a sample failed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.gpu.driver import CudaError, Driver
from tests.kernels import pack, samples

TIMES = 3
SECONDS_PER_TEXT = 40.0
MARK = "@@ "  # begins the lines that a worker means for its parent


def runnable(text: str, ptx_isa: tuple[int, int]) -> bool:
    """Whether an sm_90 chip under this driver can run the text."""
    target = re.search(r"^\.target\s+(\w+)", text, re.MULTILINE)
    version = re.search(r"^\.version\s+(\d+)\.(\d+)", text, re.MULTILINE)
    if not target or not version:
        return False
    return target[1] in ("sm_90", "sm_90a") and tuple(map(int, version.groups())) <= ptx_isa


def run_once(
    cuda: Driver, sample: samples.Sample, function: int, module: int
) -> dict[str, np.ndarray]:
    """One launch on fresh memory: every array as it is afterwards."""
    arrays = sample.make_arrays()
    at = {name: cuda.upload(array) for name, array in arrays.items()}
    maps = {m.name: cuda.encode(m, at[m.of]) for m in sample.maps}
    for name, members in sample.symbols.items():
        cuda.write_symbol(module, name, b"".join(bytes(maps[m]) for m in members))
    args = [_argument(cuda, a, at, maps) for a in sample.args]
    cuda.launch(function, sample.grid, sample.block, sample.dynamic_smem, sample.cluster, args)
    cuda.synchronize()
    after = {name: cuda.download(at[name], array) for name, array in arrays.items()}
    for pointer in at.values():
        cuda.free(pointer)
    return after


def _argument(cuda: Driver, arg: Any, at: dict[str, int], maps: dict[str, Any]) -> Any:
    if isinstance(arg, str):
        return maps[arg] if arg in maps else ctypes.c_uint64(at[arg])
    ((kind, value),) = arg.items()
    if kind == "pointer":
        return ctypes.c_uint64(cuda.upload(np.frombuffer(bytes(maps[value]), np.uint8)))
    return np.ctypeslib.as_ctypes_type(samples.SCALARS[kind])(value)


def run_text(cuda: Driver, sample: samples.Sample, text: str, to: Path) -> dict[str, Any]:
    """Loads and runs one PTX text; saves the arrays; returns the outcome."""
    module = cuda.load(text)
    function = cuda.function(module, "k", sample.dynamic_smem)
    runs = [run_once(cuda, sample, function, module) for _ in range(TIMES)]
    first = {n: a for n, a in runs[0].items() if n not in _scratch(sample)}
    np.savez(to, **first)
    same = all(np.array_equal(_bits(r[n]), _bits(a)) for r in runs for n, a in first.items())
    wrong = {}
    for name, want in sample.expected().items():
        differs = np.flatnonzero(_bits(want) != _bits(first[name]))
        if differs.size:
            i = int(differs[0]) // want.itemsize
            wrong[name] = [i, str(first[name].ravel()[i]), str(want.ravel()[i]), int(differs.size)]
    cuda.unload(module)
    return {"outcome": "wrong" if wrong else "ok", "repeatable": same, "wrong": wrong}


def _scratch(sample: samples.Sample) -> set[str]:
    return {a.name for a in sample.arrays if a.scratch}


def _bits(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(array.tobytes(), np.uint8)


def worker(name: str, variants: list[str], pack_path: Path, folder: Path) -> None:
    """Runs the named texts one after another and says after each what came of it."""
    sample = next(s for s in samples.all_samples() if s.name == name)
    texts = pack.load(pack_path)[name]
    cuda = Driver()
    for variant in variants:
        print(MARK + json.dumps({"begin": variant}), flush=True)
        started = time.time()
        try:
            result = run_text(cuda, sample, texts[variant], folder / f"{name}@{variant}.npz")
        except CudaError as error:
            result = {"outcome": "error", "error": str(error)}
        result["seconds"] = round(time.time() - started, 2)
        print(MARK + json.dumps({"variant": variant, "result": result}), flush=True)
        if result["outcome"] == "error":
            return  # the context may be poisoned: the parent starts a new process for the rest


def _command(name: str, variants: list[str], pack_path: Path, folder: Path) -> list[str]:
    me = [sys.executable, str(Path(__file__).resolve()), "--worker", name, "--pack", str(pack_path)]
    return [*me, "--out", str(folder), *variants]


def run_child(command: list[str], seconds: float) -> tuple[dict[str, Any], str | None, str]:
    """Results by variant, the variant that was running at the end (or None), and the last words."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    killer = threading.Timer(seconds, child.kill)
    killer.start()
    results, running, words = {}, None, ""
    assert child.stdout is not None
    for line in child.stdout:
        if not line.startswith(MARK):
            words = (words + line)[-500:]
            continue
        message = json.loads(line[len(MARK) :])
        running = message.get("begin")
        if "variant" in message:
            results[message["variant"]] = message["result"]
    child.wait()
    killer.cancel()
    if child.returncode == -9:
        words = f"killed after {seconds} s. {words}"
    return results, running, words


def record_sample(name: str, variants: list[str], pack_path: Path, folder: Path) -> dict[str, Any]:
    """Every variant of one sample, with as many processes as that takes."""
    results: dict[str, Any] = {}
    left = list(variants)
    while left:
        seconds = 20 + SECONDS_PER_TEXT * min(len(left), 3)
        got, running, words = run_child(_command(name, left, pack_path, folder), seconds)
        results.update(got)
        if running is not None:
            results[running] = {"outcome": "died", "error": words}
        elif not got:
            results[left[0]] = {"outcome": "died", "error": words}
        left = [v for v in left if v not in results]
    return results


def sanitize(name: str, variant: str, pack_path: Path, folder: Path) -> dict[str, str]:
    """The closing line of each tool of compute-sanitizer."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    said = {}
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        command = [program, "--tool", tool, *_command(name, [variant], pack_path, folder)]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=90)
            lines = [x for x in done.stdout.splitlines() if "=========" in x]
            errors = [x for x in lines if "SUMMARY" not in x and "COMPUTE-SANITIZER" not in x]
            said[tool] = (lines[-1].strip("= ") if lines else "nothing") + (
                f" | {errors[0].strip('= ')}" if errors else ""
            )
        except (OSError, subprocess.TimeoutExpired) as why:
            said[tool] = f"not run: {type(why).__name__}"
    return said


def gather(outcomes: dict[str, Any], folder: Path) -> dict[str, np.ndarray]:
    """The arrays of the first text of each sample that ran, and of those that differ from it."""
    arrays: dict[str, np.ndarray] = {}
    for name, results in outcomes.items():
        for variant, result in results.items():
            file = folder / f"{name}@{variant}.npz"
            if result["outcome"] not in ("ok", "wrong") or not file.exists():
                continue
            for key, value in np.load(file).items():
                first = arrays.setdefault(f"{name}/{key}", value)
                if not np.array_equal(_bits(first), _bits(value)):
                    arrays[f"{name}/{key}@{variant}"] = value
                    result["differs"] = True
    return arrays


def kept_arrays(out: Path, record: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that `out` holds of other samples; what it says of them goes into `record`, too.

    Raises ValueError where it was recorded on another machine: one record has one machine.
    """
    before = json.loads((out / "outcomes.json").read_text())
    if before["about"] != record["about"]:
        raise ValueError(f"recorded on {before['about']}, and this is {record['about']}")
    now = set(record["outcomes"])
    record["outcomes"] = before["outcomes"] | record["outcomes"]
    if "sanitizer" in before:
        record["sanitizer"] = {k: v for k, v in before["sanitizer"].items() if k not in now}
    with np.load(out / "outputs.npz") as file:
        return {key: file[key] for key in file.files if key.partition("/")[0] not in now}


def _line(name: str, results: dict[str, Any]) -> str:
    bad = {v: r for v, r in results.items() if r["outcome"] != "ok" or not r.get("repeatable")}
    text = f"{name:26} {len(results) - len(bad)}/{len(results)} ok"
    for variant, result in bad.items():
        text += f"\n    {variant}: {json.dumps(result)[:400]}"
    return text


def parent(given: argparse.Namespace) -> int:
    """Records all samples; see the head of the module."""
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="record-kernels-"))
    about = Driver().about()
    isa = (9, 0) if about["driver_api"] < 13010 else (9, 1)
    texts = pack.load(given.pack)
    work = {}
    for name, variants in texts.items():
        if not given.only or re.search(given.only, name):
            ours = [v for v, t in variants.items() if runnable(t, isa)]
            work[name] = sorted(ours, key=lambda v: (not v.startswith("nvcc"), v))
    started = time.time()

    def one(name: str) -> tuple[str, dict[str, Any]]:
        results = record_sample(name, work[name], given.pack, folder)
        print(_line(name, results), flush=True)
        return name, results

    with ThreadPoolExecutor(given.jobs) as pool:
        outcomes = dict(pool.map(one, work))
    arrays = gather(outcomes, folder)
    record = {"about": about, "date": time.strftime("%Y-%m-%d"), "outcomes": outcomes}
    kept = kept_arrays(out, record) if given.merge else {}
    np.savez_compressed(out / "outputs.npz", **dict(sorted((kept | arrays).items())))
    _write(out, record)
    if given.sanitize:

        def check(name: str) -> tuple[str, dict[str, str]]:
            return name, sanitize(name, work[name][0], given.pack, folder)

        with ThreadPoolExecutor(max(1, given.jobs // 2)) as pool:
            record["sanitizer"] = record.get("sanitizer", {}) | dict(pool.map(check, work))
        _write(out, record)
    shutil.rmtree(folder, ignore_errors=True)
    failed = [n for n, r in outcomes.items() if any(x["outcome"] != "ok" for x in r.values())]
    different = sorted(k for k in arrays if "@" in k)
    print(
        f"{len(outcomes)} samples in {time.time() - started:.0f} s; failed: {failed or 'none'}; "
        f"differ between compilers: {different or 'none'}"
    )
    return 1 if failed else 0


def _write(out: Path, record: dict[str, Any]) -> None:
    (out / "outcomes.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def main() -> int:
    """The command line described at the head of the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pack", type=Path, default=pack.PTX_PACK)
    parser.add_argument("--only", help="only samples whose name this regular expression finds")
    parser.add_argument("--merge", action="store_true", help="keep the other samples of DIR")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument(
        "--sanitize", action="store_true", help="then one text each under compute-sanitizer"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("variants", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.pack = given.pack.resolve()
    if given.worker:
        worker(given.worker, given.variants, given.pack, given.out)
        return 0
    return parent(given)


if __name__ == "__main__":
    sys.exit(main())
