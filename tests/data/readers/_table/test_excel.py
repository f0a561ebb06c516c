import datetime
import zipfile

import numpy as np
import pandas as pd
import pytest

from labelweave.data import compressed_files
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError, LabelweaveWarning

pytest.importorskip("openpyxl")


@pytest.fixture
def book(tmp_path):
    days = pd.DataFrame({"id": ["mon", "tue"], "a": [1.5, None], "b": [2, 3], "y": [1, None]})
    with pd.ExcelWriter(tmp_path / "book.xlsx") as writer:
        days.to_excel(writer, sheet_name="days", index=False)
        days.assign(b=[7, 8]).to_excel(writer, sheet_name="nights", index=True)
    return tmp_path / "book.xlsx"


def test_a_sheet(book):
    data = read_dataset(book, labels=["y"], drop=["a"])
    assert data.X.tolist() == [[2], [3]]
    assert data.row_ids == ["mon", "tue"]
    np.testing.assert_array_equal(data.Y.to_numpy(), [[1], [np.nan]])
    for sheet in ("nights", 1):
        with pytest.warns(LabelweaveWarning, match="'Unnamed: 0' is taken for the index"):
            other = read_dataset(book, labels=["y"], drop=["a"], sheet=sheet)
        assert other.feature_names == ["b"]
        assert other.X.tolist() == [[7], [8]]
    assert next(iter_batches(book, feature_names=["b"])).X.tolist() == [[2], [3]]


def test_a_workbook_is_known_by_its_content(book, tmp_path):
    path = book.rename(tmp_path / "book")
    assert read_dataset(path, format="table", labels=["y"], drop=["a"]).X.tolist() == [[2], [3]]


def test_mistakes(book, tmp_path):
    with pytest.raises(DataFileError, match="no sheet 'weeks'; the sheets are 'days', 'nights'"):
        read_dataset(book, labels=1, sheet="weeks")
    with pytest.raises(DataFileError, match="only text files have an encoding"):
        read_dataset(book, labels=1, encoding="cp1252")
    frame = pd.DataFrame({"a": [1, "x", 3], "y": [1, 0, 2]})
    frame.to_excel(tmp_path / "wrong.xlsx", index=False)
    with pytest.raises(DataFileError, match=r"line 4: the label column 'y' holds 2"):
        read_dataset(tmp_path / "wrong.xlsx", labels=["y"], drop=["a"])
    (tmp_path / "damaged.xlsx").write_bytes(book.read_bytes()[:-100])
    with pytest.raises(DataFileError, match="the workbook cannot be read"):
        read_dataset(tmp_path / "damaged.xlsx", labels=1)
    (tmp_path / "days.csv").write_text("a,y\n1,1\n")
    with pytest.raises(DataFileError, match="only an Excel file has sheets"):
        read_dataset(tmp_path / "days.csv", labels=1, sheet=0)


def test_dates_and_truth_values_are_cells(tmp_path):
    path = tmp_path / "book.xlsx"
    days = [datetime.datetime(2024, 5, 1), datetime.datetime(2024, 6, 1)]
    pd.DataFrame({"day": days, "open": [True, False], "y": [1, 0]}).to_excel(path, index=False)
    assert read_dataset(path, labels=["y"], drop=["day"]).X.tolist() == [[1], [0]]


def test_an_archive_that_unpacks_to_an_absurd_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(compressed_files, "FREE_BYTES", 2**14)
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 2**22)
    with pytest.raises(DataFileError, match="more than 200 times its size"):
        read_dataset(tmp_path / "bomb.xlsx", labels=1)


def test_xml_that_can_expand_is_refused(book, tmp_path):
    path = tmp_path / "entities.xlsx"
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("sheet1.xml"):
                content = b'<!DOCTYPE x [<!ENTITY a "b">]>' + content
            new.writestr(name, content)
    with pytest.raises(DataFileError, match="must not declare a document type"):
        read_dataset(path, labels=1)
