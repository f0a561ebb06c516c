"""The page for reviewing the list of an audit: one HTML file that needs no network."""

from __future__ import annotations

import hashlib
import json

from labelweave import __version__
from labelweave.auditing.findings import Audit
from labelweave.plotting import printable
from labelweave.reporting.html import Markup, element, html_page, resource
from labelweave.reporting.report_content import timestamp

__all__ = ["to_html"]

_PACKAGE = "labelweave.auditing"
_TITLES = {
    "missing": "Labels that may be missing",
    "wrong": "Labels that may be wrong",
}


def to_html(audit: Audit) -> str:
    """Return the page. It holds the entries as data, which become text only in the browser."""
    title = f"{_TITLES[audit.suspects]}: {audit.data}"
    return html_page(
        title,
        f"{resource('style.css')}\n{resource('review_page.css', _PACKAGE)}",
        resource("review_page.js", _PACKAGE),
        element("a", "Skip to the entries", href="#entries", class_="skip"),
        element(
            "header",
            element("h1", title),
            element(
                "p",
                f"{len(audit):,} entries, the likeliest first, ranked with {audit.method}. "
                "Verdicts are stored in this browser; export them to use them.",
                class_="subtitle",
            ),
        ),
        Markup(resource("review_page.html", _PACKAGE)),
        element("script", _script_data(audit), type="application/json", id="audit-data"),
        element("footer", f"Made by labelweave {__version__}, {timestamp()}."),
    )


def _script_data(audit: Audit) -> Markup:
    """Return the entries as JSON that cannot close the element that holds it."""
    entries = [finding.to_dict() for finding in audit.findings]
    content = {"data": printable(audit.data), "suspects": audit.suspects, "entries": entries}
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    further = {"key": key, "pictures": audit.pictures}
    text = json.dumps(content | further, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
