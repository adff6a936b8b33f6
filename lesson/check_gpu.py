"""The same kernel on a Hopper GPU, if there is one: in a child process, after it came to an end in
the emulator."""

from __future__ import annotations

import numpy as np

from lesson import gpu
from lesson.check_case import Case
from lesson.compile import Ptx
from lesson.errors import DeviceFault, Hang, LessonError
from lesson.findings import Outcome

WHERE = "GPU"


def on_the_gpu(case: Case, ptx: Ptx | None, outcomes: list[Outcome]) -> Outcome | None:
    """What a Hopper GPU makes of it; None without one, or where the emulator saw it hang.

    What hangs in the emulator is not launched: the GPU would only be busy until the time limit.
    """
    if ptx is None or not gpu.status().ok:
        return None
    if any(each.outcome in ("hang", "limit") for each in outcomes):
        return Outcome(WHERE, "not launched", "it hangs in the emulator")
    args, arrays = case.fresh()
    try:
        gpu.run_isolated(
            ptx, case.kernel or ptx.kernels[0], case.grid, case.block, args,
            shared_bytes=case.shared_bytes, cluster=case.cluster, opt_in=case.opt_in,
        )  # fmt: skip
    except Hang as error:
        return Outcome(WHERE, "hang", str(error).split(". ")[0])
    except DeviceFault as error:
        return Outcome(WHERE, "error", error.cuda_error)
    except LessonError as error:
        return Outcome(WHERE, "error", str(error).split(". ")[0])
    wrong = sum(
        int(np.count_nonzero(arrays[name].reshape(-1) != want.reshape(-1)))
        for name, want in case.expected.items()
    )
    return Outcome(WHERE, "wrong" if wrong else "ok", "", wrong)
