"""What NVIDIA's tools say of the kernels: Nsight Compute's counters, compute-sanitizer's verdicts.

Both run `lesson.bench.profiled` in a process of its own. Where a tool is missing or cannot read
what it needs, its answer is the record.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from lesson.bench.contenders import MIB
from lesson.bench.variants import KERNEL, Variant

Record = dict[str, Any]

# Nsight Compute's names (Kernel Profiling Guide, Metrics Reference).
COUNTERS = (
    "gpu__time_duration.sum",
    "smsp__inst_executed.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "launch__registers_per_thread",
    "launch__occupancy_limit_shared_mem",
)
# A call to the driver that fails, as a look-up of a newer driver's function, is no kernel's fault.
_QUIET = ("--error-exitcode", "9", "--report-api-errors", "no")
SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")


def _program(mib: int, variants: Mapping[str, Variant]) -> list[str]:
    names = [json.dumps(v.as_json()) for v in variants.values()]
    return [sys.executable, "-m", "lesson.bench.profiled", str(mib), *names]


def counters(variants: Mapping[str, Variant], mib: int = 256, timeout_s: float = 60) -> Record:
    """The counters of one launch of each, at the clocks that the GPU happens to have."""
    tool = shutil.which("ncu")
    if tool is None:
        return {"failed": "ncu is not installed here"}
    wanted, words = COUNTERS, ""
    for _ in range(2):
        command = [
            tool, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
            "--print-fp", "--metrics", ",".join(wanted), "--kernel-name", f"regex:^{KERNEL}$",
            *_program(mib, variants),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"ncu did not end within {timeout_s:g} s"}
        rows = counter_rows(done.stdout)
        if len(rows) == len(variants):
            return {"nbytes": mib * MIB, "kernels": dict(zip(variants, rows, strict=True))}
        words = done.stdout + done.stderr
        unknown = [name for name in wanted if f"metric {name}" in words or f"{name}:" in words]
        wanted = tuple(name for name in wanted if name not in unknown)
        if not unknown:
            break
    return {"failed": f"ncu told of {len(rows)} kernels of {len(variants)}: {words[-600:]}"}


def counter_rows(text: str) -> list[dict[str, float]]:
    """Nsight Compute's CSV, one dictionary a launch: its metric names to numbers."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    out = []
    for row in rows[1:]:  # the first holds the units
        found = {}
        for name in COUNTERS:
            value = (row.get(name) or "").replace(",", "")
            if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", value):
                found[name] = float(value)
        out.append(found)
    return out


def sanitizers(variants: Mapping[str, Variant], mib: int = 1, timeout_s: float = 60) -> Record:
    """The four tools of compute-sanitizer over one small launch of each, all tools at once."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return {"failed": "compute-sanitizer is not installed here"}
    running = {
        name: subprocess.Popen(
            [tool, "--tool", name, *_QUIET, *_program(mib, variants)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in SANITIZERS
    }
    deadline = time.monotonic() + timeout_s
    return {
        name: _verdict(process, deadline - time.monotonic()) for name, process in running.items()
    }


def _verdict(process: subprocess.Popen[str], timeout_s: float) -> Record:
    try:
        words, _ = process.communicate(timeout=max(1.0, timeout_s))
    except subprocess.TimeoutExpired:
        process.kill()
        words, _ = process.communicate()
        return {"failed": f"no end in time: {words[-400:]}"}
    summary = re.findall(r"=+ (.*SUMMARY.*)", words)
    clean = process.returncode == 0
    return {
        "exit_status": process.returncode,
        "summary": summary[-1] if summary else "",
        "right": len(re.findall(r"^0 wrong:", words, re.MULTILINE)),
        "output": "" if clean else words[-1500:],
    }
