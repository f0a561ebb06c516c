"""The page in a real browser: Debian's Chromium, driven by Playwright."""

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from serving import (
    KEY,
    FakeZeroShot,
    PredictsBrightness,
    encode_image,
    running,
    use_fakes,
    wait_until,
)

import labelweave as lw
from labelweave.explaining.reference import reference_rows, reference_to_plain
from labelweave.labels import as_labels
from labelweave.serve import model_process
from labelweave.serve.label_relations import Cooccurrence
from labelweave.serve.review_queues import read_queues
from labelweave.thresholds import FixedThreshold
from product_table import product_table

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LIST = (
    "rank,score,annotated,label,row,id,text,known_labels,verdict\n"
    "1,0.9,0.5,sea,4,,<b>deep</b> blue,sun,\n2,0.8,,sun,2,,warm,,\n3,0.7,,sea,2,,warm,,\n"
)


class PredictsNothing(FakeZeroShot):
    """Predicts no labels."""

    def __init__(self):
        super().__init__(("sun", "deep sea"))
        self.threshold_ = FixedThreshold(0.95)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no browser (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS, timeout=300_000)
        yield chromium
        chromium.close()


@pytest.fixture
def served(monkeypatch, sqlite, tmp_path):
    """Two zero-shot models that differ, one of images, and a list to review."""
    use_fakes(monkeypatch)
    made = {"tags": FakeZeroShot, "other": PredictsNothing, "bright": PredictsBrightness}
    monkeypatch.setattr(model_process, "read_model", lambda folder, *_: (made[folder.name](), None))
    path = tmp_path / "news-audit.csv"
    path.write_text(LIST)
    cooccurrence = Cooccurrence(as_labels([["sea", "sun"], ["sea"], ["sea", "sun"]]))
    queues = read_queues([str(path)])
    folders = {name: name for name in made}
    with running(folders, queues=queues, cooccurrence=cooccurrence, database=sqlite) as service:
        yield service


@pytest.fixture
def page(browser, served):
    with opened_page(browser, served) as opened:
        yield opened


@contextmanager
def opened_page(browser, served):
    """The page of a service, on which no script fails and which asks no other server."""
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    context.set_default_timeout(300_000)  # a busy machine is slow
    opened = context.new_page()
    faults = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda m: faults.append(m.text) if "Content Security" in m.text else None)
    urls = []
    opened.on("request", lambda request: urls.append(request.url))
    opened.goto(f"{served.url}/#key={KEY}")
    opened.wait_for_selector("body[data-ready]")
    yield opened
    assert faults == []
    assert all(url.startswith((served.url, "blob:")) for url in urls)  # no other server
    context.close()


def shot(page, name):
    """A picture to look at, where LABELWEAVE_SCREENSHOTS names a folder."""
    if folder := os.environ.get("LABELWEAVE_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def least_contrast(page):
    """Of the colours of texts on what they stand on, as WCAG counts it."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def ratio(*names):
        style = "getComputedStyle(document.documentElement).getPropertyValue"
        lights = sorted(luminance(page.evaluate(f"{style}('--{n}').trim()")) for n in names)
        return (lights[1] + 0.05) / (lights[0] + 0.05)

    pairs = ["ink paper", "soft paper", "ink band", "on-link link", "ink warn-band", "warn paper"]
    return min(ratio(*pair.split()) for pair in pairs)


def tab(page, name):
    page.get_by_role("tab", name=name).click()


def test_try_a_text_and_move_the_threshold(page):
    assert least_contrast(page) >= 4.5
    assert page.url.endswith("/")  # the key is gone from the address
    page.get_by_label("Text", exact=True).fill("the sea <script>alert(1)</script>")
    page.get_by_role("button", name="Label it").click()
    page.wait_for_selector("#try-bars li")
    assert page.locator("#try-bars li.in").all_inner_texts()[0].startswith("✓ sea")
    assert "1 of 2 labels" in page.locator("#try-summary").inner_text()
    assert (
        page.locator("#try-default").inner_text()
        == "With its own threshold the model predicts: sea"
    )
    slider = page.locator("#try-threshold")
    slider.focus()
    page.keyboard.press("Home")
    assert "2 of 2 labels" in page.locator("#try-summary").inner_text()
    shot(page, "try")
    page.get_by_role("button", name="Why the new labels?").click()
    page.wait_for_selector("#try-why li")
    assert "because of sea (0.70)" in page.locator("#try-why").inner_text()


def test_of_many_labels_the_best_are_shown_until_all_are_asked_for(page, served):
    labels = [{"name": f"number {i}"} for i in range(30)]
    assert served.client.post("/v1/models/tags/labels", json={"labels": labels}).is_success
    page.get_by_label("Text", exact=True).fill("sun")
    page.get_by_role("button", name="Label it").click()
    page.wait_for_selector("#try-bars li")
    assert page.locator("#try-bars li").count() == 20
    more = page.get_by_role("button", name="Show all 32")
    assert more.get_attribute("aria-expanded") == "false"
    more.press("Enter")
    assert page.locator("#try-bars li").count() == 32
    page.get_by_role("button", name="Show the 20 best only").click()
    assert page.locator("#try-bars li").count() == 20


def test_pick_a_row_of_a_csv(page):
    page.get_by_text("Pick a row of a CSV file").click()
    content = b'id,text\n1,"sun, and ""more"""\n2,the sea\n'
    page.locator("#try-csv").set_input_files(
        {"name": "a.csv", "mimeType": "text/csv", "buffer": content}
    )
    page.get_by_role("button", name="Row 1").click()
    page.wait_for_selector("#try-bars li.in")
    assert page.locator("#try-text").input_value() == 'sun, and "more"'
    assert page.locator("#try-bars li.in").inner_text().startswith("✓ sun")


def test_an_image(page):
    page.locator("#try-model").select_option("bright")
    page.wait_for_selector("#try-image-part:not([hidden])")
    content = encode_image(np.full((20, 20, 3), 250, np.uint8))
    page.locator("#try-image").set_input_files(
        {"name": "a.png", "mimeType": "image/png", "buffer": content}
    )
    page.get_by_role("button", name="Label it").click()
    page.wait_for_selector("#try-bars li.in")
    assert page.locator("#try-bars li.in").inner_text().startswith("✓ sun")


def test_add_a_label_and_see_it_scored(page, served):
    tab(page, "Labels")
    page.wait_for_selector("#map svg")
    page.get_by_label("Name").fill("rain")
    page.get_by_label("Description").fill("water from above")
    page.get_by_label("A text to test it on").fill("rain all day")
    page.get_by_role("button", name="Add it").click()
    page.locator("#new-status", has_text="0.900").wait_for()
    assert "water from above" in page.locator("#label-list").inner_text()
    assert "rain" in page.locator("#map").inner_text()
    assert "0.6667" in page.locator("#pairs").inner_text()
    shot(page, "labels")
    assert served.open.get("/v1/models/tags/labels").json()["total"] == 3


def test_without_a_key_a_change_is_refused_in_words(page):
    page.get_by_label("API key").fill("")
    page.get_by_label("API key").press("Tab")
    tab(page, "Labels")
    page.wait_for_selector("#map svg")
    page.get_by_label("Name").fill("rain")
    page.get_by_role("button", name="Add it").click()
    page.wait_for_selector("#notice:not([hidden])")
    assert "API key" in page.get_by_role("alert").inner_text()


def test_compare_two_models(page):
    tab(page, "Compare")
    page.locator("#second-model").select_option("other")
    page.locator("#compare-input").fill("sun over the deep sea")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("#compare-table td")
    assert "disagree on 1 of 1" in page.locator("#compare-summary").inner_text()
    first = page.locator("#compare-table tbody tr").first
    assert first.get_attribute("class") == "apart"
    assert "sun" in first.inner_text()
    assert "no such label" in page.locator("#compare-table").inner_text()
    shot(page, "compare")


def test_review_with_the_keyboard_and_go_on_after_a_reload(page, served, tmp_path):
    page.get_by_role("tab", name="Try").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector("#review-entry h2")
    entry = page.locator("#review-entry")
    assert "<b>deep</b>" in entry.inner_text()  # text, not markup
    assert "score 0.900, annotated share of similar entries: 50.00 %" in entry.inner_text()
    page.keyboard.press("y")
    page.locator("#review-progress", has_text="1 yes").wait_for()
    entry.get_by_text("Entry 2 of 3").wait_for()
    assert "annotated" not in entry.inner_text()  # the list has no share for it
    page.keyboard.press("u")
    page.locator("#review-progress", has_text="2 of 3").wait_for()
    shot(page, "review")
    page.reload()
    tab(page, "Review")
    page.wait_for_selector("#review-entry h2")
    assert "Entry 3 of 3" in page.locator("#review-entry").inner_text()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export CSV").click()
    text = Path(download.value.path()).read_text()
    assert [line[-6:] for line in text.splitlines()[1:]] == ["un,yes", "unsure"]


def test_phone_width_dark_and_names_for_screen_readers(browser, served):
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{served.url}/#key={KEY}")
    page.wait_for_selector("body[data-ready]")
    page.locator("#try-text").fill("sun and sea")
    page.get_by_role("button", name="Label it").click()
    page.wait_for_selector("#try-bars li")
    shot(page, "phone-dark-try")
    for name, content in (
        ("Labels", "#map svg"),
        ("Compare", "#compare-input"),
        ("Review", "#review-entry h2"),
    ):
        tab(page, name)
        page.wait_for_selector(content)
        shot(page, f"phone-dark-{name.lower()}")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, f"{name} is {width} wide"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(23, 24, 26)"
    assert least_contrast(page) >= 4.5
    nameless = page.evaluate(
        """[...document.querySelectorAll("input, select, textarea, button")].filter(
             (e) => !(e.labels?.length || e.ariaLabel || e.textContent.trim())).map((e) => e.id)"""
    )
    assert nameless == []
    context.close()


def test_columns_of_a_table_are_a_form(browser, sqlite, tmp_path):
    frame, labels = product_table()
    model = lw.BinaryRelevance(random_state=0).fit(frame, labels)
    model.save(tmp_path / "products")
    typical = reference_to_plain(reference_rows(frame))
    (tmp_path / "products" / "reference.json").write_text(json.dumps(typical))
    folders = {"products": tmp_path / "products"}
    with running(folders, database=sqlite) as service, opened_page(browser, service) as page:
        assert "input: 5 columns" in page.locator("#try-about").inner_text()
        names = [text.split() for text in page.locator("#try-record label").all_inner_texts()]
        assert [name[0] for name in names] == list(frame.columns)
        assert [" ".join(name[1:]) for name in names] == [
            "text",
            "number",
            "category",
            "yes/no",
            "date",
        ]
        page.get_by_label("title").fill("the blue lamp <b>")
        page.get_by_label("brand").fill("zeta")
        page.get_by_label("new").select_option("yes")
        page.get_by_role("button", name="Label it").click()
        page.wait_for_selector("#try-bars li")
        assert "no training row had 'zeta'" in page.locator("#try-default").inner_text()
        page.get_by_role("button", name="Why these labels?").click()
        page.wait_for_selector("#try-why li")
        reasons = page.locator("#try-why li").all_inner_texts()
        assert {line.split(",")[0] for line in reasons} <= set(model.label_names_)
        assert any("title = the blue lamp <b> (" in line for line in reasons)
        shot(page, "record")
        page.get_by_label("added").fill("soon")
        page.get_by_role("button", name="Label it").click()
        page.wait_for_selector("#notice:not([hidden])")
        assert "'soon', which is not a date" in page.locator("#notice").inner_text()
        rows = tmp_path / "rows.csv"
        frame[:2].to_csv(rows, index=False)
        page.get_by_text("Pick a row of a CSV file").click()
        page.get_by_label("CSV file", exact=True).set_input_files(rows)
        page.get_by_role("button", name="Row 2").click()
        page.wait_for_function("document.querySelector('#notice').hidden")
        assert page.get_by_label("title").input_value() == frame["title"][1]
        assert page.get_by_role("spinbutton", name="price").input_value() == str(frame["price"][1])


def test_a_column_of_images_is_a_file_to_choose(browser, sqlite, tmp_path):
    colours = {"red": (200, 0, 0), "blue": (0, 0, 200)}
    for name, colour in colours.items():
        content = encode_image(np.full((8, 8, 3), colour, np.uint8))
        (tmp_path / f"{name}.png").write_bytes(content)
    paths = [str(tmp_path / f"{name}.png") for name in colours] * 10
    frame = pd.DataFrame({"price": np.arange(20.0), "photo": paths})
    table = lw.Table(frame, lw.TableEncoder({"photo": "image"}))
    lw.BinaryRelevance().fit(table, [["red"], ["blue"]] * 10).save(tmp_path / "photos")
    folders = {"photos": tmp_path / "photos"}
    with running(folders, database=sqlite) as service, opened_page(browser, service) as page:
        page.get_by_role("spinbutton", name="price").fill("9")
        for name in colours:
            page.locator("#column-1").set_input_files(tmp_path / f"{name}.png")
            page.get_by_role("button", name="Label it").click()
            page.locator("#try-default", has_text=f"predicts: {name}").wait_for()
        shot(page, "record-with-image")
        rows = tmp_path / "rows.csv"
        frame[:1].to_csv(rows, index=False)
        page.get_by_text("Pick a row of a CSV file").click()
        page.get_by_label("CSV file", exact=True).set_input_files(rows)
        page.get_by_role("button", name="Row 1").click()  # the path in it is no image
        wait_until(lambda: not page.locator("#column-1").evaluate("field => field.files.length"))
        assert page.locator("#notice").is_hidden()
        page.locator("#column-1").set_input_files(
            {"name": "a.png", "mimeType": "image/png", "buffer": b"no image"}
        )
        page.get_by_role("button", name="Label it").click()
        page.wait_for_selector("#notice:not([hidden])")
        assert "inputs.0.photo is not a complete" in page.locator("#notice").inner_text()
