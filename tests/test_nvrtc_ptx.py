"""The shipped kernels as NVRTC 12.6 to 13.5 compile them, run by the emulator to the same bits."""

from __future__ import annotations

import gzip

import pytest

from lesson import emulator, harness
from tests.gpu import live
from tests.record_nvrtc_versions import PTX_FOLDER, WHEELS

SCHEDULES = ("eager", "late", "random")


def ptx_of(version: str, kernel: str) -> str:
    packed = (PTX_FOLDER / f"nvrtc-{version}-{kernel}.ptx.gz").read_bytes()
    return gzip.decompress(packed).decode()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("version", WHEELS)
def test_the_round_trip_is_exact_whichever_nvrtc_compiled_it(version: str, schedule: str):
    array = live.matrix()
    out = array * 0
    args = [live.tile_map(array), out]
    emulator.launch(
        ptx_of(version, "load_tile"), None, live.GRID, live.BLOCK, args, schedule=schedule
    )
    assert live.is_exact(out)


@pytest.mark.parametrize("version", WHEELS)
def test_the_recording_says_who_wrote_what_whichever_nvrtc_compiled_it(version: str):
    array = live.matrix()
    out, record = array * 0, harness.new_write_record(array.size)
    args = [live.tile_map(array), out]
    args += [record.writer_blocks, record.writer_threads, record.write_counts]
    emulator.launch(ptx_of(version, "record_writes"), None, live.GRID, live.BLOCK, args)
    blocks, threads = live.expected_writers()
    assert live.is_exact(out)
    assert record.write_counts.tolist() == [1] * out.size
    assert record.writer_blocks.tolist() == blocks.tolist()
    assert record.writer_threads.tolist() == threads.tolist()
