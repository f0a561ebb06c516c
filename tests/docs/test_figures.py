"""The figures that the README and the pages quote are those of the stored results."""

import re
import sys

import pytest
from page_blocks import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from results_pages import count_words, figure, results_pages, stored_results

IN_RESULTS = {"binary relevance": "BR", "extra trees": "extra-trees", "Weave (default)": "Weave"}
README = (ROOT / "README.md").read_text(encoding="utf-8")


def quoted():
    """Method to data set to figure, of the README's table."""
    table = re.search(r"^## Results\n.*?^(\|.*?)\n\n", README, re.S | re.M)[1]
    (_, *data), _, *rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in table.replace("**", "").splitlines()
    ]
    return {method: dict(zip(data, figures, strict=True)) for method, *figures in rows}


def ranks_together(suite):
    """The ranking of a suite by all metrics under the honest protocol."""
    rankings = stored_results()[suite].comparison.rankings
    return next(
        one for one in rankings if (one.metric, one.protocol) == ("all metrics together", "honest")
    )


def test_the_table_of_the_readme_is_that_of_the_results():
    rows = [
        row for row in stored_results()["vectors"].comparison.rows if row.metric == "f1_example"
    ]
    measured = {(row.method, row.dataset): row for row in rows}
    for method, figures in quoted().items():
        for data, shown in figures.items():
            now = figure(measured[IN_RESULTS.get(method, method), data]).replace("0.", ".")
            assert shown == now, f"README.md has {shown} of {method} on {data}, the results {now}"


def test_the_best_of_the_table_is_bold():
    for data in ("scene", "yeast", "emotions"):
        best = max(figures[data] for figures in quoted().values())
        assert f"**{best}**" in README


def test_ranks_of_the_readme_are_those_of_the_results():
    together = ranks_together("vectors-default")
    words = r"best average rank of seven methods \(([\d.]+); MLP ([\d.]+),\s+extra trees ([\d.]+)\)"
    said = re.search(words, README).groups()
    now = [f"{together.average_ranks[name]:.2f}" for name in ("Weave", "MLP", "extra-trees")]
    assert list(said) == now
    different = [pair for pair in together.pairs if "Weave" in (pair["first"], pair["second"])]
    assert sum(pair["different"] for pair in different) == 6


def test_ranks_of_the_page_on_choosing_are_those_of_the_results():
    page = (ROOT / "docs/howto/choosing.md").read_text(encoding="utf-8")
    together = ranks_together("vectors")
    words = r"rank is ([\d.]+) of (\d+)\s+methods, after Weave's ([\d.]+) and before the MLP's "
    said = re.search(words + r"([\d.]+) and extra trees' ([\d.]+)", page).groups()
    names = ("LS-SVM", "Weave", "MLP", "extra-trees")
    assert [said[0], *said[2:]] == [f"{together.average_ranks[name]:.1f}" for name in names]
    assert (len(together.average_ranks), len(together.datasets)) == (int(said[1]), 9)


def table_of(page, *header):
    """The rows of the table of a page whose header begins with these cells."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    start = next(i for i, row in enumerate(cells) if row[: len(header)] == list(header))
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
    return cells[start], cells[start + 2 : end]


def stored_figures(suite, metric, protocol):
    """Data set, scenario and method to the figure of the stored results."""
    return {
        (row.dataset, row.scenario, row.method): row
        for row in stored_results()[suite].comparison.rows
        if (row.metric, row.protocol) == (metric, protocol) and row.mean is not None
    }


def short(row):
    """The figure as the pages write it."""
    spread = f" ± {row.std:.3f}" if row.n_seeds > 1 else ""
    return f"{row.mean:.3f}{spread}".replace("0.", ".")


LEFT = {"25 %": "25% labels left", "one per row": "single label"}


def test_the_table_of_partial_labels_is_that_of_the_results():
    stored = stored_figures("cls-2-stand-in", "map", "honest")
    header, rows = table_of("docs/methods/cross-em.md", "set", "kept")
    lines = [row for row in rows if row[1]]
    assert len(lines) == 16
    for data, kept, *figures in lines:
        for method, shown in zip(header[2:], figures, strict=True):
            now = short(stored[data, LEFT[kept], method])
            assert shown.split(" (")[0] == now, (
                f"{method} on {data}, {kept}: the results have {now}"
            )


def closed(stored, method):
    """The share of the gap from assuming negatives to full annotation, as gap_closed.py has it."""
    gain = gap = 0.0
    for data, scenario, line in stored:
        if line == method:
            lines = ("assume negative", method, "full annotation")
            rows = [stored[data, scenario, one] for one in lines]
            scores = [dict(zip(row.seeds, row.values, strict=True)) for row in rows]
            seeds = set.intersection(*map(set, scores))
            low, own, high = (sum(one[seed] for seed in seeds) / len(seeds) for one in scores)
            gain, gap = gain + own - low, gap + high - low
    return f"{100 * gain / gap:.0f} %"


def test_the_shares_of_the_gap_are_those_of_the_results():
    stored = stored_figures("cls-2-stand-in", "map", "honest")
    header, rows = table_of("docs/methods/cross-em.md", "set", "kept")
    shares = dict(zip(header, next(row for row in rows if row[0] == "gap closed"), strict=True))
    for method in ("CLS", "CLS+", "em-forest"):
        assert shares[method] == closed(stored, method)
    said = {
        "docs/results.md": r"CLS\+ closes (\d+ %) of the gap to full annotation on sixteen lines, "
        r"CLS (\d+ %)",
        "docs/partial.md": r"CLS\+ regains (\d+ %) of them.*?, CLS as its paper trains it (\d+ %)",
        "docs/howto/choosing.md": r"regains (\d+ %) of what is lost \(CLS (\d+ %)\)",
        "docs/methods/cls-plus.md": r"full annotation it closes (\d+ %) on.*?; CLS closes (\d+ %)",
    }
    for page, words in said.items():
        found = re.search(words, (ROOT / page).read_text(encoding="utf-8"), re.S).groups()
        assert found == (shares["CLS+"], shares["CLS"]), page


ON_THE_PAGE_OF_CLS = {
    "true rate": "CLS, true rate",
    "without high-loss removal (CLS-H)": "CLS-H",
    "without low-loss removal (CLS-L)": "CLS-L",
    "correction (CLC)": "CLC",
}


def test_the_table_of_the_page_of_cls_is_that_of_the_results():
    stored = stored_figures("cls-2-stand-in", "map", "honest")
    header, rows = table_of("docs/methods/cls.md", "", "scene, 25 %")
    for line, *figures in rows:
        for column, shown in zip(header[1:], figures, strict=True):
            data, kept = column.split(", ")
            method = ON_THE_PAGE_OF_CLS.get(line, line)
            assert shown == short(stored[data, LEFT[kept], method]), f"{line}, {column}"


def test_the_table_of_the_page_of_ant_is_that_of_the_results():
    micro, precision = (
        stored_figures("ant-2", metric, "as-published") for metric in ("f1_micro", "map")
    )
    names = {
        "without transfer (`max_rounds=0`)": "ANT, without transfer",
        "Eq. 3 in all rows (`keep_original=False`)": "ANT, Eq. 3 in all rows",
        "[ANT+](ant-plus.md)": "ANT+",
        "union of teachers, mean logit": "union, mean logit",
        "[smoothed union](smoothed-union.md)": "union, smoothed",
        "ideal bound": "bound",
    }
    scenario = next(iter(micro))[1]
    header, rows = table_of("docs/methods/ant.md", "", "emotions")
    for line, *figures in rows:
        for data, shown in zip(header[1:], figures, strict=True):
            place = (data, scenario, names.get(line, line))
            if not shown:
                assert place not in micro, f"{line} on {data} is measured"
                continue
            now = " / ".join(f"{stored[place].mean:.3f}"[1:] for stored in (micro, precision))
            assert shown.split(" [")[0] == now, f"{line} on {data}: the results have {now}"
            if "[" in shown:
                assert f"[{micro[place].published:.3f}]".replace("0.", ".") in shown


@pytest.fixture(scope="module")
def pages():
    return results_pages()


def test_pages_of_results_are_short(pages):
    lengths = {path: count_words(text) for path, text in pages.items()}
    assert max(lengths.values()) <= 3000
    assert len(lengths) > 20


def test_every_stored_figure_is_on_a_page(pages):
    stored = stored_results()["c-gmvae-1"].comparison
    page = pages["results/c-gmvae-1.md"]
    for row in stored.rows:
        if row.mean is not None:
            assert f"{row.mean:.4f}" in page
    assert "<svg" in pages["results/vectors.md"]  # a plot of average ranks
    assert 'class="number">honest</th>' in page


def test_every_suite_of_the_results_page_has_a_page(pages):
    linked = re.findall(r"\((results/[\w-]+\.md)\)", (ROOT / "docs/results.md").read_text())
    assert set(linked) <= set(pages)
    assert len(linked) > 10
