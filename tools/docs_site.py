"""Hooks of the documentation site: pages made from the code, formulas without the network.

MkDocs calls the functions whose names begin with ``on_``; see ``hooks`` in mkdocs.yml.
"""

from __future__ import annotations

import html
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from labelweave.bench.suite import load_suite  # noqa: E402  after the path is set
from labelweave.methods import ROOMS, Method, list_methods  # noqa: E402

HIDDEN = re.compile(r"<!--.*?-->\n?", re.S)
WORDS = {
    "dependent": "Annotated in full, and they go together",
    "partial": "Some positives were never annotated",
    "scattered": "Locked in several trained models",
    "unseen": "New, with a name but no example",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made, not written."""
    from mkdocs.structure.files import File

    made = {
        "contributing.md": from_root("CONTRIBUTING.md"),
        "changelog.md": from_root("CHANGELOG.md"),
        "methods/index.md": methods_page(),
    }
    for path, text in made.items():
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

    def as_mathml(found: re.Match[str]) -> str:
        display = found[1].startswith(r"\[")
        tex = html.unescape(found[1][2:-2])
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
    """The figures of a method that the results page has: its table, or links to its tables."""
    text = ""
    rows = results_of(method)
    if rows:
        text += (
            "Example F1, honest protocol, from [all results](../results.md) "
            "(`labelweave bench run vectors`; * the best of the column):\n\n"
        )
        text += "| data | " + " | ".join(rows) + " |\n|---|" + "---|" * len(rows) + "\n"
        text += f"| {method.id} | " + " | ".join(rows.values()) + " |\n\n"
    tables = tables_with(method.id)
    if tables:
        links = ", ".join(f"[{name}](../results.md#{anchor})" for name, anchor in tables.items())
        text += f"Its figures, with seeds, spread and the published ones: {links}."
    elif not rows:
        text += "Its figures stand above; the" if states_results(method.id) else "The"
        text += " bench's [results](../results.md) have no figures of it yet"
        suites = [name for name in waiting() if method.id in suite_ids(name)]
        command = f"labelweave bench run {suites[0]}" if suites else ""
        text += f"; `{command}` measures it." if command else "."
    return text


def states_results(id: str) -> bool:
    """Whether the page of a method has figures that somebody wrote down."""
    page = (ROOT / "docs/methods" / page_of(id)).read_text(encoding="utf-8")
    return re.search(r"(\*\*|## )(Results|What it (gives|scores))", page) is not None


def results_of(method: Method) -> dict[str, str]:
    """Data set to example F1, as the results page has it."""
    name = {id: shown for shown, id in suite_methods().items()}.get(method.id)
    return example_f1().get(name, {}) if name else {}


def tables_with(id: str) -> dict[str, str]:
    """Suites in which the results page has figures of a method, and the anchors of these."""
    found = {}
    for heading, body in re.findall(r"^## (\S+: .*?)\n(.*?)(?=^## |\Z)", results(), re.S | re.M):
        suite = heading.partition(":")[0]
        names = [entry.name for entry in load_suite(suite).methods if entry.id == id]
        if any(
            re.search(rf"^\|.*\| {re.escape(n)} \|.*\d|^\| {re.escape(n)} \|.*\d", body, re.M)
            for n in names
        ):
            slug = re.sub(r"[^\w\s-]", "", heading).strip().lower()
            found[suite] = re.sub(r"[-\s]+", "-", slug)
    return found


def waiting() -> list[str]:
    """Suites that could be run here and were not, by the end of the results page."""
    end = results().partition("## Not measured yet")[2]
    lines = [
        line for line in end.splitlines() if line.startswith("- ") and "not available" not in line
    ]
    names = [line[2:].partition(":")[0] for line in lines]
    return sorted(names, key=lambda name: "images" in name)  # images take longest


def suite_ids(name: str) -> set[str]:
    return {entry.id for entry in load_suite(name).methods}


@cache
def results() -> str:
    return (ROOT / "docs/results.md").read_text(encoding="utf-8")


@cache
def suite_methods() -> dict[str, str]:
    """Name in the table to id, of methods with no settings of their own."""
    path = ROOT / "src/labelweave/bench/suites/vectors.toml"
    methods = tomllib.loads(path.read_text(encoding="utf-8"))["methods"]
    return {name: id for name, id in methods.items() if isinstance(id, str)}


@cache
def example_f1() -> dict[str, dict[str, str]]:
    """Method to data set to figure, of the suite `vectors` on the results page."""
    section = re.search(r"^## vectors:.*?(?=^## |\Z)", results(), re.S | re.M)
    found: dict[str, dict[str, str]] = {}
    if section is None:
        return found
    for block in re.findall(r"^### example F1.*?\n\n(.*?)\n\n", section[0], re.S | re.M):
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        ]
        for row in rows[2:]:
            figures = zip(rows[0][1:], row[1:], strict=True)
            found.setdefault(row[0], {}).update((d, v) for d, v in figures if v != "-")
    return found
