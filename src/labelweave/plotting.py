"""SVG plots in one common style, for reports, documentation and the report on teachers.

The plots can be read in print and by colour-blind readers: lines differ by dash style and marker
as well as by colour (the palette of Okabe and Ito), and heat maps use a colour map whose lightness
grows with the value. Text is kept as text in the SVG, so that it can be searched, and so that the
browser can draw characters that matplotlib's font lacks.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from labelweave.exceptions import require

__all__ = ["HEAT", "LineStyle", "draw", "line_style", "log_scale", "printable", "shorten"]

HEAT = "cividis"
# Control characters, halves of surrogate pairs, and marks that change the direction of a line.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (2, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_SETTINGS = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same measures everywhere
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a label called "$x$" is no formula
    "image.interpolation": "none",  # pixels as they are, not resampled to the screen's
}


class LineStyle(NamedTuple):
    """Colour, dashes and marker of a line."""

    color: str
    linestyle: Any
    marker: str


def line_style(k: int) -> LineStyle:
    """Return the style of the k-th line of a plot; the first 49 are all different."""
    return LineStyle(
        _COLOURS[k % len(_COLOURS)],
        _DASHES[(k + k // len(_COLOURS)) % len(_DASHES)],
        _MARKERS[(k + k // len(_COLOURS)) % len(_MARKERS)],
    )


def draw(name: str, width: float, height: float, paint: Callable[[Any], None]) -> str:
    """Return an SVG document that `paint` draws on a matplotlib Figure of this size in inches.

    Equal numbers give equal bytes: the SVG holds no date, and its ids are derived from `name`.
    """
    matplotlib = require("matplotlib", "report")
    require("matplotlib.figure", "report")
    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        # The reader's browser may have a glyph that this font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
        paint(figure)
        return _tidy(_svg_of(figure))


def _svg_of(figure: Any) -> str:
    buffer = io.StringIO()
    no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=no_metadata)
    return buffer.getvalue()


def log_scale(axis: Any, which: str, **options: Any) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks."""
    kind = "symlog" if options else "log"
    getattr(axis, f"set_{which}scale")(kind, **options)
    along = getattr(axis, f"{which}axis")
    along.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    along.set_minor_formatter(lambda value, _: "")


def _tidy(svg: str) -> str:
    """Remove the prologue and the ids that nothing refers to, which could clash within a page."""
    svg = svg[svg.index("<svg") :]
    referenced = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    return re.sub(
        r' id="([^"]+)"', lambda match: match[0] if match[1] in referenced else "", svg
    ).strip()


def shorten(name: str, length: int = 22) -> str:
    """Return a name on one line of bounded length, for an axis or a legend.

    >>> shorten("a very long name of a label", 12)
    'a very long…'
    """
    text = " ".join(printable(name).split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "\u2026"


def printable(text: Any) -> str:
    """Return the text with characters that no page or picture can hold replaced.

    >>> printable("a\\x00b")
    'a\ufffdb'
    """
    return _UNPRINTABLE.sub("\ufffd", str(text))
