"""One look for every picture of the lesson, and the object that shows one with its alt text.

Does: colours, sizes and fonts for a projector; a `Picture` that Jupyter shows as HTML with alt text
(JupyterLab drops the alt text of a bare PNG, but keeps that of an HTML image).
Does not: draw anything of its own, or touch pyplot; no figure ends up in a global list.
Colours are those of Okabe and Ito, which also people can tell apart who do not tell red from green.
Every picture says with text what it says with colour.
"""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.colors
import matplotlib.style
import PIL.Image
from matplotlib.figure import Figure
from PIL.PngImagePlugin import PngInfo

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1A1A1A"
PAPER = "#FFFFFF"
GREY = "#8C8C8C"
PALE = "#ECECEC"
WASH = "#F6F6F6"
BLUE = "#0072B2"
SKY = "#56B4E9"
GREEN = "#009E73"
ORANGE = "#E69F00"
RED = "#D55E00"
PEACH = "#F6CDB0"

# Dark to light, also in grey: the picture survives a bad projector and a black-and-white print.
RAMP = "viridis"

FONT_POINTS = 15
TITLE_POINTS = 17
PIXELS_PER_INCH = 96
# Twice the pixels that are shown, so that text stays sharp on a projector or when zoomed.
SHARPNESS = 1.5

_RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": FONT_POINTS,
    "axes.titlesize": TITLE_POINTS,
    "axes.titleweight": "bold",
    "axes.titlepad": 12.0,
    "axes.titlelocation": "left",
    "axes.labelsize": FONT_POINTS,
    "axes.facecolor": PAPER,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": FONT_POINTS - 1,
    "ytick.labelsize": FONT_POINTS - 1,
    "hatch.color": INK,
    "hatch.linewidth": 0.8,
    "figure.constrained_layout.use": True,
}


def style() -> Any:
    """The context in which figures are built: the lesson's look, whatever the reader has set."""
    return matplotlib.style.context(["default", _RC])


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """An empty figure on white paper, so that it reads the same on a dark theme."""
    return Figure(figsize=(width_inches, height_inches), facecolor=PAPER)


def bare(axes: Axes) -> None:
    """Leaves the drawing area without ticks and frame."""
    axes.set_axis_off()


def text_on(background: tuple[float, float, float, float] | str) -> str:
    """Black or white, whichever reads better on `background` (luminance as WCAG 2 has it)."""
    red, green, blue, _ = matplotlib.colors.to_rgba(background)
    linear = [c / 12.92 if c < 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return PAPER if luminance < 0.18 else INK


@dataclass(frozen=True)
class Picture:
    """A matplotlib figure and the sentence that stands for it where it cannot be seen.

    The last expression of a notebook cell shows it. `figure.axes` gives the data that it shows.
    """

    figure: Figure
    alt: str

    def png(self) -> bytes:
        """The picture as PNG. Its alt text travels inside the file, too."""
        buffer = io.BytesIO()
        with style():
            dpi = PIXELS_PER_INCH * SHARPNESS
            self.figure.savefig(buffer, format="png", dpi=dpi, facecolor=PAPER)
        return _smaller(buffer, self.alt)

    def save(self, path: str | Path) -> None:
        """Writes the PNG to `path`."""
        Path(path).write_bytes(self.png())

    @cached_property
    def base64(self) -> str:
        """The PNG as text, for pages and notebooks."""
        return base64.b64encode(self.png()).decode("ascii")

    def html(self) -> str:
        """The picture as an HTML figure with its alt text."""
        width = round(self.figure.get_figwidth() * PIXELS_PER_INCH)
        image = (
            f'<img src="data:image/png;base64,{self.base64}" alt="{html.escape(self.alt)}"'
            f' width="{width}" style="max-width: 100%; height: auto;">'
        )
        # The first line is what JupyterLab shows of an output that is folded: no answer, no pixels.
        return f"<figure>\n{image}\n</figure>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What Jupyter shows: HTML with alt text, and the alt text alone for a terminal."""
        return {"text/html": self.html(), "text/plain": self.alt}


def _smaller(png: io.BytesIO, alt: str) -> bytes:
    """The same picture with a palette of 256 colours: a third of the bytes, and looks the same."""
    text, buffer = PngInfo(), io.BytesIO()
    text.add_itxt("Description", alt)
    image = PIL.Image.open(png).convert("RGB")
    image.quantize(256, dither=PIL.Image.Dither.NONE).save(
        buffer, "PNG", optimize=True, pnginfo=text
    )
    return buffer.getvalue()
