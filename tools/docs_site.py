"""Hooks of the documentation site: pages made from the code, formulas without the network.

MkDocs calls the functions whose names begin with ``on_``; see ``hooks`` in mkdocs.yml.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

from replication_page import replication_page  # noqa: E402
from results_pages import figure, results_pages, stored_results  # noqa: E402

from labelweave.bench.suite import Suite, list_suites  # noqa: E402  after the path is set
from labelweave.methods import ROOMS, Method, list_methods  # noqa: E402

HIDDEN = re.compile(r"<!--.*?-->\n?", re.S)
WORDS = {
    "dependent": "Annotated in full, and they go together",
    "partial": "Some positives were never annotated",
    "scattered": "Locked in several trained models",
    "unseen": "New, with a name but no example",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    generated = {
        "contributing.md": from_root("CONTRIBUTING.md"),
        "changelog.md": from_root("CHANGELOG.md"),
        "methods/index.md": methods_page(),
        "explanation/replication.md": replication_page(),
        "assets/sorting.js": from_root("src/labelweave/reporting/sorting.js"),
        **results_pages(),
    }
    for path, text in generated.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Leave out what only the tests read; end a method's page with its results and parameters."""
    text = HIDDEN.sub("", markdown)
    path = Path(page.file.src_uri)
    if path.parent.name == "methods" and path.stem != "index":
        text += ending(path.stem)
    return text


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Formulas as MathML, which browsers draw by themselves."""
    from latex2mathml.converter import convert

    def as_mathml(formula: re.Match[str]) -> str:
        display = formula[1].startswith(r"\[")
        tex = html.unescape(formula[1][2:-2])
        return convert(tex, display="block" if display else "inline")

    return re.sub(
        r'<(?:span|div) class="arithmatex">(.*?)</(?:span|div)>', as_mathml, content, flags=re.S
    )


def from_root(name: str) -> str:
    """A file of the repository's root as a page: its links to docs/ point to pages."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return text.replace("](docs/", "](")


def methods_page() -> str:
    """The table of all methods, by room."""
    blocks = [
        "# Methods",
        "",
        "`labelweave methods` prints this list. An id goes to `--method`, a "
        "class is a name of `labelweave`.",
        "",
    ]
    for room in ROOMS:
        blocks += [f"## {room.capitalize()}: {WORDS[room][0].lower()}{WORDS[room][1:]}", ""]
        blocks += ["| id | class | |", "|---|---|---|"]
        blocks += [
            f"| [`{method.id}`]({page_of(method.id)}) | `lw.{method.class_name}` "
            f"| {method.summary} |"
            for method in list_methods(room)
        ]
        blocks.append("")
    return "\n".join(blocks)


def page_of(id: str) -> str:
    """The file name of a method's page."""
    return f"{id.replace('+', '-plus')}.md"


def ending(stem: str) -> str:
    """Results of the methods of a page, and their parameters."""
    described = [method for method in list_methods() if page_of(method.id) == f"{stem}.md"]
    text = ""
    for method in described:
        text += f"\n\n## Measured here\n\n{measured(method)}"
        text += f"\n\n## Parameters and attributes\n\n::: {method.module}.{method.class_name}\n"
        text += "    options:\n      heading_level: 3\n      show_root_heading: false\n"
        text += "      show_root_toc_entry: false\n      members: false\n"
    return text


def measured(method: Method) -> str:
    """Write what the stored results have of a method: its example F1, and links to its tables."""
    text = ""
    figures = example_f1(method)
    if figures:
        text += (
            "Example F1, honest protocol, from [vectors](../results/vectors-f1-example.md) "
            "(`labelweave bench run vectors`):\n\n"
        )
        text += "| data | " + " | ".join(figures) + " |\n|---|" + "---|" * len(figures) + "\n"
        text += f"| {method.id} | " + " | ".join(figures.values()) + " |\n\n"
    tables = tables_with(method.id)
    if tables:
        links = ", ".join(f"[{name}](../results/{name}.md)" for name in tables)
        text += f"Its figures, with seeds, spread and the published ones: {links}."
    elif not figures:
        text += "Its figures stand above; the" if states_results(method.id) else "The"
        text += " [stored results](../results.md) have no figures of it yet"
        suites = [suite.name for suite in list_suites() if can_measure(suite, method.id)]
        suites.sort(key=lambda name: "images" in name)  # images take longest
        text += f"; `labelweave bench run {suites[0]}` measures it." if suites else "."
    return text


def states_results(id: str) -> bool:
    """Return whether somebody wrote figures on the page of a method."""
    page = (ROOT / "docs/methods" / page_of(id)).read_text(encoding="utf-8")
    return re.search(r"(\*\*|## )(Results|What it (gives|scores))", page) is not None


def tables_with(id: str) -> list[str]:
    """Name the stored results that have figures of a method."""
    names = []
    for name, stored in stored_results().items():
        comparison = stored.comparison
        lines = {entry.name for entry in comparison.suite.methods if entry.id == id}
        if any(row.method in lines and row.mean is not None for row in comparison.rows):
            names.append(name)
    return names


def can_measure(suite: Suite, id: str) -> bool:
    """Return whether a suite has the method and all its data come with the catalog."""
    has_data = all(entry.external is None for entry in suite.data)
    return has_data and any(entry.id == id for entry in suite.methods)


def example_f1(method: Method) -> dict[str, str]:
    """Map data sets to the method's example F1 with default settings, in the suite `vectors`."""
    comparison = stored_results()["vectors"].comparison
    lines = [e.name for e in comparison.suite.methods if e.id == method.id and not e.settings]
    return {
        row.dataset: figure(row)
        for row in comparison.rows
        if row.method in lines and row.metric == "f1_example" and row.mean is not None
    }
