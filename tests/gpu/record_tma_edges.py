"""Asks a Hopper GPU what the recordings of tensor maps and tensor copies leave open.

    python -m tests.gpu.record_tma_edges DIR [--random PATH_OF_THE_ORACLE'S_TMA_PY]

Writes `edges_encode.json` (parameters and the driver's answer), `edges_copy.json` (a load, store
or reduction a row) and `edges.npz` (`shared_i`: shared memory after a load; `changed_i` and
`values_i`: the global bytes that a copy changed) under DIR, and prints a few lines. Needs numpy,
CuPy and cuda.bindings. A copy that faults costs a child process, no more.

With `--random` it also asks for the random encodes of that script under fresh seeds; with `--later`
only for the second round (`tma_later_questions.py`).
What it does not ask: im2col maps, gather4 and scatter4 (not on sm_90), multicast.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import multiprocessing as mp
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np

from tests.gpu import tma_later_questions
from tests.gpu.tma_memory import GLOBAL_NBYTES, SHARED_NBYTES, box_nbytes, memory_before
from tests.gpu.tma_questions import (
    SIZE,
    Case,
    box_limit_families,
    encode_list,
    load_list,
    store_list,
)

WORKERS = 6

KERNEL = r"""
typedef struct alignas(64) M_ { unsigned long long o[16]; } M;
extern "C" __global__ void k(const __grid_constant__ M map, int c0, int c1, int c2, int c3, int c4,
                             unsigned offset, unsigned tx, unsigned char* mem, unsigned* done) {
  extern __shared__ __align__(1024) unsigned char raw[];
  unsigned char* sm = raw + ((1024 - ((unsigned)__cvta_generic_to_shared(raw) & 1023)) & 1023);
  __shared__ __align__(8) unsigned long long bar;
  unsigned s = (unsigned)__cvta_generic_to_shared(sm) + offset;
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  unsigned long long g = (unsigned long long)&map;
  for (unsigned i = threadIdx.x; i < NBYTES; i += blockDim.x) sm[i] = mem[i];
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) { BODY }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < NBYTES; i += blockDim.x) mem[i] = sm[i];
}
"""
LOAD_BODY = r"""
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
    :: "r"(b), "r"(tx) : "memory");
  asm volatile("cp.async.bulk.tensor.RANKd.shared::cluster.global.tile."
    "mbarrier::complete_tx::bytes [%0], [%1, {COORDS}], [%2];"
    :: "r"(s), "l"(g), "r"(b), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
  unsigned ok = 0;
  for (int i = 0; i < 2000 && !ok; i++) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
      " selp.u32 %0, 1, 0, p; }" : "=r"(ok) : "r"(b) : "memory");
    if (!ok) __nanosleep(200);
  }
  *done = ok; __nanosleep(20000);
"""
OTHER_BODY = r"""
  asm volatile("INSN"
    :: "l"(g), "r"(s), "r"(b), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  *done = 1;
"""


def kernel_source(op: str, rank: int) -> str:
    """The kernel for one operation and one rank of the instruction."""
    coords = ",".join(f"%{3 + j}" for j in range(rank))
    if op == "load":
        body = LOAD_BODY.replace("RANK", str(rank))
    elif op == "prefetch":
        body = OTHER_BODY.replace(
            "INSN", f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [%0, {{COORDS}}];"
        )
    else:
        head = "cp.async" if op == "store" else "cp.reduce.async"
        kind = "" if op == "store" else f".{op}"
        body = OTHER_BODY.replace(
            "INSN",
            f"{head}.bulk.tensor.{rank}d.global.shared::cta{kind}.tile.bulk_group "
            "[%0, {COORDS}], [%1];",
        )
    return KERNEL.replace("BODY", body.replace("COORDS", coords)).replace(
        "NBYTES", str(SHARED_NBYTES)
    )


class Gpu:
    """Encodes maps and runs one copy at a time."""

    def __init__(self) -> None:
        import cupy
        from cuda.bindings import driver

        self.cupy, self.driver, self.kernels = cupy, driver, {}
        cupy.cuda.Device(0).use()
        self.room = cupy.zeros(1 << 22, cupy.uint8)
        self.base = (self.room.data.ptr + 1023) // 1024 * 1024

    def encode(self, case: Case) -> tuple[str, list[int] | None]:
        """The driver's answer, and the 128 bytes as words."""
        d = self.driver

        def enum(name: str, prefix: str, tail: str) -> Any:
            return getattr(getattr(d, name), f"CU_TENSOR_MAP_{prefix}_{tail}")

        strides = case["strides"] or ([] if case.get("null_strides") else [16])
        try:
            err, m = d.cuTensorMapEncodeTiled(
                enum("CUtensorMapDataType", "DATA_TYPE", case["dtype"]), case["rank"],
                case.get("address", self.base + case["offset"]),
                [d.cuuint64_t(x) for x in case["dims"]], [d.cuuint64_t(x) for x in strides],
                [d.cuuint32_t(x) for x in case["box"]], [d.cuuint32_t(x) for x in case["estrides"]],
                enum("CUtensorMapInterleave", "INTERLEAVE", case["interleave"]),
                enum("CUtensorMapSwizzle", "SWIZZLE", case["swizzle"]),
                enum("CUtensorMapL2promotion", "L2_PROMOTION", case["l2"]),
                enum("CUtensorMapFloatOOBfill", "FLOAT_OOB_FILL", case["oob"]),
            )  # fmt: skip
        except Exception as e:  # noqa: BLE001 (whatever the bindings raise is the answer)
            return f"PYTHON:{type(e).__name__}", None
        return d.CUresult(err).name, None if int(err) else [int(x) for x in m.opaque]

    def copy(self, case: Case, before: np.ndarray, shared: np.ndarray, tx: int) -> Case:
        """Runs one copy; the answer holds shared and global memory after it."""
        cp = self.cupy
        result, words = self.encode(case)
        if words is None:
            return dict(outcome=result)
        rank = case.get("insn_rank", case["rank"])
        key = (case["op"], rank)
        if key not in self.kernels:
            f = cp.RawModule(code=kernel_source(*key), options=("-std=c++17",)).get_function("k")
            f.max_dynamic_shared_size_bytes = SHARED_NBYTES + 1024
            self.kernels[key] = f
        arg = np.zeros(1, np.dtype([("o", np.uint64, 16)]))
        arg["o"][0] = words
        span = cp.cuda.UnownedMemory(self.base, GLOBAL_NBYTES, self.room)
        view = cp.ndarray((GLOBAL_NBYTES,), cp.uint8, cp.cuda.MemoryPointer(span, 0))
        view.set(before)
        mem, done = cp.asarray(shared), cp.zeros(1, cp.uint32)
        coords = [np.int32(x) for x in (case["at"] + [0] * 5)[:5]]
        extra = (np.uint32(case.get("shared_offset", 0)), np.uint32(tx), mem, done)
        self.kernels[key]((1,), (128,), (arg[0], *coords, *extra), shared_mem=SHARED_NBYTES + 1024)
        cp.cuda.Device().synchronize()
        return dict(outcome="ok", done=int(done.get()[0]), shared=mem.get(), after=view.get())


def serve(pipe: Any) -> None:
    """Child process: one copy a message, until a fault ends it."""
    gpu = Gpu()
    while True:
        try:
            pipe.send(gpu.copy(*pipe.recv()))
        except Exception as e:  # noqa: BLE001 (a fault is the answer)
            pipe.send(dict(outcome=f"fault {str(e).split(':')[0]}"))


class Child:
    """Runs copies in a child process and replaces it after a fault."""

    def __init__(self) -> None:
        self.process: Any = None

    def __call__(self, *job: Any) -> Case:
        if self.process is None:
            context = mp.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=serve, args=(theirs,))
            self.process.start()
        self.pipe.send(job)
        answer = self.pipe.recv() if self.pipe.poll(60) else dict(outcome="hang")
        if answer["outcome"].startswith(("fault", "hang")):
            self.stop()
        return answer

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def record_encodes(gpu: Gpu, out: Path, cases: list[Case]) -> None:
    """Asks the encoder."""
    rows = [case | dict(result=gpu.encode(case)[0]) for case in cases]
    (out / "edges_encode.json").write_text(json.dumps(rows))
    print("encodes", len(rows), "accepted", sum(r["result"] == "CUDA_SUCCESS" for r in rows))


def largest_boxes(gpu: Gpu) -> list[Case]:
    """The largest box that the driver takes of each family, and the next, found by bisection."""
    found = []
    for name, family in box_limit_families().items():
        cases = [c for c in map(family, range(256, 65536)) if c]
        low, high = 0, len(cases) - 1
        while high - low > 1:
            middle = (low + high) // 2
            fits = gpu.encode(cases[middle])[0] == "CUDA_SUCCESS"
            low, high = (middle, high) if fits else (low, middle)
        for case in (cases[low], cases[high]):
            found.append(case | dict(family=name))
            print(name, math.prod(case["box"]) * SIZE[case["dtype"]])
    return found


def random_maps(oracle: str) -> list[Case]:
    """The random maps of the oracle's script under ten fresh seeds."""
    spec = importlib.util.spec_from_file_location("oracle_tma", oracle)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = []
    for seed in range(100, 110):
        rng = random.Random(seed)
        found += [module.random_map(rng, i % 3 == 0) | dict(seed=seed) for i in range(600)]
    return found


def record_copies(out: Path, cases: list[Case]) -> None:
    """Runs every load, store, reduction and prefetch, on a few child processes."""
    children: Queue[Child] = Queue()
    for _ in range(WORKERS):
        children.put(Child())

    def ask(case: Case) -> Case:
        child = children.get()
        try:
            return child(case, *memory_before(case), box_nbytes(case))
        finally:
            children.put(child)

    with ThreadPoolExecutor(WORKERS) as pool:
        answers = list(pool.map(ask, cases))
    while not children.empty():
        children.get().stop()
    rows, arrays = [], {}
    for i, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        rows.append(case | dict(outcome=answer["outcome"], done=answer.get("done")))
        if "after" in answer:
            changed = np.nonzero(answer["after"] != memory_before(case)[0])[0]
            arrays[f"shared_{i}"] = answer["shared"] if case["op"] == "load" else changed[:0]
            arrays[f"changed_{i}"] = changed.astype(np.uint32)
            arrays[f"values_{i}"] = answer["after"][changed]
    (out / "edges_copy.json").write_text(json.dumps(rows))
    np.savez_compressed(out / "edges.npz", **arrays)
    print("copies", len(rows), "not ok", sum(r["outcome"] != "ok" for r in rows))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--random", help="the oracle's tma.py, for fresh random encodes")
    parser.add_argument("--later", action="store_true", help="only the second round")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    gpu = Gpu()
    maps, copies = tma_later_questions.encode_list(), tma_later_questions.copy_list()
    if not options.later:
        seeded = random_maps(options.random) if options.random else []
        maps = encode_list() + largest_boxes(gpu) + seeded + maps
        copies = load_list() + store_list() + copies
    record_encodes(gpu, options.out, maps)
    record_copies(options.out, copies)


if __name__ == "__main__":
    main()
