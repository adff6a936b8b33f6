"""Draw the README's picture from a run of the lesson's kernel: `python scripts/draw_heatmap.py`.

The run records who wrote each element, on whichever target is at hand; both give the same picture.
"""

from __future__ import annotations

from pathlib import Path

from lesson import helpers

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "heatmap.png"


def main() -> None:
    """Run, check the round trip, draw, save."""
    run = helpers.run_recorded()
    helpers.where_am_i()
    print(run.verdict)
    if run.wrong_elements:
        raise SystemExit("the round trip failed, so nothing was drawn")
    picture = helpers.draw_tile_writers(run)
    picture.save(PICTURE)
    print(f"{PICTURE.relative_to(PICTURE.parent.parent)}: {picture.alt}")


if __name__ == "__main__":
    main()
