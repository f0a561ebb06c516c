"""Coverage-guided fuzzing of the readers: python tests/fuzz/fuzz_readers.py FORMAT [options].

Needs the package `atheris`, takes the options of libFuzzer (`-max_total_time=60`, a corpus
folder, ...) and starts from the small valid files of the hypothesis tests. An exception other
than labelweave's own is a finding.
"""

import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["labelweave.data"]):
    from labelweave.data.readers import FORMATS, get_reader
    from labelweave.data.reading import iter_batches, read_dataset

    for format in FORMATS:
        get_reader(format)

from labelweave.exceptions import LabelweaveError

sys.path.insert(0, str(Path(__file__).parents[1] / "data" / "readers"))
from test_fuzz import VALID


def main() -> None:
    format = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if format not in FORMATS:
        sys.exit(f"usage: fuzz_readers.py {{{','.join(FORMATS)}}} [libFuzzer options]")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for name, content in VALID.items():
            if name.partition("-")[0] == format and name != "table-parquet":
                (corpus / name).write_bytes(content)

        def read(content: bytes) -> None:
            path.write_bytes(content)
            with suppress(LabelweaveError):
                read_dataset(path, format=format, require_labels=False)
            with suppress(LabelweaveError):
                for _ in iter_batches(path, format=format):
                    pass

        atheris.Setup([*sys.argv, str(corpus)], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
