"""One look for all plots, readable in print and without telling colours apart.

Lines differ by style and marker as well as by colour (the palette of Okabe and Ito); areas use
a map whose lightness grows with the value. Texts stay texts: they can be searched, and a
browser draws scripts that the font used for measuring has not.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from labelweave.exceptions import require
from labelweave.reporting.document import printable

__all__ = ["HEAT", "Line", "draw", "line", "log_scale", "short"]

HEAT = "cividis"
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


class Line(NamedTuple):
    """How the k-th line of a plot is drawn."""

    color: str
    linestyle: Any
    marker: str


def line(k: int) -> Line:
    """Style of the k-th line; no two of the first 49 are the same."""
    return Line(
        _COLOURS[k % len(_COLOURS)],
        _DASHES[(k + k // len(_COLOURS)) % len(_DASHES)],
        _MARKERS[(k + k // len(_COLOURS)) % len(_MARKERS)],
    )


def draw(name: str, width: float, height: float, paint: Callable[[Any], None]) -> str:
    """An SVG document of this size (inches), painted on a matplotlib Figure.

    The same numbers give the same bytes: no date, and ids that follow from `name`.
    """
    matplotlib = require("matplotlib", "report")
    require("matplotlib.figure", "report")
    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        # The measuring font need not have a glyph that the reader's browser has.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
        paint(figure)
        return _tidy(_svg_of(figure))


def _svg_of(figure: Any) -> str:
    written = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(written, format="svg", metadata=nothing)
    return written.getvalue()


def log_scale(axis: Any, which: str, **options: Any) -> None:
    """A logarithmic axis whose ticks are plain numbers."""
    kind = "symlog" if options else "log"
    getattr(axis, f"set_{which}scale")(kind, **options)
    along = getattr(axis, f"{which}axis")
    along.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    along.set_minor_formatter(lambda value, _: "")


def _tidy(svg: str) -> str:
    """Without prologue and without the ids that nothing refers to (they would clash in a page)."""
    svg = svg[svg.index("<svg") :]
    wanted = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    return re.sub(
        r' id="([^"]+)"', lambda found: found[0] if found[1] in wanted else "", svg
    ).strip()


def short(name: str, length: int = 22) -> str:
    """A name for an axis, in one line of bounded length.

    >>> short("a very long name of a label", 12)
    'a very long…'
    """
    text = " ".join(printable(name).split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "\u2026"
