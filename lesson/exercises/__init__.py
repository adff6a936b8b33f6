"""Four kernels with a gap for the reader to fill, and checks that say why a try is not right yet.

`find(name)` gives an exercise. Its kernel is `NAME.cu` beside this file, the gap the region `yours`
in it; what was asked, the data and the hints stand in `catalogue`. Solutions lie apart, in
`solutions/`, and no check looks at them.
"""

from __future__ import annotations

from lesson.exercises.exercise import NAMES, Exercise, find

__all__ = ["NAMES", "Exercise", "find"]
