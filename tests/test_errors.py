"""What every error of the lesson does beyond its words."""

import subprocess
import sys

from lesson import errors


def test_a_notebook_shows_the_words_without_the_lessons_own_frames():
    cell = 'from lesson import helpers; helpers.edit("kernel", "no such", "")'
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        f"InteractiveShell.instance().run_cell({cell!r})"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    shown = said.stdout + said.stderr
    assert "SnippetError: the text to replace must stand in 'kernel' exactly once" in shown
    assert "kernel_source.py" not in shown


def test_every_error_of_the_lesson_is_shown_like_that():
    for name in ("CompileError", "Hang", "IllegalAddress", "UnsupportedPtx"):
        error = getattr(errors, name)("the thing must be so, got that. Mend it.")
        assert error._render_traceback_() == [f"{name}: the thing must be so, got that. Mend it."]
