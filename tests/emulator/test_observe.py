"""Observers hear of every event, in order, with the lanes and bytes that it concerns."""

from __future__ import annotations

from typing import Any

import numpy as np

from lesson import emulator
from lesson.emulator import Copy, Observer
from lesson.emulator.ptx import Instr
from tests.emulator.ptx_text import PUT, module, run

SHARED = ".shared .align 16 .b8 cell[256]; .shared .align 8 .b64 bar;"


class Recorder(Observer):
    """Every event as a tuple: its name, then what matters of it."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def names(self) -> list[str]:
        return [event[0] for event in self.events]

    def begin_launch(self, m: Any) -> None:
        self.events.append(("begin launch",))

    def begin_batch(self, m: Any) -> None:
        self.events.append(("begin batch", m.first_block, m.nblocks))

    def end_batch(self, m: Any) -> None:
        self.events.append(("end batch",))

    def access(
        self, m: Any, instr: Instr, kind: str, space: str, lanes: Any, index: Any, nbytes: int
    ) -> None:
        self.events.append(("access", kind, space, lanes.tolist(), index.tolist(), nbytes))

    def bar_arrive(self, m: Any, instr: Instr, lanes: Any, barrier: Any) -> None:
        self.events.append(("bar arrive", lanes.tolist(), barrier.tolist()))

    def bar_release(self, m: Any, lanes: Any, block: int, barrier: int) -> None:
        self.events.append(("bar release", lanes.tolist(), block, barrier))

    def warp_sync(self, m: Any, instr: Instr, lanes: Any) -> None:
        self.events.append(("warp sync", lanes.tolist()))

    def mbar(self, m: Any, instr: Instr | None, op: str, lanes: Any, index: Any, **_: Any) -> None:
        self.events.append((f"mbar {op}", instr is None, lanes.tolist(), index.tolist()))

    def fence(self, m: Any, instr: Instr, lanes: Any) -> None:
        self.events.append(("fence", lanes.tolist()))

    def copy_issued(self, m: Any, copy: Copy) -> None:
        self.events.append(("issued", copy.kind, copy.lane, copy.smem_start, copy.nbytes))

    def copy_landed(self, m: Any, copy: Copy) -> None:
        self.events.append(("landed", copy.kind, copy.has_landed))

    def commit(self, m: Any, instr: Instr, lanes: Any) -> None:
        self.events.append(("commit", lanes.tolist()))

    def wait_group(self, m: Any, instr: Instr, lanes: Any, n: int, read: bool) -> None:
        self.events.append(("wait group", lanes.tolist(), n, read))

    def exit(self, m: Any, lanes: Any) -> None:
        self.events.append(("exit", lanes.tolist()))


def events(body: str, *args: Any, **options: Any) -> list[tuple[Any, ...]]:
    recorder = Recorder()
    run(body, *args, observers=[recorder], **options)
    return recorder.events


def test_accesses_carry_lanes_bytes_and_space() -> None:
    body = """
        setp.lt.u32 %p1, %t, 2; mov.u32 %r1, cell; mad.lo.u32 %r1, %t, 8, %r1;
        @%p1 st.shared.v2.u32 [%r1], {%t, %t}; @%p1 atom.shared.add.u32 %r2, [cell+64], 1;
    """
    found = [event for event in events(body, head=SHARED) if event[0] == "access"]
    assert found == [
        ("access", "write", "shared", [0, 1], [0, 8], 8),
        ("access", "atomic", "shared", [0, 1], [64, 64], 4),
    ]


def test_a_global_access_counts_in_the_arena() -> None:
    recorder = Recorder()
    out = np.zeros(64, np.uint32)
    text = module("st.global.u32 [%out+8], 1;")
    emulator.launch(text, "k", 1, 1, [out], observers=[recorder])
    ((_, kind, space, lanes, index, nbytes),) = [e for e in recorder.events if e[0] == "access"]
    assert (kind, space, lanes, nbytes) == ("write", "global", [0], 4)
    assert index[0] % 1024 == 8


def test_a_batch_begins_syncs_exits_and_ends() -> None:
    found = events("bar.sync 3;", grid=2, threads=2, words=4)
    assert found == [
        ("begin launch",),
        ("begin batch", 0, 2),
        ("bar arrive", [0, 1, 32, 33], [3, 3, 3, 3]),
        ("bar release", [0, 1], 0, 3),
        ("bar release", [32, 33], 1, 3),
        ("exit", [0, 1, 32, 33]),
        ("end batch",),
    ]


def test_a_load_is_issued_lands_completes_and_flips() -> None:
    body = """
        mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
        ld.param.u64 %rd1, [a]; mov.u32 %r1, cell;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
            [%r1+32], [%rd1], 16, [bar];
        mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
    """
    found = events(body, np.zeros(8, np.uint64), head=SHARED, params=", .param .u64 a", threads=1)
    assert found[2:-2] == [
        ("mbar init", False, [0], [256]),
        ("fence", [0]),
        ("mbar arrive", False, [0], [256]),
        ("issued", "bulk_load", 0, 32, 16),
        ("landed", "bulk_load", True),
        ("mbar complete_tx", True, [0], [256]),
        ("mbar flip", True, [0], [256]),
        ("mbar test", False, [0], [256]),
    ]


def test_groups_and_warps_are_told() -> None:
    body = "cp.async.commit_group; cp.async.bulk.wait_group.read 2; bar.warp.sync -1;"
    found = events(body, threads=3, words=3)[2:-2]
    assert found == [
        ("commit", [0, 1, 2]),
        ("wait group", [0, 1, 2], 2, True),
        ("warp sync", [0, 1, 2]),
    ]


def test_a_launch_that_starts_over_says_so() -> None:
    body = """
        atom.global.add.u32 %r1, [%out], 1; W: ld.volatile.global.u32 %r2, [%out];
        setp.ne.u32 %p2, %r2, 3; @%p2 bra W;
    """
    recorder = Recorder()
    run(body, grid=4, threads=1, words=1, batch_blocks=1, observers=[recorder])
    assert recorder.names().count("begin launch") == 2
    last = len(recorder.events) - recorder.names()[::-1].index("begin launch")
    assert recorder.events[last] == ("begin batch", 0, 4)


def test_an_observed_run_gives_the_same_bits() -> None:
    body = "mul.lo.u32 %r1, %t, 3;" + PUT.format("%r1")
    assert np.array_equal(run(body), run(body, observers=[Recorder()]))
