# sample: triton_transpose
# says: a 2-D tile by pointers with strides and masks on both sides, turned through shared memory
# array src: {"dtype": "float16", "shape": [50, 72], "fill": "hash:-2000:2000"}
# array out: {"dtype": "float16", "shape": [72, 50], "fill": 3}
# launch: {"grid": [3, 2], "block": 128, "dynamic_smem": 2048}
# args: ["src", "out", {"i32": 50}, {"i32": 72}, {"u64": 0}, {"u64": 0}]
# expect out: src.T
# signature: {"src": "*fp16", "out": "*fp16", "rows": "i32", "columns": "i32"}
# constants: {"T": 32}
# ruff: noqa: ERA001

import triton
import triton.language as tl


@triton.jit
def k(src, out, rows, columns, T: tl.constexpr):
    y = tl.program_id(1) * T + tl.arange(0, T)
    x = tl.program_id(0) * T + tl.arange(0, T)
    inside = (y[:, None] < rows) & (x[None, :] < columns)
    tile = tl.load(src + y[:, None] * columns + x[None, :], mask=inside, other=0.0)
    tl.store(out + x[:, None] * rows + y[None, :], tl.trans(tile), mask=tl.trans(inside))
