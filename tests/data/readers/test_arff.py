import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.data.readers._arff import column_encoder
from labelweave.data.readers._arff.header import split_values
from labelweave.data.readers.arff import read_arff
from labelweave.data.reading import iter_batches
from labelweave.exceptions import DataFileError, InputError

FILE = "small.arff"

DENSE = """% a comment
@RELATION 'small one'

@Attribute length real
@attribute 'wide, deep' NUMERIC
@attribute "it's" {0,1}
@attribute sunny {0, 1}
@attribute windy {1,0}
@DATA
1.5,2,0,1,0
% another comment
-3e2, ?,1,?,1

7,8,?,0,1
"""


def rows(kind, *lines, labels="@attribute y {0,1}"):
    return "\n".join(["@relation r", kind, labels, "@data", *lines, ""])


def test_dense(write):
    data = read_arff(write(DENSE), labels=2)
    assert data.name == "small"
    assert data.feature_names == ["length", "wide, deep", "it's"]
    assert data.is_table
    assert np.asarray(data.X).dtype == np.float32
    np.testing.assert_array_equal(data.X, [[1.5, 2, 0], [-300, np.nan, 1], [7, 8, np.nan]])
    assert data.label_names == ("sunny", "windy")
    np.testing.assert_array_equal(data.Y.to_numpy(), [[1, 0], [np.nan, 1], [0, 1]])


@pytest.mark.parametrize(
    "change", [lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, lambda t: t.rstrip()]
)
def test_line_ends_and_byte_order_mark(write, change):
    data, same = read_arff(write(DENSE), labels=2), read_arff(write(change(DENSE)), labels=2)
    np.testing.assert_array_equal(data.X, same.X)


def test_compressed(write):
    data = read_arff(write(gzip.compress(DENSE.encode()), "small.arff.gz"), labels=2)
    assert len(data) == 3
    assert data.name == "small"


def test_latin_1(write):
    text = rows("@attribute größe numeric", "1,1").encode("latin-1")
    assert read_arff(write(text), labels=1).feature_names == ["größe"]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (1, ("windy",)),
        (-2, ("length", "wide, deep")),
        ("*ny", ("sunny",)),
        (["windy", "sunny"], ("windy", "sunny")),
    ],
)
def test_labels_option(write, labels, names):
    text = "\n".join(line.replace("1.5,2", "1,0").replace("-3e2, ?", "0,1").replace("7,8", "1,1")
                     for line in DENSE.split("\n"))  # fmt: skip
    assert read_arff(write(text), labels=labels).label_names == names


def test_mulan_xml_in_the_same_folder_decides_the_order(write):
    xml = '<?xml version="1.0"?><labels xmlns="http://mulan.sourceforge.net/labels">{}</labels>'
    write(xml.format('<label name="windy"><label name="sunny"/></label>'), "small.xml")
    for name in ("small.arff", "small-train.arff", "small_test.arff"):
        data = read_arff(write(DENSE, name))
        assert data.label_names == ("windy", "sunny")
        np.testing.assert_array_equal(data.Y.to_numpy()[0], [0, 1])
    elsewhere = write(xml.format('<label name="sunny"/>'), "other.xml")
    assert read_arff(write(DENSE), labels=str(elsewhere)).label_names == ("sunny",)


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("<labels>", "not well-formed"),
        ("<labels/>", "expected elements"),
        ('<labels><label name="a"/><label name="a"/></labels>', "listed twice"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><labels/>', "must not declare a document type"),
        ('<labels><label name="rainy"/></labels>', "no column 'rainy'"),
    ],
)
def test_bad_xml(write, xml, message):
    write(xml, "small.xml")
    with pytest.raises(DataFileError, match=message):
        read_arff(write(DENSE))


def test_meka_header(write):
    text = "@relation 'x: -C {} -split-number 1'\n@attribute a {{0,1}}\n@attribute b {{0,1}}\n"
    text += "@data\n0,1\n1,0\n"
    first, last = read_arff(write(text.format(1))), read_arff(write(text.format(-1)))
    assert (first.label_names, last.label_names) == (("a",), ("b",))
    assert list(first.part) == ["train", "test"]


def test_labels_are_required_by_default(write):
    with pytest.raises(DataFileError, match="labels= "):
        read_arff(write(DENSE))
    data = read_arff(write(DENSE), require_labels=False)
    assert data.Y.shape == (3, 0)
    assert data.X.shape == (3, 5)


SPARSE = """@relation s
@attribute a numeric
@attribute b numeric
@attribute c {0,1}
@attribute y {0,1}
@attribute z {0,1}
@data
{0 1.5,2 1,4 1}
{}
{ 1 -2 , 3 ? }
{1 ?,0 7}
"""


def test_sparse(write):
    data = read_arff(write(SPARSE), labels=2)
    assert sp.issparse(data.X)
    np.testing.assert_array_equal(
        data.X.toarray(), [[1.5, 0, 1], [0, 0, 0], [0, -2, 0], [7, np.nan, 0]]
    )
    np.testing.assert_array_equal(data.Y.to_numpy(), [[0, 1], [0, 0], [np.nan, 0], [0, 0]])


def test_many_sparse_labels_stay_sparse(write):
    header = "".join(f"@attribute y{j} {{0,1}}\n" for j in range(100))
    text = f"@relation s\n@attribute a numeric\n{header}@data\n{{0 2,5 1,100 1}}\n{{7 0}}\n"
    data = read_arff(write(text), labels=100)
    assert data.Y.is_sparse
    assert data.Y.to_lists() == [["y4", "y99"], []]
    assert data.Y.values.nnz == 2


def test_sparse_rows_leave_out_the_first_nominal_value(write):
    text = (
        "@relation s\n@attribute c {red,green,blue}\n@attribute d {yes,no}\n"
        "@attribute y {1,0}\n@data\n{0 blue}\n{1 no,2 0}\n{0 ?}\n"
    )
    data = read_arff(write(text), labels=1)
    assert data.feature_names == ["c=red", "c=green", "c=blue", "d"]
    nan = np.nan
    np.testing.assert_array_equal(
        data.X.toarray(), [[0, 0, 1, 1], [1, 0, 0, 0], [nan, nan, nan, 1]]
    )
    assert data.Y.to_numpy().ravel().tolist() == [1, 0, 1]


def test_nominal_features(write):
    text = rows(
        "@attribute c {red,'dark blue',green}\n@attribute d {small,large}\n@attribute e {NO,YES}",
        "'dark blue',large,YES,1", "red,small,NO,0", "?,?,?,?",
    )  # fmt: skip
    data = read_arff(write(text), labels=1)
    assert data.feature_names == ["c=red", "c=dark blue", "c=green", "d=large", "e"]
    np.testing.assert_array_equal(data.X[:2], [[0, 1, 0, 1, 1], [1, 0, 0, 0, 0]])
    assert np.isnan(data.X[2]).all()
    codes = read_arff(write(text), labels=1, nominal="codes")
    np.testing.assert_array_equal(codes.X[:2], [[1, 1, 1], [0, 0, 0]])
    with pytest.raises(InputError, match="nominal="):
        read_arff(write(text), labels=1, nominal="hash")


def test_strings_dates_ids_and_dropped_columns(write):
    text = rows(
        "@attribute name string\n@attribute when date 'yyyy-MM-dd HH:mm'\n@attribute n numeric",
        "'a, b','1970-01-02 00:01',1,1", "\"it\\'s\",?,2,0",
    )  # fmt: skip
    data = read_arff(write(text), labels=1, id_column="name", drop=["n"])
    assert data.row_ids == ["a, b", "it's"]
    np.testing.assert_array_equal(data.X, [[86460], [np.nan]])
    texts = read_arff(write(text), labels=1, text_column="name")
    assert texts.X == ["a, b", "it's"]
    with pytest.raises(DataFileError, match="'name' holds strings"):
        read_arff(write(text), labels=1)
    alone = read_arff(write(text), labels=1, drop=["n", "when"])
    assert alone.is_text


def test_nominal_ids(write):
    text = rows("@attribute who {p1,p2,p3}\n@attribute n numeric", "p2,1,1", "p3,2,0")
    assert read_arff(write(text), labels=1, id_column="who").row_ids == ["p2", "p3"]


def test_large_whole_numbers_keep_their_precision(write):
    data = read_arff(write(rows("@attribute n numeric", "123456789,1", "1,0")), labels=1)
    assert data.X.dtype == np.float64
    assert data.X[0, 0] == 123456789


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (rows("@attribute a numeric", "1,1", "x,0"), 6, "'x' is not a number"),
        (rows("@attribute a numeric", "1,1", "1,0,1"), 6, "3 values, but there are 2"),
        (rows("@attribute a numeric", "1,2"), 5, "not one of the 2 values of attribute 'y'"),
        (rows("@attribute a numeric", "1,1", "{0 1}"), 6, "first row of the file is dense"),
        (rows("@attribute a numeric", "{0 1}", "1,1"), 6, "in braces"),
        (rows("@attribute a numeric", "{0 1}", "{5 1}"), 6, "beyond the last of 2"),
        (rows("@attribute a numeric", "{1000000000000 1}"), 5, "beyond the last of 2"),
        (rows("@attribute a numeric", "{0 1,0 2}"), 5, "occurs twice"),
        (rows("@attribute a numeric", "{0 1,}"), 5, "expected 'index value'"),
        (rows("@attribute a numeric", "{0 1 1}"), 5, "not a number"),
        (rows("@attribute a numeric", "{-1 1}"), 5, "expected 'index value'"),
        (rows("@attribute a numeric", "'1,0"), 5, "a quote is not closed"),
        (rows("@attribute a numeric", "1_000,0"), 5, "not a number"),
        (rows("@attribute a date", "yesterday,0"), 5, "not a date of the form"),
        (rows("@attribute a relational", "1,0"), 2, "relational"),
        (rows("@attribute a {0,1", "1,0"), 2, "closing brace"),
        (rows("@attribute a {0,0}", "1,0"), 2, "twice"),
        (rows("@attribute a colour", "1,0"), 2, "its type must be"),
        (rows("@attribute", "1,0"), 2, "no name"),
        (rows("nonsense", "1,0"), 2, "expected @relation"),
        ("@relation x\n@data\n", 2, "before any @attribute"),
        ("@relation x\n@attribute a real\n", None, "before @data"),
        (rows("@attribute a numeric"), None, "no data rows"),
        (rows("@attribute a date 'QQ'", "1,0"), None, "date format"),
        (rows("@attribute a date 'yyyy yyyy'", "2020 2021,0"), None, "'yyyy' twice"),
        (rows("@attribute a date 'M/MM'", "1/1,0"), None, "'MM' twice"),
        (rows("@attribute a date '-'", "-,0"), None, "names no part of a date"),
        (rows("@attribute a real", "1,3", labels="@attribute y numeric"), None, "holds 3"),
    ],
)
def test_mistakes_name_the_line(write, text, line, message):
    with pytest.raises(DataFileError, match=message) as caught:
        read_arff(write(text), labels=1)
    assert caught.value.line == line


@pytest.mark.parametrize("values", ["{a,b,c}", "{a,b}", "string", "{}"])
def test_label_attributes_must_be_binary(write, values):
    with pytest.raises(DataFileError, match="label"):
        read_arff(
            write(rows("@attribute a numeric", "1,a", labels=f"@attribute y {values}")), labels=1
        )


def test_nominal_attributes_with_too_many_values_are_refused(write, monkeypatch):
    monkeypatch.setattr(column_encoder, "MAX_ADDED_ENTRIES", 100)
    values = ",".join(f"v{j}" for j in range(40))
    dense = rows(f"@attribute c {{{values}}}", *["v1,1"] * 5)
    sparse = rows(f"@attribute c {{{values}}}", *["{0 ?}"] * 5)
    for text in (dense, sparse):
        with pytest.raises(DataFileError, match="'c' with 40 values"):
            read_arff(write(text), labels=1)


def test_fast_and_line_by_line_parsing_agree(write, monkeypatch):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(300):
        columns = np.sort(rng.choice(30, rng.integers(0, 8), replace=False))
        entries = [f"{j} {1 if j >= 20 else round(rng.normal() * 100, 3)}" for j in columns]
        lines.append("{" + ",".join(entries) + "}")
    header = "".join(f"@attribute a{j} numeric\n" for j in range(20))
    header += "\n".join(f"@attribute y{j} {{0,1}}" for j in range(10))
    path = write(rows(header[:-1], *lines, labels="% none"))
    path.write_text(path.read_text().replace(header[:-1], header))
    fast = read_arff(path, labels=10)
    for method in ("_parse_sparse_fast", "_parse_dense_fast"):
        monkeypatch.setattr(
            f"labelweave.data.readers._arff.row_parser.RowParser.{method}", lambda *_: None
        )
    slow = read_arff(path, labels=10)
    assert (fast.X != slow.X).nnz == 0
    np.testing.assert_array_equal(fast.Y.to_numpy(), slow.Y.to_numpy())
    assert fast.X.nnz > 500


finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


@settings(max_examples=60)
@given(st.lists(st.tuples(finite | st.none(), finite, st.sampled_from([0, 1, None])), min_size=1),
       st.booleans())  # fmt: skip
def test_round_trip(write, table, sparse):
    def text(value):
        return "?" if value is None else repr(value)

    lines = []
    for row in table:
        if sparse:
            lines.append(
                "{" + ",".join(f"{j} {text(v)}" for j, v in enumerate(row) if v != 0) + "}"
            )
        else:
            lines.append(",".join(text(v) for v in row))
    path = write(rows("@attribute a numeric\n@attribute b numeric", *lines))
    data = read_arff(path, labels=1)
    expected = np.array([[np.nan if v is None else v for v in row] for row in table])
    X = data.X.toarray() if sparse else data.X
    np.testing.assert_array_equal(X, expected[:, :2])
    np.testing.assert_array_equal(data.Y.to_numpy()[:, 0], expected[:, 2])


@given(st.lists(st.text(alphabet=st.characters(blacklist_categories=["Cs", "Cc"])), min_size=1))
def test_quoted_values_round_trip(values):
    quoted = ["'" + v.replace("\\", "\\\\").replace("'", "\\'") + "'" for v in values]
    assert split_values(" , ".join(quoted)) == values


@pytest.mark.data
def test_batches_of_real_data_are_the_same_rows(data_home):
    path = data_home / "enron/enron.arff.xz"
    batches = [batch.X for batch in iter_batches(path, batch_rows=500)]
    assert [batch.shape[0] for batch in batches] == [500, 500, 500, 202]
    assert (sp.vstack(batches) != read_arff(path).X).nnz == 0


def test_batches(write):
    path = write(DENSE)
    batches = list(iter_batches(path, batch_rows=2, labels=["sunny", "windy", "rainy"]))
    assert [batch.X.shape for batch in batches] == [(2, 3), (1, 3)]
    assert batches[0].Y.shape == (2, 0)
    X = np.asarray(read_arff(path, labels=2).X)
    np.testing.assert_array_equal(np.concatenate([b.X for b in batches]), X)
    chosen = next(iter_batches(path, feature_names=["it's", "length"]))
    np.testing.assert_array_equal(chosen.X, X[:, [2, 0]])
    with pytest.raises(DataFileError, match="'mass' is missing"):
        list(iter_batches(path, feature_names=["length", "mass"]))
    with pytest.raises(DataFileError, match="5 feature columns, but 3 are needed"):
        list(iter_batches(path, n_features=3))
