"""The notebook's section on speed: what an H200 said, and a few points measured here.

The first is the same everywhere, and says that it is recorded. The second needs a Hopper GPU (or a
later one); without one, `here` says so, and its picture holds the record alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lesson import targets
from lesson.bench import evidence, summary
from lesson.errors import LessonError

if TYPE_CHECKING:
    from lesson.figure_style import Picture

# Where no number is shown here, a reader finds all of them on the benchmark's page.
_SHOWN = (
    "TMA one tile", "TMA one tile, TMA store", "plain 16-byte", "CuPy kernel, float4", "cudaMemcpy",
    "Triton", "torch.add", "lesson's tile", "cupy.add",
)  # fmt: skip


def copies() -> str:
    """The recorded ratios at 4 GiB, a line a contender."""
    record = evidence.load()
    ratios = {name: s.median for name, s in summary.ranking(record["copies"])}
    lines = [f"RECORDED on an {record['gpu']['name']}, {record['recorded']}, 4 GiB, ratios:"]
    lines += [f"  {ratios[name]:.3f}  {name}" for name in _SHOWN]
    return "\n".join(lines)


def draw(name: str) -> Picture:
    """One of the benchmark's pictures, from the record."""
    from lesson import figures_bench

    if name not in figures_bench.PICTURES:
        raise LessonError(
            f"a picture's name must be one of {', '.join(figures_bench.PICTURES)}, got {name!r}."
        )
    return figures_bench.PICTURES[name](evidence.load())


def threads_needed(share: float) -> dict[str, int | None]:
    """The fewest threads on a multiprocessor that reached so much of cudaMemcpy; from the record.

    None where no number of threads did.
    """
    record = evidence.load()
    return {name: summary.needed(record, name, share) for name in record["sweep"]["families"]}


def here() -> tuple[str, dict[tuple[str, int], float]]:
    """One line on what was measured here, and the points; both tell of nothing without a GPU."""
    if targets.choose().name != targets.Name.GPU:
        return "Measured here: nothing, for that takes a Hopper GPU or a later one.", {}
    from lesson.bench import quick

    try:
        points = quick.shares()
    except (LessonError, MemoryError) as error:
        return f"Measured here: nothing. {' '.join(str(error).split())}", {}
    words = ", ".join(f"{name} with {n}: {share:.2f}" for (name, n), share in points.items())
    return f"Measured here: {words}.", points


def draw_here(points: dict[tuple[str, int], float]) -> Picture:
    """The picture of threads with the points of `here` as stars. Its alt text is the record's."""
    from lesson import figures_bench

    return figures_bench.threads(evidence.load(), points)
