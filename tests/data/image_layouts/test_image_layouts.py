"""Layouts of image data sets, each read from a small folder that the test writes."""

import json

import numpy as np
import pytest

from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError, InputError, LabelweaveWarning

Image = pytest.importorskip("PIL.Image")


def put_image(path, shade=100):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (10, 8), (shade, 0, 255 - shade)).save(path)


def check_refused(folder, message):
    with pytest.raises(DataFileError, match=message):
        read_dataset(folder)


def lists(data):
    return [set(row) for row in data.Y.to_lists()]


# -- PASCAL VOC ------------------------------------------------------------------------------


def put_voc(root, *, lists=True):
    objects = {
        "000001": [("dog", 0), ("person", 0)],
        "000002": [("cat", 1)],
        "000003": [("dog", 0), ("dog", 1)],
        "000004": [],
    }
    (root / "Annotations").mkdir(parents=True)
    for k, (id, annotated) in enumerate(objects.items()):
        put_image(root / "JPEGImages" / f"{id}.jpg", 40 * k)
        body = "".join(
            f"<object><name>{name}</name><difficult>{hard}</difficult>"
            "<part><name>head</name></part></object>"
            for name, hard in annotated
        )
        text = f"<annotation><filename>{id}.jpg</filename>{body}</annotation>"
        (root / "Annotations" / f"{id}.xml").write_text(text)
    if lists:
        main = root / "ImageSets" / "Main"
        main.mkdir(parents=True)
        for name, ids in {
            "train": ["000001"],
            "val": ["000002"],
            "trainval": ["000001", "000002"],
            "test": ["000003", "000004"],
        }.items():
            (main / f"{name}.txt").write_text("\n".join(ids) + "\n")
    return root


def test_voc(tmp_path):
    root = put_voc(tmp_path / "VOCdevkit" / "VOC2007")
    data = read_dataset(tmp_path / "VOCdevkit", size=8)
    assert data.Y.names == ("cat", "dog", "person")  # the head is a part, no object
    assert list(data.part) == ["train", "validation", "test", "test"]
    assert list(data.row_ids) == ["000001", "000002", "000003", "000004"]
    expected = [[0, 1, 1], [np.nan, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert np.array_equal(data.Y.to_numpy(), expected, equal_nan=True)
    assert data.X.pixels().shape == (4, 8, 8, 3)
    assert read_dataset(root, difficult="positive").Y.to_numpy()[1, 0] == 1
    assert read_dataset(root, difficult="negative").Y.to_numpy()[1, 0] == 0


def test_voc_without_lists(tmp_path):
    data = read_dataset(put_voc(tmp_path / "VOC2012", lists=False))
    assert data.part is None
    assert len(data) == 4


def test_voc_refusals(tmp_path):
    root = put_voc(tmp_path / "kit" / "VOC2007")
    put_voc(tmp_path / "kit" / "VOC2012")
    check_refused(tmp_path / "kit", "several data sets")
    assert len(read_dataset(tmp_path / "kit", year="2007")) == 4
    with pytest.raises(InputError, match="difficult"):
        read_dataset(root, difficult="maybe")
    xml = root / "Annotations" / "000001.xml"
    original = xml.read_text()
    xml.write_text('<!DOCTYPE a [<!ENTITY b "c">]><annotation/>')
    check_refused(root, "entities")
    xml.write_text("<annotation><object>")
    check_refused(root, r"000001\.xml.*well-formed")
    xml.unlink()
    check_refused(root, "annotation is missing")
    xml.write_text(original)
    (root / "JPEGImages" / "000003.jpg").unlink()
    check_refused(root, "000003 is annotated but missing")
    with pytest.warns(LabelweaveWarning, match="000003"):
        assert list(read_dataset(root, on_error="skip").row_ids) == ["000001", "000002", "000004"]


# -- MS-COCO and Objects365 ------------------------------------------------------------------


def instances(files, labels, names=("cat", "dog", "zebra")):
    return {
        "images": [{"id": k + 10, "file_name": file} for k, file in enumerate(files)],
        "categories": [{"id": 3 * k + 1, "name": name} for k, name in enumerate(names)],
        "annotations": [
            {"image_id": k + 10, "category_id": 3 * names.index(name) + 1, "iscrowd": int(crowd)}
            for k, row in enumerate(labels)
            for name, crowd in row
        ],
    }


def put_coco(root):
    for part, labels in {
        "train2014": [[("dog", 0), ("dog", 0), ("cat", 1)], []],
        "val2014": [[("zebra", 0)]],
    }.items():
        files = [f"COCO_{part}_{k}.jpg" for k in range(len(labels))]
        for file in files:
            put_image(root / part / file)
        (root / "annotations").mkdir(exist_ok=True)
        text = json.dumps(instances(files, labels))
        (root / "annotations" / f"instances_{part}.json").write_text(text)
    return root


def test_coco(tmp_path):
    data = read_dataset(put_coco(tmp_path))
    assert data.Y.names == ("cat", "dog", "zebra")
    assert lists(data) == [{"dog", "cat"}, set(), {"zebra"}]
    assert list(data.part) == ["train", "train", "test"]
    assert data.row_ids[0] == "COCO_train2014_0.jpg"
    data.X.pixels()
    assert lists(read_dataset(tmp_path, crowd=False))[0] == {"dog"}
    assert len(read_dataset(tmp_path, keep_unlabelled=False)) == 2
    one = read_dataset(tmp_path / "annotations" / "instances_val2014.json")
    assert lists(one) == [{"zebra"}]
    assert one.part is None


def test_coco_refusals(tmp_path):
    put_coco(tmp_path)
    file = tmp_path / "annotations" / "instances_val2014.json"
    stored = json.loads(file.read_text())
    stray = {**stored, "annotations": [{"image_id": 99, "category_id": 1}]}
    file.write_text(json.dumps(stray))
    check_refused(tmp_path, "annotation 0 belongs to the image 99")
    file.write_text(json.dumps({"images": []}))
    check_refused(tmp_path, "'categories' is missing")
    file.write_text('{"images": [')
    check_refused(tmp_path, "not valid JSON")
    file.write_text(json.dumps(stored))
    (tmp_path / "train2014" / "COCO_train2014_1.jpg").unlink()
    check_refused(tmp_path, r"COCO_train2014_1\.jpg is annotated but missing")


def test_objects365(tmp_path):
    for part, labels in {"train": [[("dog", 0)], [("cat", 0)]], "val": [[("zebra", 0)]]}.items():
        names = [f"objects365_v1_{part}{k}.jpg" for k in range(len(labels))]
        for name in names:
            put_image(tmp_path / part / "patch0" / name)
        files = [f"images/v1/patch0/{name}" for name in names]
        (tmp_path / "annotations").mkdir(exist_ok=True)
        text = json.dumps(instances(files, labels))
        (tmp_path / "annotations" / f"zhiyuan_objv2_{part}.json").write_text(text)
    data = read_dataset(tmp_path)
    assert lists(data) == [{"dog"}, {"cat"}, {"zebra"}]
    assert list(data.part) == ["train", "train", "test"]
    data.X.pixels()


# -- NUS-WIDE ----------------------------------------------------------------------------------


def put_nus_wide(root):
    listed = {"Train": ["actor\\0001_11.jpg", "sky\\0002_12.jpg"], "Test": ["sky\\0003_13.jpg"]}
    columns = {"sky": {"Train": "01", "Test": "1"}, "actor": {"Train": "10", "Test": "1"}}
    for folder in ("ImageList", "Groundtruth/TrainTestLabels", "ConceptsList"):
        (root / folder).mkdir(parents=True)
    for which, names in listed.items():
        (root / "ImageList" / f"{which}Imagelist.txt").write_text("\n".join(names) + "\n")
        for name in names:
            put_image(root / "Flickr" / name.replace("\\", "/"))
        for concept, values in columns.items():
            file = root / "Groundtruth/TrainTestLabels" / f"Labels_{concept}_{which}.txt"
            file.write_text("\n".join(values[which]) + "\n")
    (root / "ConceptsList" / "Concepts81.txt").write_text("sky\nactor\n")
    return root


def test_nus_wide(tmp_path):
    data = read_dataset(put_nus_wide(tmp_path))
    assert data.Y.names == ("sky", "actor")
    assert lists(data) == [{"actor"}, {"sky"}, {"sky", "actor"}]
    assert list(data.part) == ["train", "train", "test"]
    data.X.pixels()
    file = tmp_path / "Groundtruth/TrainTestLabels" / "Labels_sky_Test.txt"
    file.write_text("1\n1\n")
    check_refused(tmp_path, "2 lines, but the list has 1")
    file.write_text("yes\n")
    check_refused(tmp_path, r"line 1: expected 0 or 1")


# -- MIRFLICKR ---------------------------------------------------------------------------------


def test_mirflickr(tmp_path):
    for number in (1, 2, 10):
        put_image(tmp_path / "mirflickr" / f"im{number}.jpg")
    (tmp_path / "annotations").mkdir()
    for name, numbers in {"animals": "1\n10\n", "animals_r1": "10\n", "sky": "2\n"}.items():
        (tmp_path / "annotations" / f"{name}.txt").write_text(numbers)
    (tmp_path / "annotations" / "README.txt").write_text("about")
    data = read_dataset(tmp_path)
    assert list(data.row_ids) == ["im1.jpg", "im2.jpg", "im10.jpg"]
    assert lists(data) == [{"animals"}, {"sky"}, {"animals", "animals_r1"}]
    assert read_dataset(tmp_path, annotated="potential").Y.names == ("animals", "sky")
    assert read_dataset(tmp_path, annotated="relevant").Y.names == ("animals_r1",)
    (tmp_path / "annotations" / "sky.txt").write_text("2\n77\n")
    check_refused(tmp_path, r"im77\.jpg is annotated but missing")
    (tmp_path / "annotations" / "sky.txt").write_text("two\n")
    check_refused(tmp_path, r"sky\.txt, line 1")


# -- a folder and a table --------------------------------------------------------------------


def put_folder(root):
    for k in range(4):
        put_image(root / "images" / f"{k}.png", 60 * k)
    rows = ["image,split,sea,sun", "0.png,train,1,0", "1.png,train,0,", "2.png,test,1,1"]
    (root / "labels.csv").write_text("\n".join([*rows, "3.png,test,0,0"]) + "\n")
    return root


@pytest.mark.parametrize("of", ["folder", "table"])
def test_a_folder_with_a_table(tmp_path, of):
    root = put_folder(tmp_path)
    data = read_dataset(root if of == "folder" else root / "labels.csv", size=8)
    assert data.Y.names == ("sea", "sun")
    expected = [[1, 0], [0, np.nan], [1, 1], [0, 0]]
    assert np.array_equal(data.Y.to_numpy(), expected, equal_nan=True)
    assert list(data.part) == ["train", "train", "test", "test"]
    assert list(data.row_ids) == ["0.png", "1.png", "2.png", "3.png"]
    assert data.X.pixels()[3, 0, 0].tolist() == [180, 0, 75]


def test_a_table_that_lists_names(tmp_path):
    root = put_folder(tmp_path)
    (root / "labels.csv").write_text("photo;tags\n0.png;sea|sun\n1.png;\n")
    assert lists(read_dataset(root)) == [{"sea", "sun"}, set()]
    (root / "labels.csv").write_text("where,tags\n0.png,sea\n1.png,sun\n")
    assert lists(read_dataset(root, format="images", image_column="where")) == [{"sea"}, {"sun"}]
    with pytest.raises(DataFileError, match="image_column"):
        read_dataset(root, format="images")


def test_images_without_a_table(tmp_path):
    for k in range(5):
        put_image(tmp_path / "deep" / f"{k}.jpg")
    check_refused(tmp_path, r"labels\.csv")
    data = read_dataset(tmp_path, require_labels=False)
    assert len(data) == 5
    assert data.Y.n_labels == 0
    batches = list(iter_batches(tmp_path, batch_rows=2, size=8))
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert batches[0].row_ids == ["deep/0.jpg", "deep/1.jpg"]
    assert batches[2].X.pixels().shape == (1, 8, 8, 3)


def test_a_broken_image_is_refused_or_left_out(tmp_path):
    root = put_folder(tmp_path)
    broken = root / "images" / "2.png"
    broken.write_bytes(broken.read_bytes()[:50])
    data = read_dataset(root)  # a broken image is found when it is needed
    with pytest.raises(DataFileError, match=r"2\.png"):
        data.X.pixels()
    (root / "images" / "1.png").unlink()
    check_refused(root, r"1\.png is annotated but missing")
    with pytest.warns(LabelweaveWarning, match=r"2 of 4 images are left out.*1\.png.*2\.png"):
        data = read_dataset(root, on_error="skip")
    assert list(data.row_ids) == ["0.png", "3.png"]
    data.X.pixels()
    with pytest.raises(InputError, match="on_error"):
        read_dataset(root, on_error="ignore")
    for path in (root / "images").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataFileError, match="none of the 4 images"):
        read_dataset(root, on_error="skip")


def test_a_folder_without_a_layout_is_refused(tmp_path):
    check_refused(tmp_path, "no known layout")
    put_folder(tmp_path)
    with pytest.raises(InputError, match="has no option 'colour'"):
        read_dataset(tmp_path, colour=True)
    (tmp_path / "more.csv").write_text("image,a\n0.png,1\n")
    assert len(read_dataset(tmp_path)) == 4  # labels.csv goes first
    (tmp_path / "labels.csv").rename(tmp_path / "other.csv")
    check_refused(tmp_path, "several tables")


def test_a_table_without_images_is_read_as_a_table(tmp_path):
    (tmp_path / "days.csv").write_text("degrees,sunny\n21.5,1\n14,0\n")
    assert read_dataset(tmp_path / "days.csv", labels=1).X.shape == (2, 1)
