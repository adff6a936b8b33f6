"""Malformed input for everything that reads what a learner writes: PTX, launches, maps, markers.

Whatever comes in, there must come out a result or a `LessonError`, inside the limits of steps, time
and memory: no other exception, no warning, no hang. `python -m tests.fuzz --count 100000 --seed 1`
runs many cases; every case is made anew from its seed and number, so `--only NUMBER` repeats it.
"""
