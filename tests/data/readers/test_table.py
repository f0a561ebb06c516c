import csv
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.data import compressed_files
from labelweave.data.readers.table import read_table
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError, LabelweaveWarning

FILE = "days.csv"

DAYS = "id,degrees,wind,sunny,windy\nmon,21.5,3,1,0\ntue,14,,,1\nwed,NA,1e2,false,yes\n"


def test_label_columns(write):
    for labels in (2, ["sunny", "windy"], "*ny"):
        data = read_dataset(write(DAYS), labels=labels, drop=[] if labels != "*ny" else ["windy"])
        nan = np.nan
        np.testing.assert_array_equal(data.X, [[21.5, 3], [14, nan], [nan, 100]])
        np.testing.assert_array_equal(data.Y.to_numpy()[:, 0], [1, nan, 0])
        assert data.feature_names == ["degrees", "wind"]
        assert data.row_ids == ["mon", "tue", "wed"]
        assert data.is_table  # some cells are blank
        assert set(data.X.frame.dtypes) == {np.dtype(np.float32)}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_cell_separators(write, separator):
    text = DAYS.replace(",", separator)
    assert read_table(write(text), labels=2).X.shape == (3, 2)


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["a;b", "", "b"], ("a", "b")),
        (["a|b c", "", "b c"], ("a", "b c")),
        (['"a, b"', "", "b"], ("a", "b")),
        (["a b", "", "b"], ("a", "b")),
    ],
)
def test_one_column_of_names(write, cells, names):
    text = "n,tags\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    data = read_table(write(text))
    assert data.label_names == names
    assert data.Y.to_lists() == [list(names), [], [names[1]]]


def test_label_separator_and_vocabulary(write):
    path = write("n,what\n1,a+b c\n2,d\n")
    data = read_table(path, label_column="what", label_separator="+", labels=["d", "a", "b c"])
    assert data.Y.to_numpy().tolist() == [[0, 1, 1], [1, 0, 0]]
    with pytest.raises(DataFileError, match="line 3: the label 'd' is not among"):
        read_table(path, label_column="what", label_separator="+", labels=["a", "b c"])


def test_texts(write):
    text = 'text,tags,split\n"one, ""two""\nthree",a;b,train\nNA,a,test\n'
    data = read_table(write(text))
    assert data.X == ['one, "two"\nthree', "NA"]
    assert list(data.part) == ["train", "test"]


def test_texts_with_label_numbers_and_a_file_of_names(write):
    write("joy\nfear\nlove\n", "labels.txt")
    text = 'I like "it\t0,2\tx1\nBoo hoo\t1\tx2\nSo so\t2\tx3\n'
    data = read_dataset(write(text, "train.tsv"))
    assert data.X == ['I like "it', "Boo hoo", "So so"]
    assert data.label_names == ("joy", "fear", "love")
    assert data.Y.to_lists() == [["joy", "love"], ["fear"], ["love"]]
    assert data.row_ids == ["x1", "x2", "x3"]


def test_one_text_column_beside_the_names_of_rows(write):
    path = write("mol,smiles,y\nm1,CCO,1\nm2,CC,0\n")
    assert read_table(path, labels=1).feature_names == ["mol", "smiles"]
    data = read_table(path, labels=1, text_column="smiles", id_column="mol")
    assert (data.X, data.row_ids) == (["CCO", "CC"], ["m1", "m2"])
    assert data.facts == {"not_features": {"mol": "the name of the row"}, "text_column": "smiles"}


PRODUCTS = (
    "id,title,price,brand,sold,code,shop,is_new,is_red\n"
    "p1,a red hat,2.5,acme,yes,007,s1,1,1\n"
    "p2,an old lamp,,bolt,no,x,s1,0,\n"
    "p3,one red shoe,4,n/a,,7.0,s2,,1\n"
)


def test_mixed_columns_are_a_table(write):
    data = read_table(write(PRODUCTS), labels="is_*", group_column="shop", drop=["sold"])
    assert data.feature_names == ["title", "price", "brand", "code"]
    assert data.row_ids == ["p1", "p2", "p3"]
    assert data.groups == ["s1", "s1", "s2"]
    frame = data.X.frame
    np.testing.assert_array_equal(frame["price"], [2.5, np.nan, 4])
    assert frame["brand"].tolist()[:2] == ["acme", "bolt"]
    assert frame["brand"].isna().tolist() == [False, False, True]
    assert frame["code"].tolist() == ["007", "x", "7.0"]
    said = {
        "id": "the name of the row",
        "shop": "the group of the row",
        "sold": "dropped, as asked",
    }
    assert data.facts["not_features"] == said
    assert repr(data).startswith("<Dataset days: 3 rows x 4 columns")
    np.testing.assert_array_equal(data.Y.to_numpy(), [[1, 1], [0, np.nan], [np.nan, 1]])


def test_a_text_column_does_not_drop_the_others(write):
    data = read_table(write(PRODUCTS), labels="is_*", text_column="title")
    assert data.feature_names == ["title", "price", "brand", "sold", "code", "shop"]
    assert data.X.encoder.kinds == {"title": "text"}


def test_kinds(write):
    data = read_table(write("a,b,y\n1,2,1\n3,4,0\n"), labels=1, kinds={"a": "category"})
    assert data.X.encoder.kinds == {"a": "category"}
    for kinds, words in [
        ({"prize": "number"}, "no column 'prize'; did you mean 'price'"),
        ({"price": "numbr"}, "'numbr', the kind given for the column 'price'"),
        ({"is_new": "number"}, "the column 'is_new', which is no feature"),
        (
            {"brand": "number"},
            "days.csv: row 0 of the column 'brand' is 'acme', which is not a num",
        ),
        ({"brand": "date"}, "row 0 of the column 'brand' is 'acme', which is not a date"),
    ]:
        with pytest.raises(DataFileError, match=words):
            read_table(write(PRODUCTS), labels="is_*", kinds=kinds)


def test_weights(write):
    data = read_table(write("a,w,y\n1,2,1\n3,0.5,0\n"), labels=1, weight_column="w")
    assert (data.feature_names, data[[1]].weights.tolist()) == (["a"], [0.5])
    with pytest.raises(DataFileError, match=r"line 3: .*'w' cannot be weights: 'x' is not a num"):
        read_table(write("a,w,y\n1,2,1\n3,x,0\n"), labels=1, weight_column="w")
    for cell, what in [("", "the cell is blank"), ("-2", "-2 is none"), ("inf", "inf is none")]:
        with pytest.raises(DataFileError, match=f"line 3: .*'w' cannot be weights: {what}; write"):
            read_table(write(f"a,w,y\n1,2,1\n3,{cell},0\n"), labels=1, weight_column="w")
    with pytest.raises(DataFileError, match="'w' cannot be weights: all are zero"):
        read_table(write("a,w,y\n1,0,1\n3,0,0\n"), labels=1, weight_column="w")


def test_decimal_commas_in_a_file_of_comma_separated_cells(write):
    with pytest.raises(DataFileError, match="',' cannot be both the decimal sign and the separat"):
        read_table(write("a,y\n1,1\n3,0\n"), labels="y", decimal=",")


def test_batches_of_a_table_have_its_columns_in_any_file(write):
    names = ["title", "price", "brand", "mass"]
    path = write(PRODUCTS)
    options = {"batch_rows": 2, "feature_names": names, "is_table": True}
    with pytest.warns(LabelweaveWarning, match="'sold', 'code', 'shop', 'is_new', 'is_red' were n"):
        batches = list(iter_batches(path, **options))
    known = ["is_new", "is_red", "shop"]
    with pytest.warns(LabelweaveWarning, match="the columns 'sold', 'code' were not in the traini"):
        list(iter_batches(path, **options, not_features=known))
    with pytest.warns(LabelweaveWarning, match="the column 'sold' was not in the training table"):
        list(iter_batches(path, **options, not_features=known, drop=["code"]))
    assert [len(batch) for batch in batches] == [2, 1]
    assert batches[0].X.frame.columns.tolist() == names[:3]  # the model reports the missing one
    assert batches[1].X.frame["price"].tolist() == [4.0]
    texts = next(iter_batches(path, text_column="title"))
    assert texts.X[0] == "a red hat"
    with pytest.raises(DataFileError, match=r"'title', 'brand'.* and the model has no such"):
        next(iter_batches(path))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a,y\n1,1\n2,0,5\n", 3, "3 cells, but there are 2 columns"),
        ("a,y\n1,1\n2\n", 3, "1 cells"),
        ("a,y\n1,1\n2,3\n", 3, "'y' holds 3"),
        ("a,y\n1,1\n2,maybe\n", 3, "'y' holds 'maybe': expected 1, 0 or an empty cell"),
        ('a,y\n1,1\n"2,1\n', 3, "cannot be read"),
        ("a,y\n", None, "no rows"),
        ("\n", None, "empty"),
        # A word far below numbers; among the first ones it makes a table of mixed columns.
        ("a,y\n" + "1,0\n" * 3000 + "x,1\n", 3002, "'x' in column 'a' is not a number"),
        # A broken header, which is not taken for a row.
        ("a,a,y\n1,2,1\n", 1, "the header has the name 'a' twice"),
        ("a,,y\n0,2,1\n", 1, "the header has no name for column 2"),
    ],
)
def test_mistakes(write, text, line, message):
    with pytest.raises(DataFileError, match=message) as caught:
        read_table(write(text), labels=1)
    assert caught.value.line == line


def test_labels_are_required_by_default(write):
    with pytest.raises(DataFileError, match="labels= "):
        read_table(write("a,b\n1,2\n"))
    assert read_table(write("a,b\n1,2\n"), require_labels=False).Y.shape == (1, 0)


def test_rows_of_empty_cells_are_rows(write):
    data = read_table(write("a,y\n1,1\n,\n"), labels=1)
    assert np.isnan(np.asarray(data.X)[1, 0])
    assert data.Y.n_unknown == 1
    assert len(read_table(write(","), labels=1)) == 1


def test_header_or_not(write):
    assert read_table(write("1,2,1\n3,4,0\n"), labels=1).feature_names == ["column_1", "column_2"]
    assert len(read_table(write("1,2,1\n3,4,0\n"), labels=1, header=True)) == 1


@pytest.mark.filterwarnings("ignore::labelweave.exceptions.LabelweaveWarning")
def test_the_index_of_pandas_names_the_rows(write, tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": [1, 0]}, index=["mon", "tue"])
    once = frame.to_csv()
    twice = pd.read_csv(write(once)).to_csv(index=False)
    for text in (once, twice):
        data = read_table(write(text), labels=["y"])
        assert (data.feature_names, data.row_ids) == (["a"], ["mon", "tue"])
        assert next(iter_batches(write(text), feature_names=["a"])).row_ids == ["mon", "tue"]
    frame.assign(id=["x", "z"]).to_csv(tmp_path / "both.csv")
    data = read_table(tmp_path / "both.csv", labels=["y"])
    assert (data.feature_names, data.row_ids) == (["a"], ["x", "z"])
    frame.to_parquet(tmp_path / "days.parquet")
    data = read_table(tmp_path / "days.parquet", labels=["y"])
    assert (data.feature_names, data.row_ids) == (["a"], ["mon", "tue"])


def test_the_index_of_pandas_is_mentioned(write):
    with pytest.warns(LabelweaveWarning, match="'Unnamed: 0' is taken for the index"):
        data = read_table(write(",a,y\n0,2,1\n"), labels=1)
    assert data.facts["not_features"] == {"Unnamed: 0": "the name of the row"}


def test_decimal_commas(write):
    path = write("a;b;y\n1,5;2;1\n-2,25e1;;0\n")
    data = read_table(path, labels=1, decimal=",")
    np.testing.assert_array_equal(data.X, [[1.5, 2], [-22.5, np.nan]])
    assert next(iter_batches(path, decimal=",", labels=1)).X[0].tolist() == [1.5, 2]
    with pytest.raises(DataFileError, match=r"'1\.500' in column 'a' is not a number"):
        read_table(write("a;y\n" + "1,5;1\n" * 3000 + "1.500;0\n"), labels=1, decimal=",")
    with pytest.raises(DataFileError, match="both the decimal sign and the separator"):
        read_table(write("a,y\n1,1\n"), labels=1, decimal=",", separator=",")
    with pytest.raises(DataFileError, match="decimal= must be"):
        read_table(path, labels=1, decimal="x")


def test_repeated_words_above_words_are_a_row(write):
    data = read_table(
        write("sun\tsun\nsea\tsun\n", "t.tsv"), text_column="column_1", label_column="column_2"
    )
    assert list(data.X) == ["sun", "sea"]


def test_batches(write):
    path = write(DAYS)
    at_once = np.asarray(read_table(path, labels=2).X)
    batches = list(iter_batches(path, batch_rows=2, labels=["sunny", "windy", "rainy"]))
    np.testing.assert_array_equal(np.concatenate([b.X for b in batches]), at_once)
    chosen = next(iter_batches(path, feature_names=["wind"]))
    np.testing.assert_array_equal(chosen.X, at_once[:, 1:])
    assert chosen.row_ids == ["mon", "tue", "wed"]
    with pytest.raises(DataFileError, match="no column 'mass'"):
        list(iter_batches(path, feature_names=["mass"]))
    with pytest.raises(DataFileError, match="4 feature columns, but 2 are needed"):
        list(iter_batches(path, n_features=2))


def test_parquet(tmp_path):
    frame = pd.DataFrame(
        {"id": [7, 8], "a": [1.5, None], "b": [True, False], "y": [1, 0], "z": [None, 1.0]}
    )
    path = tmp_path / "days.parquet"
    frame.to_parquet(path)
    data = read_dataset(path, labels=2)
    np.testing.assert_array_equal(data.X, [[1.5, 1], [np.nan, 0]])
    np.testing.assert_array_equal(data.Y.to_numpy(), [[1, np.nan], [0, 1]])
    assert data.row_ids == [7, 8]
    texts = pd.DataFrame({"text": ["one", "two"], "labels": [["a"], ["a", "b"]]})
    texts.to_parquet(path)
    assert read_dataset(path).Y.to_lists() == [["a"], ["a", "b"]]
    assert next(iter_batches(path)).X == ["one", "two"]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataFileError, match="Parquet file cannot be read"):
        read_dataset(path)


def test_types_of_parquet(tmp_path):
    days = pd.to_datetime(["2024-01-01", None, "2024-03-01"])
    frame = pd.DataFrame({"brand": pd.Categorical(["a", "b", None]), "day": days})
    frame = frame.assign(
        open=[True, False, None], number=[2**60, 1, 2], tags=[["x"], [], ["x", "y"]]
    )
    frame.to_parquet(tmp_path / "days.parquet")
    data = read_dataset(tmp_path / "days.parquet")
    assert data.Y.to_lists() == [["x"], [], ["x", "y"]]
    assert data.X.frame["number"].tolist() == [2.0**60, 1, 2]
    assert data.X.frame["brand"].tolist() == ["a", "b", None]
    kinds = data.X.unfitted_encoder().fit(data.X.as_reported()).kinds_
    kind_of = dict(zip(kinds["column"], kinds["kind"], strict=True))
    assert kind_of["day"] == "date"
    assert kind_of["number"] == "number"


def test_many_rows_of_parquet_come_in_their_order(tmp_path):
    frame = pd.DataFrame({"a": np.arange(5000.0), "y": np.arange(5000) % 2})
    frame.to_parquet(tmp_path / "days.parquet", row_group_size=700)
    np.testing.assert_array_equal(
        read_dataset(tmp_path / "days.parquet", labels=1).X[:, 0], np.arange(5000)
    )


@pytest.mark.parametrize("values", [np.zeros(10**6), ["x" * 10**5] * 300])
@pytest.mark.parametrize("store_schema", [False, True])  # True: read as numbers of a dictionary
def test_a_repeated_value_in_parquet_is_refused_before_it_fills_the_memory(
    tmp_path, monkeypatch, values, store_schema
):
    monkeypatch.setattr(compressed_files, "FREE_BYTES", 2**14)
    path = tmp_path / "bomb.parquet"
    table = pa.table({"a": pa.array(values).dictionary_encode(), "labels": ["y"] * len(values)})
    pq.write_table(table, path, compression="zstd", store_schema=store_schema)
    for read in (read_dataset, lambda path: list(iter_batches(path))):
        with pytest.raises(DataFileError, match="more than 2000 times its size"):
            read(path)


def test_short_texts_in_parquet_count_as_much_as_they_take(tmp_path, monkeypatch):
    monkeypatch.setattr(compressed_files, "FREE_BYTES", 2**20)
    path = tmp_path / "days.parquet"
    table = pa.table({"text": ["ab"] * 10**5, "labels": ["y"] * 10**5})
    pq.write_table(table, path, compression="zstd")
    assert path.stat().st_size < 4000
    with pytest.raises(DataFileError, match="more than 2000 times its size"):
        read_dataset(path)


def test_categories_in_parquet_are_texts(tmp_path):
    frame = pd.DataFrame({"text": pd.Categorical(["one", "two", "one"]), "labels": ["a", "b", "a"]})
    frame.to_parquet(tmp_path / "days.parquet")
    assert list(read_dataset(tmp_path / "days.parquet").X) == ["one", "two", "one"]


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)


@settings(max_examples=40)
@given(st.lists(st.tuples(cells.filter(str.strip), st.booleans()), min_size=1, max_size=20))
def test_text_round_trip(tmp_path, rows):
    path = tmp_path / "texts.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "y"])
        writer.writerows((text, int(label)) for text, label in rows)
    data = read_table(path, text_column="text", labels=["y"])
    texts, labels = zip(*rows, strict=True)
    assert tuple(data.X) == texts
    assert data.Y.to_numpy().ravel().astype(bool).tolist() == list(labels)


def test_words_among_numbers_are_said_and_become_blanks_where_asked(write):
    rows = [f"{i},b{i % 3},{i % 2}" for i in range(30)]
    rows[4], rows[9] = "12 EUR,b1,0", "unknown,b2,1"
    path = write("price,brand,y\n" + "\n".join(rows) + "\n")
    said = (
        r"'price' holds numbers, but 2 cells do not: '12 EUR' in line 6, 'unknown' in line 11, wh"
    )
    with pytest.warns(LabelweaveWarning, match=said):
        data = read_table(path, labels=["y"])
    assert data.X.frame["price"].tolist()[4] == "12 EUR"
    with pytest.warns(LabelweaveWarning, match="line 11, read as blank"):
        data = read_table(path, labels=["y"], kinds={"price": "number"})
    price = data.X.frame["price"].to_numpy()
    assert np.flatnonzero(np.isnan(price)).tolist() == [4, 9]
    options = {"feature_names": ["price", "brand"], "is_table": True, "not_features": ["y"]}
    with pytest.warns(LabelweaveWarning, match="line 11, read as blank"):  # to predict
        batches = list(iter_batches(path, batch_rows=99, kinds={"price": "number"}, **options))
    np.testing.assert_array_equal(batches[0].X.frame["price"], price)
    assert price[10] == 10


def test_decimal_commas_are_said(write):
    rows = [f"{'' if i == 3 else f'{i},5'};b{i % 3};{i % 2}" for i in range(30)]
    path = write("price;brand;y\n" + "\n".join(rows) + "\n")
    said = r"'price' look like numbers with a decimal comma, such as '0,5'.*decimal=','"
    with pytest.warns(LabelweaveWarning, match=said):
        assert read_table(path, labels=["y"]).X.frame["price"].tolist()[4] == "4,5"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(path, labels=["y"], decimal=",").X.frame["price"].tolist()[4] == 4.5
        words = write("size;brand;y\n" + "\n".join(row.replace(",", "x") for row in rows) + "\n")
        read_table(words, labels=["y"])


def test_a_word_far_below_numbers_becomes_a_blank_where_asked(write):
    path = write("a;y\n" + "1,5;0\n" * 3000 + "x;1\n2,5;1\n")
    with pytest.raises(DataFileError, match=r"line 3002.*kinds=a=number reads such cells"):
        read_table(path, labels=1, decimal=",")
    with pytest.warns(LabelweaveWarning, match="one cell does not: 'x' in line 3002, read as"):
        data = read_table(path, labels=1, decimal=",", kinds={"a": "number"})
    np.testing.assert_array_equal(data.X.frame["a"].tolist()[2999:], [1.5, np.nan, 2.5])


def test_categories_some_of_which_are_numbers_are_not_mistakes(write):
    rows = [f"{i if i % 4 else 'XL'},b{i % 3},{i % 2}" for i in range(30)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = read_table(write("size,brand,y\n" + "\n".join(rows) + "\n"), labels=["y"])
    assert data.X.frame["size"].tolist()[:2] == ["XL", "1"]
