"""Run the examples and write their pages: `python tools/gallery.py [NAME ...]`.

Each ``examples/plot_*.py`` becomes ``docs/gallery/<name>.md`` with its text, its code, its output
and its figure. A test runs the examples again and compares the code of the pages with them.
"""

from __future__ import annotations

import ast
import contextlib
import io
import runpy
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES, GALLERY = ROOT / "examples", ROOT / "docs" / "gallery"


def examples() -> list[Path]:
    return sorted(EXAMPLES.glob("plot_*.py"))


def parts(path: Path) -> tuple[str, str, str]:
    """Return title, text and code of an example; title and text are its docstring."""
    source = path.read_text(encoding="utf-8")
    first = ast.parse(source).body[0]
    title, _, text = ast.get_docstring(ast.parse(source)).partition("\n")
    code = "\n".join(source.splitlines()[first.end_lineno :]).strip()
    return title.rstrip("."), text.strip(), code


def run(path: Path, figure: Path | None) -> str:
    """Run an example and return what it prints; save its figure as SVG if a path is given."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = path.stem  # equal figures give equal files
    import matplotlib.pyplot as plt

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(path), run_name="__main__")
    if figure is not None:
        plt.gcf().savefig(figure, bbox_inches="tight", metadata={"Date": None})
    plt.close("all")
    return printed.getvalue()


def page(path: Path, printed: str) -> str:
    title, text, code = parts(path)
    return (
        f"# {title}\n\n{text}\n\n![{title}]({path.stem}.svg)\n\n```python\n{code}\n```\n\n"
        f"It prints:\n\n```\n{printed.strip()}\n```\n\n"
        f"The script is `examples/{path.name}`.\n"
    )


def index() -> str:
    lines = ["# Gallery", "", "Scripts that run in less than a minute each, with their output.", ""]
    for path in examples():
        title = parts(path)[0]
        lines += [f"## [{title}]({path.stem}.md)", "", f"![{title}]({path.stem}.svg)", ""]
    return "\n".join(lines)


def main(names: list[str]) -> None:
    GALLERY.mkdir(exist_ok=True)
    for path in examples():
        if names and path.stem not in names:
            continue
        start = time.perf_counter()
        printed = run(path, GALLERY / f"{path.stem}.svg")
        (GALLERY / f"{path.stem}.md").write_text(page(path, printed), encoding="utf-8")
        print(f"{path.name}: {time.perf_counter() - start:.0f} s", flush=True)
    (GALLERY / "index.md").write_text(index(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
