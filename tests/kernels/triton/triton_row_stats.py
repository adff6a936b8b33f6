# sample: triton_row_stats
# says: reductions of rows: sum, largest element and where it is, and a running sum, over four warps
# array src: {"dtype": "int32", "shape": [6, 300], "fill": "hash:-3000:3000"}
# array sums: {"dtype": "int32", "shape": [6], "fill": 0}
# array tops: {"dtype": "int32", "shape": [6], "fill": 0}
# array where: {"dtype": "int32", "shape": [6], "fill": 0}
# array running: {"dtype": "int32", "shape": [6, 300], "fill": 0}
# launch: {"grid": 6, "block": 128, "dynamic_smem": 64}
# args: ["src", "sums", "tops", "where", "running", {"i32": 300}, {"u64": 0}, {"u64": 0}]
# expect sums: src.sum(axis=1)
# expect tops: src.max(axis=1)
# expect where: src.argmax(axis=1)
# expect running: np.cumsum(src, axis=1)
# signature: {"src": "*i32", "sums": "*i32", "tops": "*i32", "where": "*i32", "running": "*i32", "n": "i32"}
# constants: {"BLOCK": 512}
# ruff: noqa: E501, ERA001

import triton
import triton.language as tl


@triton.jit
def k(src, sums, tops, where, running, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    values = tl.load(src + row * n + at, mask=inside, other=0)
    tl.store(sums + row, tl.sum(values, axis=0))
    low = tl.where(inside, values, -2147483648)
    tl.store(tops + row, tl.max(low, axis=0))
    tl.store(where + row, tl.argmax(low, axis=0))
    tl.store(running + row * n + at, tl.cumsum(values, axis=0), mask=inside)
