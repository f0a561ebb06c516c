"""Small data files, a quick model, and the commands run in a folder of their own."""

import pytest
from cli_data import make_rows, write_csv
from click.testing import CliRunner

from labelweave.cli.main import main


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(workdir):
    """Run `labelweave ...` here; a status other than the expected one fails the test."""

    def run(*arguments, status=0, **options):
        result = CliRunner().invoke(main, [str(a) for a in arguments], **options)
        assert result.exit_code == status, result.output + repr(result.exception)
        if status:
            assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def csv_file(workdir):
    """shapes.csv: 120 rows, features f1 to f3, labels red, blue, round."""
    return write_csv(workdir / "shapes.csv", *make_rows(120))


@pytest.fixture
def model(run, csv_file):
    """The folder of an MLkNN model trained on shapes.csv."""
    run("train", csv_file, "--labels", 3, "-m", "mlknn", "--set", "k=3", "--out", "model", "-q")
    return "model"


@pytest.fixture
def text_file(workdir):
    """news.jsonl: 60 short texts that name their labels."""
    rows = [
        '{"id": "a%d", "text": "the sea is blue n%d", "labels": ["sea"]}',
        '{"id": "b%d", "text": "a hot sun n%d", "labels": ["sun"]}',
        '{"id": "c%d", "text": "hot sun over the blue sea n%d", "labels": ["sea", "sun"]}',
    ]
    path = workdir / "news.jsonl"
    path.write_text("\n".join(row.replace("%d", str(i)) for i in range(20) for row in rows) + "\n")
    return path
