"""Coverage-guided fuzzing of the readers: python tests/fuzz/fuzz_readers.py --inputs 1000000.

Every kind of file has an equal share of the inputs, and a process of its own that starts from the
small valid file of the hypothesis tests. `--kind KIND` fuzzes one kind; further options go to
libFuzzer (a corpus folder, `-seed=1`, ...). An exception other than labelweave's own, a crash, an
input that takes more than 10 seconds or more than 2 GB is a finding: its input is kept in the
current folder, and the command ends with status 1. Needs the package `atheris`.
"""

import argparse
import bz2
import gzip
import lzma
import re
import resource
import subprocess
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

import zstandard

from labelweave.exceptions import LabelweaveError

sys.path.insert(0, str(Path(__file__).parents[1] / "data" / "readers"))
from test_fuzz import TOKENS, VALID

LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1")
PACKED = {
    "table-csv.gz": gzip.compress(VALID["table-csv"]),
    "table-csv.bz2": bz2.compress(VALID["table-csv"]),
    "table-csv.xz": lzma.compress(VALID["table-csv"]),
    "table-csv.zst": zstandard.compress(VALID["table-csv"]),
}
KINDS = {**VALID, **PACKED}


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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        (corpus / "valid").write_bytes(KINDS[kind])
        words = Path(folder) / "words"
        words.write_text("".join(f'"{_escaped(token)}"\n' for token in TOKENS))

        def read(content: bytes) -> None:
            path.write_bytes(content)
            with suppress(LabelweaveError):
                read_dataset(path, format=format, require_labels=False)
            with suppress(LabelweaveError):
                for _ in iter_batches(path, format=format):
                    pass
            with suppress(LabelweaveError):
                read_dataset(path, format=format, require_labels=False, encoding="cp1252")

        atheris.Setup([sys.argv[0], *options, f"-dict={words}", str(corpus)], read)
        atheris.Fuzz()


def _escaped(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
