"""An extension of griffe: docstrings are numpydoc, the site's pages are Markdown.

Roles become code, examples in running text become code blocks, footnotes lose their underscores.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?([\w@]+)`")
FOOTNOTE = re.compile(r"\[(\d+)\]_")
REFERENCE = re.compile(r"^(\s*)\.\. \[(\d+)\] ", re.M)
LITERAL = re.compile(r"::$", re.M)
EXAMPLE = re.compile(r"(?:^|(?<=\n\n))((?:[ ]*>>> .*\n?)(?:(?!\n).*\n?)*)")
TITLE = re.compile(r"^Examples\n-+$", re.M)


def as_markdown(text: str) -> str:
    """The docstring in Markdown; a section "Examples" is left to griffe."""
    text = ROLE.sub(r"`\1`", text)
    text = FOOTNOTE.sub(r"\\[\1\\]", text)
    text = REFERENCE.sub(r"\1\\[\2\\] ", text)
    text = LITERAL.sub(":", text)
    title = TITLE.search(text)
    head, tail = (text, "") if title is None else (text[: title.start()], text[title.start() :])
    return EXAMPLE.sub(lambda block: f"```pycon\n{block[1].rstrip()}\n```\n", head) + tail


class NumpydocMarkup(griffe.Extension):
    """Rewrites every docstring when it is read."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
