"""Size of real data sets, as they are described."""

import pytest
import scipy.sparse as sp

from labelweave.data.reading import iter_batches, read_dataset

pytestmark = pytest.mark.data


@pytest.mark.parametrize(
    ("file", "options", "n", "d", "n_labels", "cardinality"),
    [
        ("emotions/emotions.arff.xz", {}, 593, 72, 6, 1.868),
        ("scene/scene-train.arff.xz", {}, 1211, 294, 6, 1.062),
        ("genbase/genbase.arff.xz", {"id_column": "protein"}, 662, 1185, 27, 1.252),
        ("birds/birds-train.arff.xz", {"nominal": "codes"}, 322, 260, 19, 1.059),
        ("medical/medical.arff.xz", {}, 978, 1449, 45, 1.245),
        ("delicious/delicious-test.arff.xz", {}, 3185, 500, 983, 18.910),
        ("imdb/imdb.arff.xz", {}, 120919, 1001, 28, 2.000),
        ("sider/sider.csv.xz", {"labels": 27}, 1427, None, 27, 15.324),
        ("tox21/tox21.csv.xz", {"labels": -12, "id_column": "mol_id"}, 7831, None, 12, 0.749),
        ("goemotions/dev.tsv.xz", {}, 5426, None, 28, 1.176),
        ("cooking-se/cooking.stackexchange.txt.xz", {}, 15404, None, 736, 2.307),
        ("cfc-mesh/cfc.jsonl.xz", {}, 1239, None, 821, 2.793),
        ("aapd-test/aapd-test.jsonl.xz", {}, 1000, None, 54, 2.421),
        ("mdi-icons/mdi-icons-32x32.npz", {}, 5382, 1024, 61, 1.293),
    ],
)
def test_size(data_home, file, options, n, d, n_labels, cardinality):
    data = read_dataset(data_home / file, **options)
    facts = data.summary()
    assert (facts["rows"], facts["features"], facts["labels"]) == (n, d, n_labels)
    assert facts["cardinality"] == pytest.approx(cardinality, abs=6e-4)


def test_all_headings_of_cfc(data_home):
    data = read_dataset(data_home / "cfc-mesh/cfc.jsonl.xz", label_column=["major", "minor"])
    assert data.Y.n_labels == 2100


def test_debtags_has_parts_and_descriptions(data_home):
    data = read_dataset(data_home / "debtags/documents.jsonl.xz")
    assert data.summary()["official_parts"] == {"train": 23945, "test": 6358}
    assert data.Y.n_labels == 598
    assert data.Y.descriptions["role::program"].startswith("Program")


def test_batches_equal_the_whole(data_home):
    path = data_home / "enron/enron.arff.xz"
    whole = read_dataset(path)
    batches = [batch.X for batch in iter_batches(path, batch_rows=500)]
    assert [batch.shape[0] for batch in batches] == [500, 500, 500, 202]
    assert (sp.vstack(batches) != whole.X).nnz == 0
