"""Small pictures for pages, in the audit and in the report."""

import base64
import io
import json
import re

import numpy as np
import pytest

import labelweave as lw
from labelweave.data.images.thumbnails import thumbnail_urls

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def shades():
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, (40, 2))
    images = np.full((40, 12, 6, 3), 30, dtype=np.uint8)
    images[labels[:, 0] == 1, :, :3] = 220
    images[labels[:, 1] == 1, :, 3:] = 220
    return lw.Dataset(lw.Images(images, size=8), labels, name="shades")


def test_a_picture_is_small_and_keeps_its_shape(shades, tmp_path):
    url = thumbnail_urls(shades.X, [3])[0]
    picture = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    assert picture.size == (128, 128)
    assert np.asarray(picture)[:, :20].max() < 20  # bars beside an image that is high
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    assert thumbnail_urls(lw.Images([tmp_path / "broken.jpg"]), [0]) == [""]


@pytest.fixture
def model(shades):
    encoder = lw.ImageEncoder(lw.ResNet(size=8, width=4), weights="random", cache=False)
    return lw.ImageClassifier(lw.MLkNN(k=1), encoder=encoder, random_state=0)


def test_the_page_of_an_audit_shows_the_pictures(shades, model, tmp_path):
    result = lw.audit(shades, method=model, top=5, folds=2)
    result.write(tmp_path / "review.html", tmp_path / "review.csv")
    page = (tmp_path / "review.html").read_text()
    content = json.loads(re.search(r'id="audit-data"[^>]*>(.*?)</script>', page, re.S)[1])
    rows = {str(finding.row) for finding in result.findings}
    assert set(content["pictures"]) == rows
    assert content["pictures"][min(rows)] == thumbnail_urls(shades.X, [int(min(rows))])[0]
    assert "data:image" not in (tmp_path / "review.csv").read_text()


def test_the_report_shows_mistakes_as_pictures(shades, model, tmp_path):
    pytest.importorskip("matplotlib")
    labels = shades.Y.to_numpy().copy()
    wrong = labels.copy()
    wrong[:5, 0] = 1 - wrong[:5, 0]
    fitted = model.fit(shades.X, labels)
    data = lw.Dataset(shades.X, wrong, name="shades")
    lw.report(fitted, data, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert thumbnail_urls(shades.X, [0])[0] in page
    lw.report(fitted, data, tmp_path / "report.md")
    assert "the image of row 0" in (tmp_path / "report.md").read_text()
