"""When asynchronous copies land under each schedule, and what their waits wait for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lesson.emulator import Copy, Observer
from lesson.errors import Hang, IllegalAddress, IllegalInstruction, MisalignedAddress
from lesson.tensor_map import TensorMap
from tests.emulator.ptx_text import PUT, run

SCHEDULES = ("eager", "late", "random")
SHARED = ".shared .align 128 .b8 cell[512]; .shared .align 8 .b64 bar;"
A = ", .param .u64 a"
DATA = np.arange(32, dtype=np.uint32)
START = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, cell; setp.ne.u32 %p1, %t, 0; @%p1 bra JOIN;
    mbarrier.init.shared.b64 [bar], 1; fence.proxy.async.shared::cta;
"""
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], {}, [bar];"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [bar], {};"
WAIT = "JOIN: bar.sync 0; W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;"
READ = "mad.lo.u32 %r2, %t, 4, %r1; ld.shared.u32 %r3, [%r2];" + PUT.format("%r3")
LOAD = START + EXPECT.format(128) + BULK.format(128) + WAIT + READ


class Log(Observer):
    """The names of the copies' events in order."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def copy_issued(self, m: Any, copy: Copy) -> None:
        self.events.append(f"issue {copy.id}")

    def copy_landed(self, m: Any, copy: Copy) -> None:
        self.events.append(f"land {copy.id}")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_load_that_is_waited_for_gives_the_same_bits(schedule: str) -> None:
    got = run(LOAD, DATA, head=SHARED, params=A, schedule=schedule)
    assert np.array_equal(got, DATA)


def test_a_load_that_nobody_waits_for_shows_under_the_late_schedule() -> None:
    hasty = START + BULK.format(128) + "JOIN: bar.sync 0;" + READ
    assert np.array_equal(run(hasty, DATA, head=SHARED, params=A), DATA)
    late = run(hasty, DATA, head=SHARED, params=A, schedule="late")
    assert (late == 0xA5A5A5A5).all()


@pytest.mark.parametrize(
    "schedule,want",
    [
        ("eager", ["issue 0", "land 0", "issue 1", "land 1"]),
        ("late", ["issue 0", "issue 1", "land 1", "land 0"]),
    ],
)
def test_a_late_copy_lands_when_it_is_waited_for(schedule: str, want: list[str]) -> None:
    other = "mov.u32 %r9, cell; add.u32 %r9, %r9, 256;" + BULK.replace("%r1]", "%r9]").replace(
        "bar", "spare"
    )
    body = START.replace("fence", "mbarrier.init.shared.b64 [spare], 1; fence")
    body += other.format(64) + EXPECT.format(128) + BULK.format(128) + WAIT + READ
    log = Log()
    head = SHARED + ".shared .align 8 .b64 spare;"
    run(body, DATA, head=head, params=A, schedule=schedule, observers=[log])
    assert log.events == want


def test_the_random_schedule_is_that_of_its_seed() -> None:
    body = START + (EXPECT.format(0) + BULK.format(16)) * 8
    logs = []
    for seed in (1, 1, 2, 3):
        log = Log()
        run(
            body + "JOIN:",
            DATA,
            head=SHARED,
            params=A,
            schedule="random",
            seed=seed,
            observers=[log],
        )
        logs.append(log.events)
    assert logs[0] == logs[1]
    assert logs[0] != logs[2] or logs[0] != logs[3]
    assert all(sorted(log) == sorted(logs[0]) for log in logs)


STORE = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, cell; mad.lo.u32 %r2, %t, 4, %r1; st.shared.u32 [%r2], %t;
    fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra OUT;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 128; cp.async.bulk.commit_group;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_store_has_landed_when_its_group_is_waited_for(schedule: str) -> None:
    target = np.zeros(32, np.uint32)
    body = (
        STORE
        + "cp.async.bulk.wait_group 0; ld.global.u32 %r3, [%rd1+20];"
        + "st.global.u32 [%out], %r3; OUT:"
    )
    got = run(body, target, head=SHARED, params=A, schedule=schedule)
    assert got[0] == 5
    assert np.array_equal(target, DATA)


def test_memory_reused_before_the_wait_shows_under_the_late_schedule() -> None:
    for wait, want in (("cp.async.bulk.wait_group.read 0;", 0), ("", 99)):
        target = np.zeros(32, np.uint32)
        body = STORE + wait + "st.shared.u32 [%r1], 99; OUT:"
        run(body, target, head=SHARED, params=A, schedule="late")
        assert target[0] == want


def test_a_store_that_nobody_waits_for_still_lands() -> None:
    target = np.zeros(32, np.uint32)
    run(STORE + "OUT:", target, head=SHARED, params=A, schedule="late")
    assert np.array_equal(target, DATA)


def test_a_wait_leaves_the_newest_groups_in_flight() -> None:
    second = (
        "add.u64 %rd1, %rd1, 128; "
        "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 128; "
        "cp.async.bulk.commit_group;"
    )
    target = np.zeros(64, np.uint32)
    body = STORE + second + "cp.async.bulk.wait_group 1; st.shared.u32 [%r1], 99; OUT:"
    run(body, target, head=SHARED, params=A, schedule="late")
    assert (target[0], target[32]) == (0, 99)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_bulk_reduction_adds_element_by_element(schedule: str) -> None:
    target = np.full(32, 1000, np.uint32)
    body = STORE.replace("cp.async.bulk.global", "cp.reduce.async.bulk.global").replace(
        "bulk_group [", "bulk_group.add.u32 ["
    )
    run(body + "cp.async.bulk.wait_group 0; OUT:", target, head=SHARED, params=A, schedule=schedule)
    assert np.array_equal(target, DATA + 1000)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("form", ["noinc.", ""])
def test_an_arrival_follows_the_cp_async_of_its_lane(schedule: str, form: str) -> None:
    count = 32 if form else 1
    arrive = "" if form else "@!%p1 mbarrier.arrive.shared.b64 _, [bar];"
    body = f"""
        ld.param.u64 %rd1, [a]; setp.ne.u32 %p1, %t, 0;
        @!%p1 mbarrier.init.shared.b64 [bar], {count};
        bar.sync 0; mov.u32 %r1, cell; mad.lo.u32 %r2, %t, 4, %r1; mad.wide.u32 %rd1, %t, 4, %rd1;
        cp.async.ca.shared.global [%r2], [%rd1], 4; cp.async.mbarrier.arrive.{form}shared.b64 [bar];
        {arrive} W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
        cp.async.wait_all;
    """
    got = run(body + READ, DATA, head=SHARED, params=A, schedule=schedule)
    assert np.array_equal(got, DATA)


def test_a_wait_for_bytes_that_never_come_is_a_hang() -> None:
    body = LOAD.replace(EXPECT.format(128), EXPECT.format(144))
    with pytest.raises(Hang, match="mbarrier"):
        run(body, DATA, head=SHARED, params=A)


def test_fewer_bytes_expected_may_open_the_phase_early() -> None:
    body = START + EXPECT.format(128) + BULK.format(256) + WAIT + READ
    got = run(body, np.arange(64, dtype=np.uint32), head=SHARED, params=A, schedule="late")
    assert np.array_equal(got, DATA)


BROKEN = [
    (
        BULK.format(24),
        IllegalInstruction,
        "the size of a bulk copy must be a multiple of 16 bytes, got 24",
    ),
    ("add.u32 %r1, %r1, 8;" + BULK.format(16), MisalignedAddress, "must be a multiple of 16 bytes"),
    (
        "add.u64 %rd1, %rd1, 4;" + BULK.format(16),
        MisalignedAddress,
        "must be a multiple of 16 bytes",
    ),
    (BULK.format(144), IllegalAddress, "past the end of argument 1"),
    ("add.u32 %r1, %r1, 496;" + BULK.format(128), IllegalAddress, "shared memory, got 496 to 624"),
    (
        BULK.replace("[bar]", "[bar+4]").format(16),
        MisalignedAddress,
        "must be a multiple of 8 bytes",
    ),
]


@pytest.mark.parametrize("text,kind,words", BROKEN, ids=[words for *_, words in BROKEN])
def test_a_bulk_copy_that_the_chip_refuses_is_a_fault(text: str, kind: type, words: str) -> None:
    with pytest.raises(kind) as caught:
        run(START + text + "JOIN:", DATA, head=SHARED, params=A)
    assert words in str(caught.value)


TENSOR = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    " [%r1], [{}, {{%r4, %r5}}], [bar];"
)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("how", ["param", "generic param", "global"])
def test_a_tensor_map_is_read_where_it_lies(schedule: str, how: str) -> None:
    array = np.arange(64 * 16, dtype=np.uint32).reshape(64, 16)
    tensor = TensorMap.from_array(array, (4, 8))
    copied = "".join(
        f"ld.param.b64 %rd3, [map+{8 * k}]; st.global.b64 [%rd2+{8 * k}], %rd3;" for k in range(16)
    )
    where = {
        "param": "mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2;",
        "generic param": "mov.b64 %rd4, map; cvta.param.u64 %rd2, %rd4;",
        "global": "mov.u64 %rd2, room; cvta.global.u64 %rd2, %rd2;" + copied,
    }[how]
    body = START.replace("ld.param.u64 %rd1, [a];", where) + "mov.u32 %r4, 8; mov.u32 %r5, 40;"
    body += EXPECT.format(128) + TENSOR.format("%rd2") + WAIT + READ
    head = SHARED + ".global .align 64 .b8 room[128];"
    got = run(body, tensor, head=head, params=", .param .align 64 .b8 map[128]", schedule=schedule)
    assert np.array_equal(got, array[40:48, 8:12].reshape(-1))


BAD_MAPS = [
    (
        ".local .align 64 .b8 own[128];",
        "mov.u64 %rd2, own; cvta.local.u64 %rd2, %rd2;",
        IllegalAddress,
        "got local memory",
    ),
    (
        "",
        "mov.u64 %rd2, room; cvta.global.u64 %rd2, %rd2;",
        IllegalInstruction,
        "one that the launch was given",
    ),
]


@pytest.mark.parametrize("declare,where,kind,words", BAD_MAPS, ids=["local", "zeros"])
def test_what_is_no_tensor_map_is_a_fault(declare: str, where: str, kind: type, words: str) -> None:
    body = (
        declare
        + START
        + where
        + "mov.u32 %r4, 0; mov.u32 %r5, 0;"
        + TENSOR.format("%rd2")
        + "JOIN:"
    )
    head = SHARED + ".global .align 64 .b8 room[128];"
    with pytest.raises(kind) as caught:
        run(body, DATA, head=head, params=A)
    assert words in str(caught.value)


def test_a_multicast_lands_in_every_block_that_its_mask_names() -> None:
    array = np.arange(64, dtype=np.uint32)
    body = """
        ld.param.u64 %rd1, [a]; mov.u32 %r1, cell; mov.u32 %r9, %cluster_ctarank;
        setp.ne.u32 %p1, %t, 0;
        @%p1 bra JOIN; mbarrier.init.shared.b64 [bar], 1;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
        JOIN: barrier.cluster.arrive; barrier.cluster.wait; or.b32 %r8, %r9, %t;
        setp.ne.u32 %p3, %r8, 0;
        mov.u16 %h1, 3;
        @!%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
            [%r1], [%rd1], 128, [bar], %h1;
        W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
        mad.lo.u32 %r2, %t, 4, %r1; ld.shared.u32 %r3, [%r2]; mad.lo.u32 %t, %r9, 32, %t;
    """
    got = run(body + PUT.format("%r3"), array, head=SHARED, params=A, grid=2, cluster=2, words=64)
    assert np.array_equal(got, np.tile(array[:32], 2))
