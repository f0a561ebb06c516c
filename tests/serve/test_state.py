"""The database: schema, migrations, conflicts."""

import pytest
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
