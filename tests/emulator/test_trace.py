"""A trace is the list of what happened, block by block, and bounded."""

from __future__ import annotations

import numpy as np

from lesson import emulator
from lesson.emulator import Trace
from tests.emulator.ptx_text import module

BODY = """
    setp.ne.u32 %p1, %t, 0; @%p1 bra JOIN; mbarrier.init.shared.b64 [bar], 1;
    ld.param.u64 %rd1, [a]; mov.u32 %r1, cell; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [bar];
    JOIN: bar.sync 0;
    W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W; st.global.u32 [%out], %t;
"""
HEAD = ".shared .align 16 .b8 cell[64]; .shared .align 8 .b64 bar;"


def traced(trace: Trace, schedule: str = "late") -> emulator.Result:
    text = module(BODY, HEAD, ", .param .u64 a")
    out, data = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    return emulator.launch(text, "k", 2, 2, [out, data], schedule=schedule, observers=[trace])


def test_a_trace_tells_the_story_of_a_block() -> None:
    trace = Trace(blocks=[1])
    traced(trace)
    assert [event.kind for event in trace.events] == [
        *("init", "mbarrier arrive", "issue", "arrive", "release", "try", "land", "complete_tx"),
        *("flip", "try", "exit"),
    ]
    assert {event.block for event in trace.events} == {1}


def test_events_carry_threads_and_facts() -> None:
    trace = Trace(blocks=[0])
    traced(trace)
    (issue,) = trace.of_kind("issue")
    assert issue.threads == (0,)
    assert issue.detail["nbytes"] == 64
    assert issue.detail["smem"] == (0, 64)
    first, second = trace.of_kind("try")
    assert first.threads == (0, 1)
    assert first.detail["done"] == [False, False]
    assert second.detail["done"] == [True, True]


def test_accesses_are_noted_on_demand() -> None:
    trace = Trace(blocks=[0], accesses=True)
    traced(trace)
    (write,) = trace.of_kind("write")
    assert (write.threads, write.detail["space"], write.detail["nbytes"]) == ((0, 1), "global", 4)


def test_a_trace_is_bounded() -> None:
    trace = Trace(max_events=5)
    traced(trace)
    assert len(trace.events) == 5
    assert trace.is_full


def test_the_result_brings_the_trace_along() -> None:
    trace = Trace()
    assert traced(trace, "eager").trace is trace
