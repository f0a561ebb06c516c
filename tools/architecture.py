"""Draw the packages and what they import: `python tools/architecture.py`.

The layers are those of ``.importlinter``, which the linter enforces; boxes and lines come from the
imports in the code. A test compares the committed drawing with a new one.
"""

from __future__ import annotations

import configparser
from collections import Counter
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "assets" / "architecture.svg"
PACKAGE = ROOT / "src" / "labelweave"
WIDTH, ROW, BOX, PAD = 960, 74, 38, 14
TURNS = (0.5, 0.2, 0.75, 0.35, 0.9, 0.1)
LEFT_OUT = ("__main__", "exceptions")  # the entry point, and what everything imports
COLOURS = {
    "dependent": "#0b7285",
    "partial": "#0b7285",
    "scattered": "#0b7285",
    "unseen": "#0b7285",
}


class Box(NamedTuple):
    """One box: a package, or the small modules of a layer together."""

    title: str
    names: tuple[str, ...]
    x: float
    y: float
    width: float


def layers() -> list[list[str]]:
    """Names of the packages and modules that exist, the top layer first."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    rows = []
    for line in config["importlinter:layers"]["layers"].split("\n"):
        names = [name.strip(" ()") for name in line.replace("|", ":").split(":")]
        there = [name for name in names if is_there(name) and name not in LEFT_OUT]
        if there:
            rows.append(there)
    return rows


def is_there(name: str) -> bool:
    return bool(name) and ((PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file())


def imports() -> Counter[tuple[str, str]]:
    """How often modules of one package import modules of another."""
    import grimp

    graph = grimp.build_graph("labelweave")
    counts: Counter[tuple[str, str]] = Counter()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            a, b = importer.split(".")[1:2], imported.split(".")[1:2]
            if a and b and a != b:
                counts[a[0], b[0]] += 1
    return counts


def boxes() -> list[Box]:
    """Rows of boxes; a single box of a row is placed left, right or in the middle by turns."""
    placed = []
    for level, names in enumerate(layers()):
        packages = [name for name in names if (PACKAGE / name).is_dir()]
        modules = tuple(name for name in names if name not in packages)
        groups = [(name, (name,)) for name in packages]
        if modules:
            groups.append((", ".join(modules), modules))
        widths = [7.2 * len(title) + 44 for title, _ in groups]
        room = WIDTH - 2 * PAD - sum(widths)
        if len(groups) == 1:
            x, gap = PAD + room * TURNS[level % len(TURNS)], 0.0
        else:
            gap = room / len(groups)
            x = PAD + gap / 2
        for (title, members), width in zip(groups, widths, strict=True):
            placed.append(Box(title, members, x, PAD + level * ROW, width))
            x += width + gap
    return placed


def drawing() -> str:
    """The picture as SVG text."""
    placed = boxes()
    box_of = {name: box for box in placed for name in box.names}
    lines: Counter[tuple[Box, Box]] = Counter()
    for (importer, imported), count in imports().items():
        a, b = box_of.get(importer), box_of.get(imported)
        if a is not None and b is not None and a != b:
            lines[a, b] += count
    height = max(box.y for box in placed) + BOX + PAD
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        'font-family="sans-serif" font-size="13">',
        "<title>Packages of labelweave, and what they import</title>",
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for (a, b), count in sorted(lines.items()):
        x1, x2 = a.x + a.width / 2, b.x + b.width / 2
        y1, y2 = a.y + BOX, b.y
        middle = (y1 + y2) / 2
        parts.append(
            f'<path d="M{x1:.0f} {y1:.0f} C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} '
            f'{x2:.0f} {y2:.0f}" fill="none" stroke="#868e96" stroke-opacity="0.45" '
            f'stroke-width="{min(1 + count / 12, 4):.1f}"><title>{escape(a.title)} imports '
            f"{escape(b.title)}: {count}</title></path>"
        )
    for box in placed:
        colour = COLOURS.get(box.title, "#343a40")
        parts.append(
            f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{BOX}" rx="5" '
            f'fill="{colour}"/>'
            f'<text x="{box.x + box.width / 2:.0f}" y="{box.y + 24:.0f}" fill="#ffffff" '
            f'text-anchor="middle">{escape(box.title)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
    print(f"written to {PICTURE}")
