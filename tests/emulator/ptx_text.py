"""Short PTX modules for tests, and a launch of one that returns what it wrote."""

from __future__ import annotations

from typing import Any

import numpy as np

from lesson import emulator

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = """
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .f32 %f<8>; .reg .b64 %rd<16>;
    .reg .b32 %t; .reg .b64 %out;
    mov.u32 %t, %tid.x; ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;
"""
PUT = "mad.wide.u32 %rd15, %t, 4, %out; st.global.b32 [%rd15], {};"


def module(body: str, head: str = "", params: str = "") -> str:
    """A module with the kernel k(out, ...); %t is tid.x and %out the output's address."""
    return (
        f"{HEAD}{head}\n.visible .entry k(.param .u64 out{params})\n{{{REGISTERS}{body}\nret;\n}}\n"
    )


def run(
    body: str,
    *args: Any,
    head: str = "",
    params: str = "",
    threads: int = 32,
    grid: Any = 1,
    words: int | None = None,
    **options: Any,
) -> np.ndarray:
    """The output words after one launch; they are all ones before."""
    out = np.full(words or threads, 0xFFFFFFFF, np.uint32)
    emulator.launch(module(body, head, params), "k", grid, threads, [out, *args], **options)
    return out
