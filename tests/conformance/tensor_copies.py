"""load.json, store.json and tma.npz: tensor copies, each by a small kernel around one instruction.

The kernels follow those that recorded: shared memory aligned to 1024 bytes, one thread that issues,
bounded polling of the barrier, so that a wrong byte count shows as `done` 0 and not as a hang.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.maps import map_of
from tests.conformance.outcome import Outcome, Run, answer_of, compare, judge, same_ending

SMEM_NBYTES = 32768
BLOCK = 1024
STRIDE = BLOCK * 16  # bytes that all threads move in one step of 16 bytes each
SLACK_NBYTES = 4096  # the recorder's tensors lay in a larger buffer: stores clip at 16 bytes

_HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u32 c0, .param .u32 c1, .param .u32 c2,
  .param .u32 c3, .param .u32 c4, .param .u32 tx, .param .u64 data, .param .u64 done)
{
  .reg .pred %p<3>; .reg .b32 %r<16>; .reg .b64 %l<8>;
  .shared .align 1024 .b8 tile[SMEM];
  .shared .align 8 .b64 bar;
  mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 4; mov.u32 %r2, tile; add.u32 %r1, %r1, %r2;
  mov.b64 %l0, map; cvta.param.u64 %l0, %l0;
  ld.param.u64 %l1, [data]; cvta.to.global.u64 %l1, %l1; mad.wide.u32 %l1, %r0, 16, %l1;
  ld.param.u32 %r3, [c0]; ld.param.u32 %r4, [c1]; ld.param.u32 %r5, [c2];
  ld.param.u32 %r6, [c3]; ld.param.u32 %r7, [c4]; ld.param.u32 %r8, [tx];
  setp.ne.u32 %p0, %r0, 0;
"""
_LOAD = """  mov.u32 %r9, 0xA5A5A5A5;
FILL  @!%p0 mbarrier.init.shared::cta.b64 [bar], 1;
  fence.proxy.async.shared::cta; bar.sync 0; @%p0 bra SHOW;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %r8;
  cp.async.bulk.tensor.RANKd.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [tile], [%l0, {COORDS}], [bar];
  mov.u32 %r10, 0;
POLL: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @%p1 bra OVER;
  nanosleep.u32 200; add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 2000; @%p2 bra POLL;
OVER: selp.u32 %r11, 1, 0, %p1; ld.param.u64 %l2, [done]; cvta.to.global.u64 %l2, %l2;
  st.global.u32 [%l2], %r11; nanosleep.u32 20000;
SHOW: bar.sync 0;
DUMP  ret;
}
"""
_STORE = """LOAD  fence.proxy.async.shared::cta; bar.sync 0; @%p0 bra OVER;
  INSTRUCTION [%l0, {COORDS}], [tile];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
OVER: ret;
}
"""


def tensor_fill(nbytes: int, salt: int) -> np.ndarray:
    """The bytes that the recorder put into the tensor of case `salt`."""
    i = np.arange(nbytes, dtype=np.uint64) + np.uint64(salt * 7919)
    return (i * np.uint64(2654435761) >> np.uint64(13)).astype(np.uint8)


def store_inputs(row: dict[str, Any], itemsize: int) -> tuple[np.ndarray, np.ndarray]:
    """Global and shared bytes before a store: formula bytes, small exact floats for a float sum."""
    data = tensor_fill(row["tensor_bytes"], row["salt"] + 100_000)
    tile = tensor_fill(SMEM_NBYTES, row["salt"] + 200_000)
    if row["op"] in ("add", "min", "max") and "FLOAT" in row["dtype"]:
        for memory in (data, tile):
            n = memory.size // itemsize
            small = (tensor_fill(n, 7).astype(np.int32) - 128).astype(np.float32)
            if row["dtype"] == "FLOAT16":
                small = small.astype(np.float16)
            elif row["dtype"] == "BFLOAT16":
                small = (small.view(np.uint32) >> 16).astype(np.uint16)
            memory[: n * itemsize] = small.view(np.uint8)
    return data, tile


def _all_tile(line: str) -> str:
    """An instruction for each 16 bytes of a thread's share of the tile."""
    return "".join(
        "  " + line.replace("AT", str(at)) + "\n" for at in range(0, SMEM_NBYTES, STRIDE)
    )


@functools.cache
def kernel(rank: int, op: str) -> str:
    """PTX of a load, a store or a reduction of that rank."""
    coords = ", ".join(f"%r{3 + k}" for k in range(rank))
    copy = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
    if op not in ("load", "store"):
        copy = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.tile.bulk_group"
    words = "{%r9, %r10, %r11, %r12}"
    parts = {
        "FILL": _all_tile("st.shared.v4.b32 [%r1+AT], {%r9, %r9, %r9, %r9};"),
        "LOAD": _all_tile(
            f"ld.global.v4.b32 {words}, [%l1+AT]; st.shared.v4.b32 [%r1+AT], {words};"
        ),
        "DUMP": _all_tile(
            f"ld.shared.v4.b32 {words}, [%r1+AT]; st.global.v4.b32 [%l1+AT], {words};"
        ),
        "INSTRUCTION": copy,
        "RANK": str(rank),
        "COORDS": coords,
        "SMEM": str(SMEM_NBYTES),
    }
    text = _HEAD + (_LOAD if op == "load" else _STORE)
    for name, value in parts.items():
        text = text.replace(name, value)
    return text


def replay_loads(folder: Path, run: Run) -> Iterator[Outcome]:
    """The bytes in shared memory, and whether the phase completed with the expected count."""
    rows = json.loads((folder / "load.json").read_text())
    with np.load(folder / "tma.npz") as arrays:
        for number, row in enumerate(rows):
            recorded = arrays.get(f"load_{number}")
            yield judge(f"load {number}", load_difference, run, row, recorded)


def replay_stores(folder: Path, run: Run) -> Iterator[Outcome]:
    """All bytes of the tensor after a store or a reduction."""
    rows = json.loads((folder / "store.json").read_text())
    with np.load(folder / "tma.npz") as arrays:
        for number, row in enumerate(rows):
            recorded = arrays.get(f"store_{number}")
            yield judge(f"store {number}", store_difference, run, row, recorded)


def load_difference(run: Run, row: dict[str, Any], recorded: np.ndarray | None) -> str | None:
    """What differs in one load; None where nothing does."""
    base = np.zeros(row["tensor_bytes"] + SLACK_NBYTES, np.uint8)
    base[: row["tensor_bytes"]] = tensor_fill(row["tensor_bytes"], row["salt"])
    tile, done = np.zeros(SMEM_NBYTES, np.uint8), np.zeros(1, np.uint32)
    wrong = _copy(run, row, "load", base, tile, done)
    if wrong is None and recorded is not None:
        wrong = compare(tile[: recorded.size], recorded)
        if int(done[0]) != row["done"]:
            wrong = f"done must be {row['done']}, got {done[0]}; {wrong or 'the bytes agree'}"
    return None if wrong is None else f"{row}\n  {wrong}"


def store_difference(run: Run, row: dict[str, Any], recorded: np.ndarray | None) -> str | None:
    """What differs in one store or reduction; None where nothing does."""
    data, tile = store_inputs(row, map_of(row).itemsize)
    base = np.zeros(data.size + SLACK_NBYTES, np.uint8)
    base[: data.size] = data
    wrong = _copy(run, row, row["op"], base, tile, np.zeros(1, np.uint32))
    if wrong is None and recorded is not None:
        wrong = compare(base[: data.size], recorded)
    return None if wrong is None else f"{row}\n  {wrong}"


def _copy(
    run: Run, row: dict[str, Any], op: str, base: np.ndarray, tile: np.ndarray, done: np.ndarray
) -> str | None:
    """Launch the kernel of a copy; what to say where it ends otherwise than recorded."""
    coords = [np.int32(c) for c in (row["coords"] + [0] * 5)[:5]]
    args = [map_of(row, base), *coords, np.uint32(row.get("tx", 0)), tile, done]
    text = kernel(row["rank"], op)
    ending, why = answer_of(lambda: run(text, "k", (1, 1, 1), (BLOCK, 1, 1), args))
    if same_ending(row["outcome"], ending):
        return None
    return f"must end with {row['outcome']}, got {ending}: {why}"
