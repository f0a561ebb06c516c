"""Columns of paths to image files."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder

import labelweave as lw
from labelweave.data.equal_rows import count_equal_rows
from labelweave.data.several_files import SeveralFiles, folder_of
from labelweave.exceptions import InputError, LabelweaveError
from labelweave.explaining import reference_rows
from labelweave.images import ResNet
from labelweave.tables.input_columns import columns_of_encoder, columns_of_steps, read_records

N_ROWS = 40
KINDS = {"photo": "image"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of red and blue images, and a table of their names beside numbers, one blank."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    is_red = np.arange(N_ROWS) % 2 == 0
    for k in range(N_ROWS):
        pixels = rng.integers(0, 60, (8, 8, 3), dtype=np.uint8)
        pixels[..., 0 if is_red[k] else 2] += 180
        Image.fromarray(pixels).save(folder / f"{k}.png")
    photo = [f"{k}.png" for k in range(N_ROWS)]
    photo[5] = None
    price = rng.normal(size=N_ROWS)
    frame = pd.DataFrame({"price": price, "photo": photo})
    labels = pd.DataFrame({"is_red": is_red.astype(int), "is_dear": (price > 0).astype(int)})
    frame.join(labels).to_csv(folder / "products.csv", index=False)
    return folder


def table_of(folder):
    """The columns with full paths, and the labels."""
    frame = pd.read_csv(folder / "products.csv")
    frame["photo"] = [None if pd.isna(name) else str(folder / name) for name in frame["photo"]]
    return frame[["price", "photo"]], frame[["is_red", "is_dear"]]


def test_features_of_images_beside_numbers(photos):
    frame, _ = table_of(photos)
    encoder = lw.TableEncoder(KINDS, sparse_output=False)
    features = encoder.fit_transform(frame)
    assert features.shape == (N_ROWS, 130)  # the price, 128 features, and whether it is blank
    np.testing.assert_array_equal(features, encoder.transform(frame))
    names = encoder.get_feature_names_out()
    assert (names[1], names[-1]) == ("photo: feature 0", "photo is blank")
    assert features[5, 1:].tolist() == [0] * 128 + [1]
    assert not features[np.arange(N_ROWS) != 5, -1].any()
    made = encoder.kinds_.set_index("column").loc["photo"]
    assert made["kind"] == "image"
    assert made["made"] == "128 features of an untrained network, and whether it is blank"
    sparse = lw.TableEncoder(KINDS, sparse_output=True).fit_transform(frame)
    np.testing.assert_array_equal(sparse.toarray(), features)


def test_few_dimensions_and_nan_for_trees(photos):
    frame, _ = table_of(photos)
    encoder = lw.TableEncoder(KINDS, output="codes", text_dimensions=4).fit(frame)
    features = encoder.transform(frame)
    assert features.shape == (N_ROWS, 5)
    blank = np.isnan(features[:, 1:])
    assert blank[5].all()
    assert blank.sum() == 4


def test_paths_are_images_only_if_asked(photos):
    frame, _ = table_of(photos)
    with pytest.warns(match="left out"):
        encoder = lw.TableEncoder().fit(
            frame.rename(columns={"photo": "file"}).assign(a=["x"] * 40)
        )
    assert "image" not in encoder.kinds_["kind"].tolist()


@pytest.mark.parametrize("name", ["missing.png", "broken.png", "a\0b.png"])
def test_row_and_file_of_an_image_that_cannot_be_read(photos, name):
    (photos / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnot an image")
    frame, _ = table_of(photos)
    encoder = lw.TableEncoder(KINDS).fit(frame)
    frame.loc[7, "photo"] = str(photos / name)
    with pytest.raises(InputError, match="row 7 of the column 'photo'") as error:
        encoder.transform(frame[6:9])
    assert "\0" in name or name in str(error.value)
    with pytest.raises(InputError, match="row 7 of the column 'photo'"):
        lw.TableEncoder(KINDS).fit(frame)


def test_a_column_of_empty_paths_is_left_out():
    frame = pd.DataFrame({"price": [1.0, 2.0, 3.0], "photo": [" ", None, ""]})
    with pytest.warns(match="'photo' is left out: every cell is blank"):
        encoder = lw.TableEncoder(KINDS).fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["price"]


@pytest.mark.parametrize("method", [lw.BinaryRelevance(), lw.BoostedTrees(min_samples_leaf=3)])
def test_saved_with_a_model(photos, tmp_path, method):
    frame, labels = table_of(photos)
    network = lw.ImageEncoder(ResNet(size=8, width=4), weights="random", cache=False)
    own = lw.TableEncoder(KINDS, image=network)
    model = method.fit(lw.Table(frame, own), labels)
    assert "ImageEncoder" in model.table_encoder_.kinds_["made"].iloc[1]
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(frame), model.predict_proba(frame), atol=1e-6)
    red = np.delete(model.predict_proba(frame)[:, 0] > 0.5, 5)
    assert (red == np.delete(labels["is_red"].to_numpy() == 1, 5)).mean() > 0.9
    assert not list((tmp_path / "model").rglob("*.pkl"))


def test_weights_that_do_not_fit_the_network_are_refused(photos, tmp_path):
    from safetensors.numpy import load_file, save_file

    frame, labels = table_of(photos)
    network = lw.ImageEncoder(ResNet(size=8, width=4), weights="random", cache=False)
    lw.BinaryRelevance().fit(lw.Table(frame, lw.TableEncoder(KINDS, image=network)), labels).save(
        tmp_path / "model"
    )
    changed = False
    for file in (tmp_path / "model").rglob("*.safetensors"):
        arrays = load_file(file)
        for name in arrays:
            if name.endswith("conv1.weight") and not changed:
                arrays[name] = arrays[name][:1].copy()
                changed = True
        save_file(arrays, file)
    assert changed
    with pytest.raises(LabelweaveError):
        lw.load(tmp_path / "model")


def test_paths_of_a_file_start_from_its_folder(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = lw.read_dataset(photos / "products.csv", labels="is_*", kinds=KINDS)
    assert data.X.frame["photo"][0] == str(photos / "0.png")
    assert pd.isna(data.X.frame["photo"][5])
    assert folder_of(SeveralFiles("*", ("/a/1.csv", "/a/2.csv"))) == "/a"
    other = tmp_path / "more.csv"
    other.write_bytes((photos / "products.csv").read_bytes())
    with pytest.raises(InputError, match="several folders: give the full paths"):
        lw.read_dataset([photos / "products.csv", other], labels="is_*", kinds=KINDS)


def test_typical_values_have_no_paths(photos):
    frame, _ = table_of(photos)
    frame["photo"] = frame["photo"][0]
    typical = reference_rows(lw.Table(frame, lw.TableEncoder(KINDS)))
    assert typical.frame["photo"].isna().all()
    assert str(photos) not in json.dumps(typical.frame.to_dict("list"))


def test_records_name_no_files(photos):
    frame, _ = table_of(photos)
    encoder = lw.TableEncoder(KINDS).fit(frame)
    columns = columns_of_encoder(encoder)
    path = frame["photo"][0]
    with pytest.raises(InputError, match=r"row\.0\.photo must be an image"):
        read_records([{"price": 1.0, "photo": path}], columns)
    assert read_records([{"price": 1.0, "photo": None}], columns).frame["photo"].isna().all()


def test_images_in_memory_are_those_of_their_files(photos):
    frame, labels = table_of(photos)
    paths = frame["photo"].dropna()
    pixels = paths.map(lambda path: np.asarray(Image.open(path))).reindex(frame.index)
    in_memory = frame.assign(photo=pixels.astype(object))
    encoder = lw.TableEncoder(KINDS).fit(frame)
    np.testing.assert_array_equal(encoder.transform(in_memory), encoder.transform(frame))
    twice = pd.concat([in_memory, in_memory], ignore_index=True)
    assert count_equal_rows(lw.Table(twice)) == 2 * N_ROWS
    table = lw.Table(in_memory, lw.TableEncoder(KINDS))
    model = lw.BinaryRelevance().fit(table, labels)
    importance = lw.feature_importance(model, in_memory, labels, random_state=0)
    assert importance.top(1)["is_red"][0][0] == "photo"
    in_memory.loc[3, "photo"] = Image.fromarray(pixels[3])
    with pytest.raises(InputError, match="row 3 of the column 'photo' is neither a path nor an"):
        encoder.transform(in_memory)


def test_a_second_use_of_a_column_of_images_does_not_hide_it(photos):
    frame, _ = table_of(photos)
    frame = frame.fillna({"photo": frame["photo"][0]})
    twice = make_column_transformer(
        (OneHotEncoder(), ["photo"]),
        (lw.TableEncoder(KINDS), ["photo"]),
        (lw.ImageEncoder(ResNet(size=8, width=4), weights="random"), "photo"),
    )
    kinds = [column.kind for column in columns_of_steps(twice.fit(frame))]
    assert kinds == ["not used", "image"]
