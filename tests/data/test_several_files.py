import numpy as np
import pandas as pd
import pytest

import labelweave as lw
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError


@pytest.fixture
def parts(tmp_path):
    (tmp_path / "part-1.csv").write_text("id,a,b,y\nr1,1,2,1\nr2,3,4,0\n")
    (tmp_path / "part-2.csv").write_text("id,b,a,y\nr3,6,5,1\n")
    return tmp_path


def test_a_pattern_and_a_list(parts):
    for path in (f"{parts}/part-*.csv", [parts / "part-1.csv", str(parts / "part-2.csv")]):
        data = lw.load_dataset(path, labels=1)
        assert data.X.tolist() == [[1, 2], [3, 4], [5, 6]]
        assert data.row_ids == ["r1", "r2", "r3"]
        batches = list(iter_batches(path, batch_rows=2, feature_names=["b", "a"]))
        assert np.concatenate([batch.X for batch in batches]).tolist() == [[2, 1], [4, 3], [6, 5]]


def test_one_match_is_one_file(parts):
    assert lw.load_dataset(f"{parts}/part-2*", labels=1).name == "part-2"
    assert lw.load_dataset([parts / "part-2.csv"], labels=1).name == "part-2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,a,c,y\nr3,5,6,1\n", r"part-3.csv: the column 'b' of .*part-1.csv is missing: files"),
        ("id,a,b,c,y\nr3,5,6,7,1\n", r"part-3.csv: the column 'c' is not in .*part-1.csv"),
        ("id,a,b,y\nr3,5,6,2\n", r"part-3.csv, line 2: the label column 'y' holds 2"),
        ("id,a,b,y\nr3,5,6\n", r"part-3.csv, line 2: the row has 3 cells"),
    ],
)
def test_files_that_do_not_fit(parts, text, message):
    (parts / "part-3.csv").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_dataset(f"{parts}/part-*.csv", labels=["y"])


def test_patterns_and_lists_without_files(tmp_path):
    with pytest.raises(DataFileError, match=r"nothing-\*.csv: no file matches this pattern"):
        lw.load_dataset(f"{tmp_path}/nothing-*.csv", labels=1)
    with pytest.raises(DataFileError, match="list of files is empty"):
        lw.load_dataset([], labels=1)
    with pytest.raises(DataFileError, match="there is no such file"):
        lw.load_dataset([tmp_path / "a.csv", tmp_path / "b.csv"], labels=1)


def test_formats_are_not_mixed(parts):
    (parts / "part-4.jsonl").write_text('{"text": "a", "labels": ["x"]}\n')
    with pytest.raises(DataFileError, match=r"has the format jsonl, but .*part-1.csv has table"):
        read_dataset(f"{parts}/part-*", labels=1)
    (parts / "rows-1.svm").write_text("1 1:1\n")
    (parts / "rows-2.svm").write_text("1 1:1\n")
    with pytest.raises(DataFileError, match="format svmlight cannot be read together"):
        read_dataset(f"{parts}/rows-*.svm")


def test_json_lines_in_several_files(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "waves", "labels": ["sea"]}\n')
    (tmp_path / "b.jsonl").write_text('{"text": "heat", "labels": ["sun"]}\n{"text": 3}\n')
    with pytest.raises(DataFileError, match=r"b.jsonl, line 2: the field 'text' is not a text"):
        read_dataset(f"{tmp_path}/*.jsonl")
    (tmp_path / "b.jsonl").write_text('{"text": "heat", "labels": ["sun"]}\n')
    data = read_dataset(f"{tmp_path}/*.jsonl")
    assert (data.X, data.Y.to_lists()) == (["waves", "heat"], [["sea"], ["sun"]])


@pytest.fixture
def frame():
    return pd.DataFrame({"a": [1.0, 2.0, 3.0], "year": [2023, 2024, 2024], "y": [1, 0, 1]})


def test_a_folder_of_parquet_files(tmp_path, frame):
    frame[:1].to_parquet(tmp_path / "part-0.parquet")
    frame[1:].to_parquet(tmp_path / "part-1.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    frame.to_parquet(tmp_path / "_hidden.parquet")
    data = lw.load_dataset(str(tmp_path), labels=["y"])
    assert data.X.tolist() == [[1, 2023], [2, 2024], [3, 2024]]
    assert data.name == tmp_path.name


def test_a_partitioned_folder(tmp_path, frame):
    frame.to_parquet(tmp_path / "days", partition_cols=["year"])
    data = lw.load_dataset(tmp_path / "days", labels=["y"])
    assert data.feature_names == ["a", "year"]
    assert data.X.tolist() == [[1, 2023], [2, 2024], [3, 2024]]
    assert next(iter_batches(tmp_path / "days", feature_names=["year"])).X.tolist()[0] == [2023]
