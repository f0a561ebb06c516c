"""A report as one HTML file that needs no network and no other file.

Pages are built from elements that escape the texts put into them, so that the name of a label or
a file can never become markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

from labelweave import __version__
from labelweave.plotting import printable
from labelweave.reporting.report_content import (
    Block,
    Figure,
    Note,
    Paragraph,
    Picture,
    Report,
    Section,
    Table,
    format_value,
    slug,
)

__all__ = ["Markup", "element", "html_page", "html_table", "resource", "svg_description", "to_html"]

_EMPTY = ("meta", "link", "br", "input", "img")
_NO_WRAP = 24  # shorter cells are not broken into two lines


class Markup(str):
    """A text that is already markup and must not be escaped."""

    __slots__ = ()


def element(tag: str, *content: Any, **attributes: str | bool) -> Markup:
    """Return an element; contents that are not :class:`Markup` are escaped.

    >>> element("p", "1 < 2, ", element("b", "sure"), class_="note")
    '<p class="note">1 &lt; 2, <b>sure</b></p>'
    """
    attribute_text = "".join(
        f" {name.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{html.escape(printable(value))}"')
        for name, value in attributes.items()
        if value is not False
    )
    if tag in _EMPTY:
        return Markup(f"<{tag}{attribute_text}>")
    return Markup(f"<{tag}{attribute_text}>{_join(content)}</{tag}>")


def _join(content: Iterable[Any]) -> str:
    return "".join(
        part
        if isinstance(part, Markup)
        else html.escape(printable(part), quote=False)
        if isinstance(part, str)
        else _join(part)
        for part in content
    )


def html_page(title: str, style: str, script: str, *content: Markup) -> str:
    """Return a page that loads nothing; its policy lets only this one script run."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"labelweave {__version__}"),
        element("title", title),
        element("style", Markup(style)),
    )
    body = element("body", *content, element("script", Markup(script)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def to_html(report: Report) -> str:
    """Return the page of a report."""
    ids = _section_ids(report.sections)
    return html_page(
        report.title,
        resource("style.css"),
        resource("sorting.js"),
        element("a", "Skip to the report", href="#report", class_="skip"),
        element(
            "header",
            element("h1", report.title),
            element("p", report.subtitle, class_="subtitle"),
        ),
        element(
            "nav",
            element("h2", "Contents"),
            element(
                "ol",
                [
                    element("li", element("a", section.title, href=f"#{id}"))
                    for id, section in zip(ids, report.sections, strict=True)
                ],
            ),
            aria_label="Contents",
        ),
        element(
            "main",
            [
                element("section", element("h2", part.title), map(_block, part.blocks), id=id)
                for id, part in zip(ids, report.sections, strict=True)
            ],
            id="report",
        ),
        element(
            "footer",
            "Made by labelweave ",
            __version__,
            ", ",
            element("time", report.made, datetime=report.made),
            ".",
        ),
    )


def _section_ids(sections: Iterable[Section]) -> list[str]:
    """Return one id per section, made from its title; a number makes equal ones different."""
    ids: list[str] = []
    for section in sections:
        id = stem = slug(section.title)
        k = 1
        while id in ids or id == "report":
            k += 1
            id = f"{stem}-{k}"
        ids.append(id)
    return ids


def _block(block: Block) -> Markup:
    if isinstance(block, Paragraph):
        return element("p", block.text)
    if isinstance(block, Note):
        return element("p", element("strong", "Note: "), block.text, class_="note", role="note")
    if isinstance(block, Figure):
        return _figure(block)
    return html_table(block)


def _figure(figure: Figure) -> Markup:
    return element(
        "figure",
        element("div", Markup(inline_svg(figure)), class_="plot"),
        element("figcaption", element("strong", f"{figure.title}. "), figure.caption),
        id=f"plot-{figure.name}",
    )


def inline_svg(figure: Figure) -> str:
    """Return an SVG for use inside a page: described for screen readers, without namespaces."""
    head, _, body = figure.svg.partition(">")
    head = re.sub(r' (?:xmlns(?::xlink)?|width|height)="[^"]*"', "", head)
    width = re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+)', head)
    size = f' style="width: {float(width[1]) * 4 / 3:.0f}px"' if width else ""  # 72 pt = 96 px
    body = body.replace("xlink:href=", "href=")
    return f'{head}{size} role="img">{svg_description(figure)}{body}'


def svg_description(figure: Figure) -> str:
    """Return the title and description of an SVG as markup."""
    return element("title", figure.title) + element("desc", figure.alt)


def html_table(table: Table) -> Markup:
    """Return a table that `sorting.js` sorts: it reads which columns hold numbers."""
    kinds = ["number" if table.is_number(j) else "text" for j in range(len(table.columns))]
    head = [
        element("th", name, scope="col", class_=kind)
        for name, kind in zip(table.columns, kinds, strict=True)
    ]
    body = [
        element(
            "tr", [_cell(value, kind, table.digits) for value, kind in zip(row, kinds, strict=True)]
        )
        for row in table.rows
    ]
    caption = Markup("") if table.folded else element("caption", table.caption)
    scrolled = element(
        "div",
        element("table", caption, element("thead", element("tr", head)), element("tbody", body)),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=table.caption,
    )
    if not table.folded:
        return scrolled
    return element("details", element("summary", table.caption), scrolled)


def _cell(value: Any, kind: str, digits: int) -> Markup:
    if isinstance(value, Picture):
        return element("td", element("img", src=value.url, alt=value.alt), class_="short")
    text = format_value(value, digits)
    return element("td", text, class_=kind if len(text) > _NO_WRAP else f"{kind} short")


@cache
def resource(name: str, package: str = "labelweave.reporting") -> str:
    """Return the text of a file that is part of the package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8").strip()
