"""Services of small models, on SQLite and, where it is installed, on Debian's PostgreSQL."""

import os
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs labelweave[serve]")
pytest.importorskip("sqlalchemy", reason="needs labelweave[serve]")

import numpy as np
from serving import running, use_fakes

import labelweave as lw
from labelweave.data.dataset import Dataset


@pytest.fixture
def sqlite(tmp_path):
    return f"sqlite:///{tmp_path / 'state.sqlite'}"


@pytest.fixture
def running_fake(monkeypatch, sqlite):
    """Run a service of the fake zero-shot model under the name tags; options go to `running`."""
    use_fakes(monkeypatch)
    return partial(running, {"tags": "nowhere"}, database=sqlite)


@pytest.fixture
def fake(running_fake):
    with running_fake() as served:
        yield served


@pytest.fixture(scope="session")
def vectors_folder(tmp_path_factory):
    """A saved model of three features with names."""
    rng = np.random.default_rng(0)
    X = rng.random((120, 3))
    import pandas as pd

    frame = pd.DataFrame(X, columns=["f1", "f2", "f3"])
    model = lw.make("mlknn", k=3).fit(
        frame, pd.DataFrame(X > 0.5, columns=["red", "blue", "round"])
    )
    folder = tmp_path_factory.mktemp("models") / "shapes"
    model.save(folder)
    return folder


@pytest.fixture(scope="session")
def texts_folder(tmp_path_factory):
    """A saved model of texts."""
    from labelweave.text import TextClassifier

    texts = ["sun and sea", "deep sea", "hot sun", "old sea"] * 5
    data = Dataset(texts, [["sea", "sun"], ["sea"], ["sun"], ["sea"]] * 5)
    folder = tmp_path_factory.mktemp("models") / "news"
    TextClassifier().fit(data.X, data.Y).save(folder)
    return folder


@pytest.fixture
def real(sqlite, vectors_folder, texts_folder):
    """A service of both saved models."""
    with running({"shapes": vectors_folder, "news": texts_folder}, database=sqlite) as served:
        yield served


def _postgres_programs():
    candidates = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")))
    program = candidates[-1] if candidates else shutil.which("initdb")
    return None if program is None else Path(program).parent


@pytest.fixture(scope="session")
def postgres():
    """The URL of a PostgreSQL that runs for these tests; skipped where none is installed."""
    pytest.importorskip("psycopg", reason="needs labelweave[serve]")
    programs = _postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    as_user = []
    # A folder of its own: those of pytest are closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="labelweave-postgres-"))
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL cannot be started by root without runuser")
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    data = folder / "data"

    def program(name, *arguments):
        command = [*as_user, str(programs / name), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd="/")

    program("initdb", "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync")
    options = f"-c listen_addresses= -c unix_socket_directories={folder}"
    program("pg_ctl", "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
    yield f"postgresql://postgres@/postgres?host={folder}"
    program("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request):
    """An empty database, of both kinds."""
    url = request.getfixturevalue(request.param)
    if request.param == "postgres":
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
    return url
