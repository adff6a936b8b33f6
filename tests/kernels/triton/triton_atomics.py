# sample: triton_atomics
# says: a histogram by masked atomic additions, and a float maximum by an atomic
# array src: {"dtype": "int32", "shape": [700], "fill": "hash:0:32"}
# array bins: {"dtype": "int32", "shape": [32], "fill": 1}
# array top: {"dtype": "float32", "shape": [1], "fill": -7}
# launch: {"grid": 3, "block": 128, "dynamic_smem": 16}
# args: ["src", "bins", "top", {"i32": 700}, {"u64": 0}, {"u64": 0}]
# expect bins: 1 + np.bincount(src, minlength=32)
# expect top: np.array([src.max() - 3.5], np.float32)
# signature: {"src": "*i32", "bins": "*i32", "top": "*fp32", "n": "i32"}
# constants: {"BLOCK": 256}
# ruff: noqa: ERA001

import triton
import triton.language as tl


@triton.jit
def k(src, bins, top, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    values = tl.load(src + at, mask=inside, other=0)
    tl.atomic_add(bins + values, 1, mask=inside)
    tl.atomic_max(top, tl.max(values.to(tl.float32), axis=0) - 3.5)
