import pytest

from labelweave.data.readers.fasttext import read_fasttext
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError, InputError

FILE = "notes.txt"

FASTTEXT = "__label__sea __label__sun a  beach\n\nno label\nlate one __label__sea\n"


def test_fasttext(write):
    data = read_dataset(write(FASTTEXT))
    assert data.X == ["a beach", "no label", "late one"]
    assert data.Y.to_lists() == [["sea", "sun"], [], ["sea"]]
    other = read_fasttext(write("#a x\n#b #a y\n"), label_prefix="#")
    assert other.Y.to_lists() == [["a"], ["a", "b"]]


def test_fasttext_mistakes(write):
    with pytest.raises(DataFileError, match="no line has a word that begins with __label__"):
        read_dataset(write("just text\n"))
    with pytest.raises(DataFileError, match="line 2: there is no name after __label__"):
        read_fasttext(write("__label__a x\n__label__ y\n"))
    with pytest.raises(DataFileError, match="no rows"):
        read_fasttext(write("\n\n"))
    with pytest.raises(DataFileError, match="line 1: the label 'a' is not among the 1"):
        read_fasttext(write("__label__a x\n"), labels=["b"])
    with pytest.raises(InputError, match="label_prefix="):
        read_fasttext(write("a\n"), label_prefix="")
    with pytest.raises(InputError, match="labels= must be the list"):
        read_fasttext(write("__label__a x\n"), labels=3)


def test_fasttext_batches_of_plain_texts(write):
    lines = "".join(f"text {i}\n" for i in range(2500))
    batches = list(iter_batches(write(lines), batch_rows=1000))
    assert [len(batch) for batch in batches] == [1000, 1000, 500]
    assert batches[2].X[-1] == "text 2499"
