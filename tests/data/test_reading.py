import numpy as np
import pytest

from labelweave.data.readers import FORMATS
from labelweave.data.readers.reader import RowChunk, rebatch
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError, InputError

CONTENT = {
    "arff": "% note\n@relation r\n@attribute a numeric\n@attribute y {0,1}\n@data\n1,1\n",
    "xc": "1 3 2\n0,1 0:1 2:5\n",
    "svmlight": "0,1 0:1 2:5\n",
    "jsonl": '{"text": "one", "labels": ["a"]}\n',
    "fasttext": "__label__a one\n",
    "table": "text,labels\none,a;b\n",
}


@pytest.mark.parametrize("format", CONTENT)
def test_the_format_is_recognised_by_the_content(tmp_path, format):
    path = tmp_path / "data"
    path.write_text(CONTENT[format])
    options = {"labels": 1} if format == "arff" else {}
    by_content = read_dataset(path, **options)
    by_name = read_dataset(path, format=format, **options)
    assert len(by_content) == len(by_name) == 1
    assert by_content.label_names == by_name.label_names


def test_a_file_of_no_known_format(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(DataFileError, match="no known format") as caught:
        read_dataset(path)
    assert all(name in str(caught.value) for name in FORMATS)
    path.write_bytes(b" \n")
    with pytest.raises(DataFileError, match="the file is empty"):
        read_dataset(path)


def test_unknown_format_and_option(tmp_path):
    path = tmp_path / "data.arff"
    path.write_text(CONTENT["arff"])
    with pytest.raises(InputError, match="no format 'xls'; the formats are arff"):
        read_dataset(path, format="xls")
    with pytest.raises(InputError, match="arff reader has no option 'colour'"):
        read_dataset(path, colour=3)
    with pytest.raises(InputError, match="arff reader has no option 'colour'"):
        list(iter_batches(path, colour=3))
    with pytest.raises(InputError, match="batch_rows"):
        list(iter_batches(path, batch_rows=0))


@pytest.mark.parametrize("sizes", [[3, 4, 5], [12], [1] * 12, [10, 1, 1], [0, 12]])
@pytest.mark.parametrize("batch_rows", [1, 4, 5, 12, 100])
def test_rebatch_keeps_all_rows_in_order(sizes, batch_rows):
    ends = np.cumsum(sizes)
    chunks = [
        RowChunk(np.arange(end - size, end)[:, None], row_ids=list(range(end - size, end)))
        for size, end in zip(sizes, ends, strict=True)
    ]
    batches = list(rebatch(chunks, batch_rows))
    assert [len(batch) for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)
    assert 0 < len(batches[-1]) <= batch_rows
    assert np.concatenate([batch.X for batch in batches]).ravel().tolist() == list(range(12))
    assert [i for batch in batches for i in batch.row_ids] == list(range(12))
