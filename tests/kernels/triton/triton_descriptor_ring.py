# sample: triton_descriptor_ring
# says: a loop over tiles that Triton turns into a pipeline of descriptor loads with barriers of its own
# array src: {"dtype": "float32", "shape": [32, 256], "fill": "hash:-256:256"}
# array out: {"dtype": "float32", "shape": [32], "fill": -1}
# map src_map: {"of": "src", "box": [32, 32], "swizzle": "128B", "l2": "L2_128B"}
# launch: {"grid": 1, "block": 128, "dynamic_smem": 8208}
# args: ["src_map", {"i32": 32}, {"i32": 256}, {"i64": 256}, {"i64": 1}, "out", {"i32": 8}, {"u64": 0}, {"u64": 0}]
# expect out: src.sum(axis=1)
# signature: {"src": "tensordesc<fp32[32,32]>", "out": "*fp32", "tiles": "i32"}
# constants: {"T": 32}
# ruff: noqa: E501, ERA001

import triton
import triton.language as tl


@triton.jit
def k(src, out, tiles, T: tl.constexpr):
    total = tl.zeros((T, T), tl.float32)
    for t in tl.range(0, tiles, num_stages=3):
        total += src.load([0, t * T])
    tl.store(out + tl.arange(0, T), tl.sum(total, axis=1))
