"""OpenML through scikit-learn, with prepared answers in place of the network."""

import gzip
import hashlib
import io
import json
import socket
import time
import urllib.error
import urllib.request
import urllib.response
from email.message import Message

import numpy as np
import pytest

from labelweave.data import catalog
from labelweave.data._catalog.openml import fetch_dataset
from labelweave.data.catalog import load_dataset
from labelweave.exceptions import DatasetUnavailableError

COLUMNS = {
    "id": ("nominal", ["p1", "p2", "p3", "p4"]),
    "x": ("numeric", None),
    "flag": ("nominal", ["YES", "NO"]),
    "sea": ("nominal", ["TRUE", "FALSE"]),
    "sun": ("nominal", ["TRUE", "FALSE"]),
}
ROWS = ["p1,0.5,YES,TRUE,FALSE", "p2,1.5,NO,FALSE,FALSE", "p3,2,NO,TRUE,TRUE", "p4,?,YES,TRUE,?"]


def arff() -> bytes:
    lines = ["@relation x"]
    for name, (kind, values) in COLUMNS.items():
        lines.append(f"@attribute {name} {'{' + ','.join(values) + '}' if values else kind}")
    return "\n".join([*lines, "@data", *ROWS, ""]).encode()


class OpenML(urllib.request.HTTPSHandler):
    """Answers api.openml.org from memory."""

    def __init__(self):
        super().__init__()
        self.failure: Exception | None = None
        self.body = arff()
        self.checksum = hashlib.md5(self.body).hexdigest()
        self.n_requests = 0

    def https_open(self, request):
        self.n_requests += 1
        if self.failure is not None:
            raise self.failure
        headers = Message()
        body = gzip.compress(self._answer(request.full_url))
        headers["Content-Encoding"] = "gzip"
        answer = urllib.response.addinfourl(io.BytesIO(body), headers, request.full_url, 200)
        answer.msg = "OK"
        return answer

    def _answer(self, url):
        if "/features/" in url:
            return json.dumps({"data_features": {"feature": self._features()}}).encode()
        if "/qualities/" in url:
            quality = [{"name": "NumberOfInstances", "value": str(len(ROWS))}]
            return json.dumps({"data_qualities": {"quality": quality}}).encode()
        if "/download/" in url:
            return self.body
        return json.dumps(
            {
                "data_set_description": {
                    "id": "7",
                    "name": "tiny",
                    "version": "1",
                    "description": "made up",
                    "format": "ARFF",
                    "status": "active",
                    "url": "https://api.openml.org/data/v1/download/1/tiny.arff",
                    "file_id": "1",
                    "md5_checksum": self.checksum,
                }
            }
        ).encode()

    def _features(self):
        for j, (name, (kind, values)) in enumerate(COLUMNS.items()):
            yield {
                "index": str(j),
                "name": name,
                "data_type": kind,
                "is_target": "true" if name in ("sea", "sun") else "false",
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
                **({"nominal_value": values} if values else {}),
            }


@pytest.fixture
def openml(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # between two tries
    handler = OpenML()
    handler._features = lambda features=handler._features: list(features())
    urllib.request.install_opener(urllib.request.build_opener(handler))
    yield handler
    urllib.request.install_opener(urllib.request.build_opener())


def test_nominal_columns_become_numbers(openml, tmp_path):
    data = fetch_dataset(7, "tiny", cache=tmp_path, id_column="id")
    np.testing.assert_array_equal(data.X, [[0.5, 1], [1.5, 0], [2, 0], [np.nan, 1]])
    np.testing.assert_array_equal(data.Y.to_numpy(), [[1, 0], [0, 0], [1, 1], [1, np.nan]])
    assert data.label_names == ("sea", "sun")
    assert data.feature_names == ["x", "flag"]
    assert data.row_ids == ["p1", "p2", "p3", "p4"]
    assert data.part is None
    assert data.facts["openml_md5"] == openml.checksum


def test_the_catalog_falls_back_on_openml(openml, tiny_entry, tmp_path, monkeypatch):
    entry = tiny_entry(reader_options={"id_column": "id"}, openml={"id": 7, "name": "tiny"})
    monkeypatch.setattr(catalog, "_catalog", lambda: {"tiny": entry})
    monkeypatch.delenv("LABELWEAVE_DATA", raising=False)
    monkeypatch.setenv("LABELWEAVE_CACHE", str(tmp_path))
    data = load_dataset("tiny")
    assert data.facts["loaded_from"] == "openml.org"
    assert data.part is None, "OpenML does not keep the official parts"
    assert (tmp_path / "openml").is_dir()


def test_the_second_load_uses_the_cache(openml, tmp_path):
    fetch_dataset(7, "tiny", cache=tmp_path, id_column="id")
    before = openml.n_requests
    fetch_dataset(7, "tiny", cache=tmp_path, id_column="id")
    assert openml.n_requests == before


def test_a_column_of_names_is_not_a_feature(openml, tmp_path):
    with pytest.raises(DatasetUnavailableError, match=r"column 'id' .*neither numeric nor yes/no"):
        fetch_dataset(7, "tiny", cache=tmp_path)


def test_another_name_under_the_number_is_refused(openml, tmp_path):
    with pytest.raises(DatasetUnavailableError, match="7 is 'tiny', not 'scene'"):
        fetch_dataset(7, "scene", cache=tmp_path)


def test_a_wrong_checksum_is_refused(openml, tmp_path):
    openml.checksum = "0" * 32
    with pytest.raises(DatasetUnavailableError, match="md5 checksum"):
        fetch_dataset(7, "tiny", cache=tmp_path, id_column="id")


@pytest.mark.parametrize(
    "failure",
    [
        urllib.error.URLError(socket.gaierror(-3, "Temporary failure in name resolution")),
        urllib.error.HTTPError("https://api.openml.org", 503, "Unavailable", Message(), None),
        TimeoutError("timed out"),
        ConnectionResetError(104, "Connection reset by peer"),
    ],
)
def test_a_network_error_is_one_line(openml, tmp_path, monkeypatch, recwarn, failure):
    openml.failure = failure
    monkeypatch.delenv("LABELWEAVE_DATA", raising=False)
    monkeypatch.setenv("LABELWEAVE_CACHE", str(tmp_path))
    before = socket.getdefaulttimeout()
    with pytest.raises(DatasetUnavailableError) as caught:
        load_dataset("emotions")
    assert "OpenML's data set 40589 cannot be downloaded" in str(caught.value)
    assert "set LABELWEAVE_DATA to a folder that holds emotions/" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not recwarn.list
    assert socket.getdefaulttimeout() == before
