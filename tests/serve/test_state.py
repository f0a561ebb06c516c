"""The database: schema, migrations, conflicts."""

import subprocess
import sys

import pytest
from serving import check_problem, wait_until
from sqlalchemy import inspect, text

from labelweave.exceptions import InputError
from labelweave.serve.state.database import METADATA, open_database
from labelweave.serve.state.service_store import Change, ConflictError, Store


def test_migrations_make_exactly_the_tables_of_the_code(database):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = open_database(database)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    assert {"label_changes", "verdicts", "api_keys"} <= set(inspect(engine).get_table_names())
    engine.dispose()
    open_database(database).dispose()  # once more changes nothing


def test_of_two_writers_of_one_version_the_second_is_refused(database):
    one, two = Store(open_database(database)), Store(open_database(database))
    assert one.add_changes("m", 0, [Change("add", "a"), Change("add", "b")], "x") == 2
    with pytest.raises(ConflictError):
        two.add_changes("m", 0, [Change("add", "c")], "y")
    with pytest.raises(ConflictError):
        two.add_changes("m", 1, [Change("add", "c"), Change("add", "d")], "y")
    assert [change.name for _, change in two.changes("m")] == ["a", "b"]
    assert two.changes("m", 1) == [(2, Change("add", "b"))]
    assert two.versions() == {"m": 2}
    for store in (one, two):
        store.engine.dispose()


def test_sqlite_writes_ahead(sqlite):
    engine = open_database(sqlite)
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
    engine.dispose()


def test_keys(database):
    store = Store(open_database(database))
    key = store.add_key("a")
    assert len(key) > 40
    for name, secret in (
        ("a", None),
        ("", None),
        ("b", "short"),
        ("c", "with blanks in between it"),
    ):
        with pytest.raises(InputError):
            store.add_key(name, secret)
    with pytest.raises(InputError, match="no key"):
        store.revoke_key("b")
    store.engine.dispose()


def test_a_database_of_another_version_or_kind_is_refused(sqlite, tmp_path):
    engine = open_database(sqlite)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(InputError, match="another version"):
        open_database(sqlite)
    for url, words in (
        ("mysql://x/y", "SQLite or PostgreSQL"),
        ("nonsense", "cannot be read"),
        (f"sqlite:///{tmp_path}/none/state.sqlite", "cannot be used"),
    ):
        with pytest.raises(InputError, match=words):
            open_database(url)


OPEN = """
import sys
from labelweave.serve.state.database import open_database
print("ready", flush=True)
for url in sys.argv[1:]:
    sys.stdin.readline()
    open_database(url).dispose()
    print("open", flush=True)
"""


def test_processes_that_start_together_on_a_new_file_all_start(tmp_path):
    urls = [f"sqlite:///{tmp_path / f'{i}.sqlite'}" for i in range(8)]
    command = [sys.executable, "-c", OPEN, *urls]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)
    ]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
    for _ in urls:
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            assert process.stdout.readline() == "open\n", process.communicate()[1]
    for process in processes:
        process.communicate()


def test_readiness_follows_the_database(fake, tmp_path):
    state, kept = tmp_path / "state.sqlite", tmp_path / "kept.sqlite"
    assert fake.open.get("/v1/health/ready").status_code == 200
    state.rename(kept)
    state.write_bytes(b"this is no database" * 1000)
    check_problem(fake.open.get("/v1/health/ready"), 503, "database")
    labels = "/v1/models/tags/labels"
    check_problem(fake.client.post(labels, json={"labels": [{"name": "rain"}]}), 503, "database")
    for path in tmp_path.glob("state.sqlite*"):
        path.unlink()
    kept.rename(state)
    wait_until(lambda: fake.open.get("/v1/health/ready").status_code == 200)
    assert fake.client.post(labels, json={"labels": [{"name": "rain"}]}).json()["labels"] == 3
