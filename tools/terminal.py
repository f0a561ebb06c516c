"""Draw what a command printed as a picture: `labelweave demo | python tools/terminal.py demo.svg`.

The first line of the picture is the prompt with the command, given as the second argument.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path


def picture(text: str, title: str, width: int = 118) -> str:
    """SVG of a terminal; the reader's own fonts, nothing is loaded."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=width, file=io.StringIO())
    for line in text.splitlines():
        console.print(Text(line.split("\r")[-1]), soft_wrap=False)
    svg = console.export_svg(title=title)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)


if __name__ == "__main__":
    target, title = sys.argv[1], sys.argv[2]
    Path(target).write_text(picture(sys.stdin.read(), title), encoding="utf-8")
