"""Compiles one Triton sample for compute capability 9.0 and prints its PTX, with no GPU.

    python triton_compile.py FILE SHARED_BYTES

FILE defines `k` and says in its head, beside the keys of `samples.py`: `signature` and `constants`
(JSON, as Triton's ASTSource takes them), `options` (JSON). SHARED_BYTES is what the head claims for
dynamic_smem.
"""

import importlib.util
import json
import re
import sys
from pathlib import Path


def main() -> int:
    """Prints the PTX; the exit status is 1 where Triton wants another dynamic_smem."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    path = Path(sys.argv[1])
    spec = importlib.util.spec_from_file_location("sample", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    head = dict(re.findall(r"^# (\w+): (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
    constants = json.loads(head.get("constants", "{}"))
    signature = {**json.loads(head["signature"]), **dict.fromkeys(constants, "constexpr")}
    compiled = triton.compile(
        ASTSource(fn=module.k, signature=signature, constexprs=constants),
        target=GPUTarget("cuda", 90, 32),
        options=json.loads(head.get("options", "{}")),
    )
    facts = compiled.metadata
    if facts.shared != int(sys.argv[2]):
        print(f"dynamic_smem must be {facts.shared}", file=sys.stderr)
        return 1
    print(f"{path.name}: {facts}", file=sys.stderr)
    print(compiled.asm["ptx"], end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
