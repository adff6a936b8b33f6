# sample: triton_descriptor_copy
# says: tensor descriptors made on the host: a swizzled TMA load, an addition, a TMA store and a TMA reduction
# array src: {"dtype": "float32", "shape": [64, 64], "fill": "ramp"}
# array out: {"dtype": "float32", "shape": [64, 64], "fill": -1}
# array total: {"dtype": "float32", "shape": [64, 64], "fill": 5}
# map src_map: {"of": "src", "box": [32, 32], "swizzle": "128B", "l2": "L2_128B"}
# map out_map: {"of": "out", "box": [32, 32], "swizzle": "128B", "l2": "L2_128B"}
# map total_map: {"of": "total", "box": [32, 32], "swizzle": "128B", "l2": "L2_128B"}
# launch: {"grid": [2, 2], "block": 128, "dynamic_smem": 8192}
# args: ["src_map", {"i32": 64}, {"i32": 64}, {"i64": 64}, {"i64": 1}, "out_map", {"i32": 64}, {"i32": 64}, {"i64": 64}, {"i64": 1}, "total_map", {"i32": 64}, {"i32": 64}, {"i64": 64}, {"i64": 1}, {"u64": 0}, {"u64": 0}]
# expect out: src + 1
# expect total: 5 + src
# signature: {"src": "tensordesc<fp32[32,32]>", "out": "tensordesc<fp32[32,32]>", "total": "tensordesc<fp32[32,32]>"}
# constants: {"T": 32}
# ruff: noqa: E501, ERA001

import triton
import triton.language as tl


@triton.jit
def k(src, out, total, T: tl.constexpr):
    y = tl.program_id(1) * T
    x = tl.program_id(0) * T
    tile = src.load([y, x])
    out.store([y, x], tile + 1)
    total.atomic_add([y, x], tile)
