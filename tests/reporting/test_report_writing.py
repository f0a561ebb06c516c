"""HTML and Markdown files: what is written, and that no text in them can become markup."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from labelweave.exceptions import InputError
from labelweave.reporting import check_target
from labelweave.reporting.html import element, to_html
from labelweave.reporting.markdown import escape, svg_file, to_markdown, write_markdown
from labelweave.reporting.report_content import (
    Figure,
    Note,
    Paragraph,
    Report,
    Section,
    Table,
    format_value,
    timestamp,
)

EVIL = "<script>alert(1)</script> \" onload='x' & ]]> \\1 | **b** [a](javascript:x) `c`"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'width="72pt" height="36pt" viewBox="0 0 72 36"><use xlink:href="#m"/></svg>'
)


class Tags(HTMLParser):
    """Every tag with its attributes, and all text outside scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self._inside = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = tag

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.texts.append(data)

    def handle_endtag(self, tag):
        self._inside = None


@pytest.fixture
def report():
    return Report(
        EVIL,
        EVIL,
        "2026-01-01T00:00:00+00:00",
        [
            Section(
                "Scores",
                [
                    Paragraph(EVIL),
                    Note(EVIL),
                    Table(EVIL, (EVIL, "n"), [(EVIL, 0.5), ("x", None)]),
                    Table(EVIL, ("a",), [(EVIL,)], folded=True),
                    Figure("plot", SVG, EVIL, EVIL, EVIL),
                ],
            ),
            Section("Scores", []),
            Section("Report", []),
        ],
    )


def test_no_text_becomes_markup(report):
    parsed = Tags(to_html(report))
    assert [tag for tag, _ in parsed.tags].count("script") == 1
    assert not any("onload" in attributes for _, attributes in parsed.tags)
    # title, subtitle, paragraph, note, caption, column, 2 cells, summary, svg title and
    # description, figure title and caption, page title.
    assert "".join(parsed.texts).count(EVIL) == 14
    assert EVIL not in to_html(report)


def test_the_page_needs_nothing_else(report):
    page = to_html(report)
    assert not re.search(r"https?:", page)
    for tag, attributes in Tags(page).tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        for name in ("src", "href", "action", "srcset"):
            assert attributes.get(name, "#").startswith("#")


def test_only_the_one_script_may_run(report):
    page = to_html(report)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(a["content"] for _, a in Tags(page).tags if "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert f"'sha256-{digest}'" in policy


def test_contents_lead_to_sections(report):
    tags = Tags(to_html(report)).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    links = [a["href"][1:] for tag, a in tags if tag == "a"]
    assert len(set(ids)) == len(ids)
    assert set(links) <= set(ids)
    assert {"scores", "scores-2", "report-2"} <= set(ids)


def test_plots_are_described_for_screen_readers(report):
    page = to_html(report)
    svg = page[page.index("<svg") :]
    assert 'role="img"' in svg[:100]
    assert "<title>" in svg
    assert "<desc>" in svg
    assert 'href="#m"' in svg
    assert "xlink" not in svg


def test_surrogates_and_control_characters_are_replaced():
    page = to_html(Report("a\ud800b\x00c", "", "", []))
    assert "a\ufffdb\ufffdc" in page
    page.encode("utf-8")


def test_element_escapes_attributes_too():
    assert element("p", title='"<&') == '<p title="&quot;&lt;&amp;"></p>'


def test_markdown_escapes_all_texts(report):
    text = to_markdown(report, "plots")
    assert "<script>" not in text
    assert not re.search(r"(?<!\\)\]\(javascript", text)
    assert "![" in text
    assert "](plots/plot.svg)" in text
    table = [row for row in text.splitlines() if row.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table}
    assert widths == {2, 3}  # no cell breaks its row
    assert escape("a\nb") == "a b"


def test_a_plot_as_a_file_is_xml(report):
    from xml.etree import ElementTree

    figure = report.figures()[0]
    root = ElementTree.fromstring(svg_file(figure).encode())
    assert root[0].text == EVIL


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.5), "0.5000"),
        (np.int64(1200), "1,200"),
        (12345.6, "12,346"),
        (np.nan, "\u2013"),
        (False, "no"),
    ],
)
def test_values_in_tables(value, text):
    assert format_value(value) == text


def test_a_column_of_gaps_is_no_column_of_numbers():
    table = Table("", ("a", "b", "c"), [(None, 1, "0.50 ± 0.01 n=3 *"), (None, None, "-")])
    assert [table.is_number(j) for j in range(3)] == [False, True, True]


def test_markdown_is_written_with_its_plots(report, tmp_path):
    files = write_markdown(report, tmp_path / "my.md")
    assert [file.name for file in files] == ["my.md", "plot.svg"]
    assert (tmp_path / "my-plots" / "plot.svg").exists()
    assert "my-plots/plot.svg" in files[0].read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my-plots", "my.md"]


def test_wrong_targets(tmp_path):
    with pytest.raises(InputError, match=r"\.html or \.md"):
        check_target("report.pdf", None)
    with pytest.raises(InputError, match="does not end like"):
        check_target("report.md", "html")
    with pytest.raises(InputError, match="is a folder"):
        check_target(tmp_path, "html")
    with pytest.raises(InputError, match="html or md"):
        check_target("report.html", "pdf")
    assert check_target("report", "md")[1] == "md"


def test_the_date_can_be_fixed(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert timestamp() == "1970-01-01T00:00:00+00:00"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH"):
        timestamp()
