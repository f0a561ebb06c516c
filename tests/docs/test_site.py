"""What the site is made of fits the code: methods' pages, the drawing, the gallery, the layers."""

import os
import re
import runpy
import subprocess
import sys

import pytest
from page_blocks import ROOT

import labelweave as lw
from labelweave.exceptions import DatasetUnavailableError
from labelweave.methods import list_methods

sys.path.insert(0, str(ROOT / "tools"))

import architecture
import docs_site
import gallery
import method_figures

METHODS = [method.id for method in list_methods() if method.room != "plug-in"]


PARTS = {
    "idea": r"(\*\*|## )(The )?idea",
    "equations": r"(\*\*|## )equations?",
    "when to use it": r"(\*\*|## )when",
    "cost": r"(\*\*|## (what it )?)(cost|costs)\b",
    "references": r"(\*\*|## )references?",
    "a formula": r"\$.+\$",
}


@pytest.mark.parametrize("id", METHODS)
def test_every_method_has_a_page_with_all_its_parts(id):
    page = ROOT / "docs" / "methods" / docs_site.page_of(id)
    assert page.exists(), f"write docs/methods/{page.name}: idea, equations, when, cost, reference"
    text = page.read_text(encoding="utf-8")
    missing = [part for part, words in PARTS.items() if not re.search(words, text, re.I | re.S)]
    assert not missing
    shown = re.findall(r"!\[[^\]]+\]\(\.\./assets/methods/(.*?)\.svg\)", text)
    assert any(id in method_figures.FIGURES[name][1] for name in shown), "it shows no figure"
    assert "Measured here" in docs_site.ending(page.stem)


@pytest.mark.usefixtures("short_training")
@pytest.mark.parametrize("name", method_figures.FIGURES)
def test_figures_of_methods_are_drawn_by_the_code(name):
    pytest.importorskip("matplotlib")
    if name == "similarities":
        pytest.importorskip("sentence_transformers", reason="needs labelweave[text]")
    drawn = method_figures.FOLDER / f"{name}.svg"
    assert drawn.exists(), "run `python tools/method_figures.py`"
    assert drawn.stat().st_size < 200_000
    texts = [
        re.findall(r"<text[^>]*>(.*?)</text>", svg)
        for svg in (drawn.read_text(encoding="utf-8"), method_figures.svg(name))
    ]
    assert [word for word in texts[0] if not re.search(r"\d", word)] == [
        word for word in texts[1] if not re.search(r"\d", word)
    ]


def test_the_table_of_methods_lists_all_of_them():
    table = docs_site.methods_page()
    assert all(f"`{id}`" in table for id in METHODS)


def test_parameters_stand_on_the_pages_of_methods():
    assert "labelweave.dependent.mlp.MLP" in docs_site.ending("mlp")


def test_every_name_of_the_package_is_in_the_reference():
    pages = (ROOT / "docs" / "reference").glob("*.md")
    there = set(re.findall(r"^::: (\S+)", "\n".join(page.read_text() for page in pages), re.M))
    for name, package in lw._NAMES.items():
        written_in = getattr(lw, name).__module__
        assert there & {package, written_in}, f"docs/reference/ lacks {written_in} with lw.{name}"


def test_the_drawing_of_the_architecture_is_current():
    pytest.importorskip("grimp")
    drawn = architecture.PICTURE.read_text(encoding="utf-8")
    assert drawn == architecture.drawing(), "run `python tools/architecture.py`"


def lint_imports(folder, monkeypatch):
    """The linter's verdict, from a process of its own: it silences every logger of its process."""
    pytest.importorskip("importlinter")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    code = "import sys; from importlinter.cli import lint_imports as lint; "
    code += "sys.exit(lint(no_cache=True))"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, check=False).returncode


def test_imports_keep_to_the_layers(monkeypatch):
    assert lint_imports(ROOT, monkeypatch) == 0


def test_the_linter_finds_an_import_between_rooms(tmp_path, monkeypatch):
    """The rules can fail: a copy in which one room imports another is refused."""
    package = tmp_path / "rooms"
    for room, text in {"a": "", "b": "from rooms.a import one\n"}.items():
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").write_text(text)
    (package / "__init__.py").write_text("")
    (package / "a" / "one.py").write_text("")
    rules = "[importlinter]\nroot_package = rooms\n[importlinter:layers]\nname = rooms\n"
    rules += "type = layers\ncontainers = rooms\nlayers =\n    a | b\n"
    (tmp_path / ".importlinter").write_text(rules)
    assert lint_imports(tmp_path, monkeypatch) == 1


@pytest.mark.usefixtures("short_training")
@pytest.mark.parametrize("path", gallery.examples(), ids=lambda path: path.stem)
def test_examples_run_and_are_on_the_site(path):
    pytest.importorskip("matplotlib")
    for name in re.findall(r'load_dataset\("([^"]+)"\)', path.read_text(encoding="utf-8")):
        try:
            lw.load_dataset(name, download=False)
        except DatasetUnavailableError:
            pytest.skip(f"the data set {name} is not on this machine")
    page = (gallery.GALLERY / f"{path.stem}.md").read_text(encoding="utf-8")
    assert gallery.parts(path)[2] in page, "run `python tools/gallery.py`"
    assert (gallery.GALLERY / f"{path.stem}.svg").exists()
    assert gallery.run(path, None).strip()


def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="the tools of the site are not installed")
    pytest.importorskip("mkdocstrings", reason="the tools of the site are not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / "site" / "methods" / "c-gmvae.html").read_text(encoding="utf-8")
    assert "<math" in page


def test_docstrings_become_markdown():
    pytest.importorskip("griffe", reason="the tools of the site are not installed")
    markup = runpy.run_path(str(ROOT / "tools" / "docstring_markup.py"))
    text = "As :func:`labelweave.load` [1]_::\n\n>>> 1 + 1\n2\n\nMore."
    assert markup["as_markdown"](text) == (
        "As `load` \\[1\\]:\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    )
