"""The figures that the README quotes are those of the results page, as it is today."""

import re
import sys

from page_blocks import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import docs_site

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


def test_the_table_of_the_readme_is_that_of_the_results():
    measured = docs_site.example_f1()
    for method, figures in quoted().items():
        of_method = measured[IN_RESULTS.get(method, method)]
        for data, figure in figures.items():
            now = of_method[data].replace("0.", ".").strip(" *")
            assert figure == now, f"README.md has {figure} of {method} on {data}, results.md {now}"


def test_the_best_of_the_table_is_bold():
    for data in ("scene", "yeast", "emotions"):
        best = max(figures[data] for figures in quoted().values())
        assert f"**{best}**" in README


def test_ranks_of_the_readme_are_those_of_the_results():
    section = re.search(r"^## vectors-default:.*?(?=^## |\Z)", docs_site.results(), re.S | re.M)[0]
    together = section[section.index("all metrics together, honest") :]
    words = r"best average rank of seven methods \(([\d.]+); MLP ([\d.]+),\s+extra trees ([\d.]+)\)"
    said = re.search(words, README)
    for method, rank in zip(("Weave", "MLP", "extra-trees"), said.groups(), strict=True):
        assert re.search(rf"^ +{method} {rank}$", together, re.M), f"the rank of {method} moved"
    apart = re.search(r"Wilcoxon-Holm tells apart: (.*)", together)[1]
    assert len(re.findall(r"Weave /|/ Weave", apart)) == 6, "the test tells Weave from fewer now"


def test_ranks_of_the_page_on_choosing_are_those_of_the_results():
    page = (ROOT / "docs/howto/choosing.md").read_text(encoding="utf-8")
    section = re.search(r"^## vectors:.*?(?=^## |\Z)", docs_site.results(), re.S | re.M)[0]
    together = section[section.index("all metrics together, honest") :]
    ranks = dict(re.findall(r"^ +([\w-]+) (\d+\.\d+)$", together, re.M))
    words = r"rank is ([\d.]+) of (\d+)\s+methods, after Weave's ([\d.]+) and before the MLP's "
    said = re.search(words + r"([\d.]+) and extra trees' ([\d.]+)", page).groups()
    now = [f"{float(ranks[name]):.1f}" for name in ("LS-SVM", "Weave", "MLP", "extra-trees")]
    assert [said[0], *said[2:]] == now
    assert f"honest: {said[1]} methods on 9 data sets" in together
