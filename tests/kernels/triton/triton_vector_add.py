# sample: triton_vector_add
# says: Triton's first tutorial: masked addition of vectors whose length no block divides
# array x: {"dtype": "float32", "shape": [1000], "fill": "hash:-5000:5000"}
# array y: {"dtype": "float32", "shape": [1000], "fill": "ramp"}
# array out: {"dtype": "float32", "shape": [1024], "fill": -1}
# launch: {"grid": 4, "block": 128}
# args: ["x", "y", "out", {"i32": 1000}, {"u64": 0}, {"u64": 0}]
# expect out: np.concatenate([x + y, np.full(24, -1, np.float32)])
# signature: {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
# constants: {"BLOCK": 256}
# ruff: noqa: ERA001

import triton
import triton.language as tl


@triton.jit
def k(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)
