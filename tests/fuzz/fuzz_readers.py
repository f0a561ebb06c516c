"""Coverage-guided fuzzing of the readers: python tests/fuzz/fuzz_readers.py --inputs 1000000.

Every kind of file has an equal share of the inputs, and a process of its own that starts from the
small valid file of the hypothesis tests. Workbooks are also changed inside their archive, whose
checksums would catch most changes; tables and JSON arrays are also read in blocks of a few bytes,
and several files together. `--kind KIND` fuzzes one kind; further options go to libFuzzer (a corpus
folder, `-seed=1`, ...). An exception other than labelweave's own, a crash, an input that takes more
than 10 seconds or more than 2 GB is a finding: its input is kept in the current folder, and the
command ends with status 1. The seconds are those of the clock: a busy machine needs `-timeout=300`.
Needs the package `atheris`.
"""

import argparse
import bz2
import gzip
import io
import lzma
import re
import resource
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import atheris

with atheris.instrument_imports(include=["labelweave.data"]):
    from labelweave.data import json_arrays
    from labelweave.data.readers import FORMATS, get_reader
    from labelweave.data.readers._table import csv_parquet
    from labelweave.data.reading import iter_batches, read_dataset

    for format in FORMATS:
        get_reader(format)

import zstandard

from labelweave.exceptions import LabelweaveError

sys.path.insert(0, str(Path(__file__).parents[1] / "data" / "readers"))
from test_fuzz import TOKENS, VALID

LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=8192", "-print_final_stats=1")
SHEET = "xl/worksheets/sheet1.xml"
TYPES = (b"\tinlineStr\t", b"\tn\t", b"\td\t", b"\tb\t", b"\te\t", b"\ts\t", b"\tstr\t", b"\n\n")
CELLS = (
    b"A1\tinlineStr\tid\nB1\tinlineStr\ta\nC1\tinlineStr\tlabels\n\nA2\tstr\tr1\nB2\tn\t1.5\n"
    b"C2\tinlineStr\tx;y\n\nA3\td\t2020-01-01T00:00:00\nB3\tb\t1\nC3\te\t#N/A\n\nB4\tn\t-2e300"
)
EXCEL = "http://schemas.openxmlformats.org/spreadsheetml/2006"
_CONTROL = re.compile("[\x00-\x1f]")  # not allowed in XML
BETWEEN = b"\f"  # the parts of an input of several files


@dataclass(frozen=True)
class Kind:
    """A valid input, the files that are made of an input, and how they are read."""

    valid: bytes
    files: Callable[[bytes], list[bytes]] = lambda content: [content]
    in_small_blocks: bool = False


def _several(content: bytes) -> list[bytes]:
    return content.split(BETWEEN, 3)


def _workbook(content: bytes) -> list[bytes]:
    """A workbook of these cells (a line each: place, type, value), which is always valid XML."""
    sheet = ElementTree.Element("worksheet", xmlns=f"{EXCEL}/main")
    data = ElementTree.SubElement(sheet, "sheetData")
    for row in content.decode("latin-1").split("\n\n"):
        line = ElementTree.SubElement(data, "row")
        for cell in filter(None, row.split("\n")):
            place, kind, value = (*cell.split("\t", 2), "", "")[:3]
            part = ElementTree.SubElement(line, "c", _allowed({"r": place, "t": kind}))
            if kind == "inlineStr":
                part = ElementTree.SubElement(part, "is")
            name = "t" if kind == "inlineStr" else "v"
            ElementTree.SubElement(part, name).text = _CONTROL.sub("", value)
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(VALID["table-xlsx"])) as old,
        zipfile.ZipFile(file, "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, ElementTree.tostring(sheet) if name == SHEET else old.read(name))
    return [file.getvalue()]


def _allowed(attributes: dict[str, str]) -> dict[str, str]:
    values = {name: _CONTROL.sub("", value) for name, value in attributes.items()}
    return {name: value for name, value in values.items() if value}


CSV, LINES = VALID["table-csv"], VALID["jsonl"]
KINDS = {
    **{name: Kind(content) for name, content in VALID.items()},
    "table-csv.gz": Kind(gzip.compress(CSV)),
    "table-csv.bz2": Kind(bz2.compress(CSV)),
    "table-csv.xz": Kind(lzma.compress(CSV)),
    "table-csv.zst": Kind(zstandard.compress(CSV)),
    "table-cells.xlsx": Kind(CELLS, _workbook),
    "table-blocks": Kind(VALID["table-index.csv"] * 3, in_small_blocks=True),
    "jsonl-blocks": Kind(VALID["jsonl-array"], in_small_blocks=True),
    "table-several": Kind(CSV + BETWEEN + CSV, _several),
    "jsonl-several": Kind(LINES + BETWEEN + VALID["jsonl-array"], _several),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--inputs", type=int, default=100_000)
    arguments, options = parser.parse_known_args()
    if arguments.kind is not None:
        fuzz(arguments.kind, [f"-runs={arguments.inputs}", *LIMITS, *options])
        return
    total, failed = 0, []
    print(f"{'kind':<16}{'inputs':>10}{'CPU s':>8}{'slowest s':>11}{'peak MB':>9}  finding")
    for kind in KINDS:
        share = [f"--inputs={arguments.inputs // len(KINDS)}", f"-artifact_prefix={kind}-"]
        before = _cpu_seconds()
        run = subprocess.run(
            [sys.executable, __file__, "--kind", kind, *share, *options],
            stderr=subprocess.PIPE,
            errors="replace",
        )
        n_inputs, slowest, peak = (
            int(match[1]) if (match := re.search(rf"stat::{name}:\s+(\d+)", run.stderr)) else 0
            for name in ("number_of_executed_units", "slowest_unit_time_sec", "peak_rss_mb")
        )
        kept = re.search(r"Test unit written to (\S+)", run.stderr)
        finding = kept[1] if kept else f"status {run.returncode}" if run.returncode else ""
        total += n_inputs
        seconds = _cpu_seconds() - before
        print(
            f"{kind:<16}{n_inputs:>10}{seconds:>8.0f}{slowest:>11}{peak:>9}  {finding}", flush=True
        )
        if finding:
            failed.append(kind)
            print(run.stderr[-4000:], file=sys.stderr)
    print(f"{total} inputs, findings in {len(failed)} of {len(KINDS)} kinds")
    sys.exit(bool(failed))


def fuzz(kind: str, options: list[str]) -> None:
    """Run libFuzzer on one kind of file; ends the process."""
    warnings.simplefilter("ignore")
    format = kind.partition("-")[0]
    chosen = KINDS[kind]
    if chosen.in_small_blocks:
        csv_parquet._block_bytes = lambda n_columns: 40
        csv_parquet._SAMPLE_BYTES = 40
        csv_parquet.CHUNK_ROWS = 2
        json_arrays._BLOCK_BYTES = 8
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        (corpus / "valid").write_bytes(chosen.valid)
        words = Path(folder) / "words"
        words.write_text("".join(f'"{_escaped(token)}"\n' for token in (*TOKENS, *TYPES, BETWEEN)))

        def read(content: bytes) -> None:
            paths = []
            for number, part in enumerate(chosen.files(content)):
                paths.append(Path(folder) / f"data{number}")
                paths[-1].write_bytes(part)
            with suppress(LabelweaveError):
                read_dataset(paths, format=format, require_labels=False)
            with suppress(LabelweaveError):
                for _ in iter_batches(paths, format=format):
                    pass
            with suppress(LabelweaveError):
                read_dataset(paths, format=format, require_labels=False, encoding="cp1252")

        atheris.Setup([sys.argv[0], *options, f"-dict={words}", str(corpus)], read)
        atheris.Fuzz()


def _escaped(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
