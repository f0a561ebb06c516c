"""The code blocks of a page, and what the comments of the page say about them.

Comments are invisible on the site and on GitHub:

``<!-- setup`` … ``-->``
    Python that runs at this place: files and names that the blocks below need.
``<!-- run -->``
    The commands of the next block are run, not only parsed.
``<!-- not run: reason -->``
    The next block is compiled or parsed, not run; the reason says what tests it instead.
``<!-- data -->``
    The page needs the data sets of LABELWEAVE_DATA.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PIECE = re.compile(
    r"^<!--\s*(?P<note>.*?)\s*-->|^```(?P<language>[\w-]*)\n(?P<code>.*?)^```", re.S | re.M
)


@dataclass(frozen=True)
class Block:
    """A block of code, its line in the page, and the note above it."""

    language: str
    code: str
    line: int
    note: str = ""

    @property
    def commands(self) -> list[str]:
        """Its commands of labelweave, continued lines joined."""
        joined = re.sub(r"\\\n\s*", "", self.code)
        lines = (line.removeprefix("$ ").strip() for line in joined.splitlines())
        return [line for line in lines if line.startswith("labelweave ")]


def pages() -> list[Path]:
    """The README and every page that people wrote."""
    written = (ROOT / "docs").rglob("*.md")
    made = (ROOT / "docs/gallery").glob("*.md")
    return [ROOT / "README.md", *sorted(set(written) - set(made))]


def blocks(text: str) -> list[Block]:
    """The blocks in their order; a setup is a Python block."""
    code_blocks, note = [], ""
    for piece in PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if piece["note"] is None:
            code_blocks.append(Block(piece["language"], piece["code"], line, note))
            note = ""
        elif piece["note"].startswith("setup\n"):
            code_blocks.append(
                Block("python", piece["note"].removeprefix("setup\n"), line, "setup")
            )
        else:
            note = piece["note"]
    return code_blocks
