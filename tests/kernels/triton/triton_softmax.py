# sample: triton_softmax
# says: a fused softmax of rows: approximate exp2 and division, so that only the chip says which bits are right
# array src: {"dtype": "float32", "shape": [8, 100], "fill": "hash:-9:10"}
# array out: {"dtype": "float32", "shape": [8, 100], "fill": -1}
# launch: {"grid": 8, "block": 64, "dynamic_smem": 8}
# args: ["src", "out", {"i32": 100}, {"u64": 0}, {"u64": 0}]
# expect out: recorded
# signature: {"src": "*fp32", "out": "*fp32", "n": "i32"}
# constants: {"BLOCK": 128}
# options: {"num_warps": 2}
# ruff: noqa: E501, ERA001

import triton
import triton.language as tl


@triton.jit
def k(src, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    values = tl.load(src + row * n + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * n + at, powers / tl.sum(powers, axis=0), mask=inside)
