"""The database: its tables, connecting to it, and upgrading its schema."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    DateTime,
    Engine,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from labelweave.exceptions import InputError, require

__all__ = ["API_KEYS", "LABEL_CHANGES", "METADATA", "VERDICTS", "open_database"]

_MIGRATION_LOCK = 7_236_518_204  # an arbitrary number that no other program uses
_MIGRATION_SECONDS = 30.0  # in which processes that start together have a SQLite file to themselves

METADATA = MetaData()
# SQLite generates numbers for columns of the type INTEGER only.
_NUMBER = BigInteger().with_variant(Integer, "sqlite")

# The changes of each model's labels. `version` counts from 1 per model; the constraint refuses
# the second of two replicas that write the same version.
LABEL_CHANGES = Table(
    "label_changes",
    METADATA,
    Column("id", _NUMBER, primary_key=True),
    Column("model", String(100), nullable=False),
    Column("version", Integer, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("name", Text, nullable=False),
    Column("new_name", Text),
    Column("description", Text),
    Column("made_at", DateTime(timezone=True), nullable=False),
    Column("made_by", String(100), nullable=False),
    UniqueConstraint("model", "version", name="one_change_a_version"),
)

VERDICTS = Table(
    "verdicts",
    METADATA,
    Column("id", _NUMBER, primary_key=True),
    Column("queue", String(100), nullable=False),
    Column("row", BigInteger, nullable=False),
    Column("row_id", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("verdict", String(10), nullable=False),
    Column("made_at", DateTime(timezone=True), nullable=False),
    Column("made_by", String(100), nullable=False),
    UniqueConstraint("queue", "row", "row_id", "label", name="one_verdict_an_entry"),
    Index("verdicts_of_queue", "queue"),
)

API_KEYS = Table(
    "api_keys",
    METADATA,
    Column("name", String(100), primary_key=True),
    Column("hash", String(64), nullable=False),
    Column("made_at", DateTime(timezone=True), nullable=False),
)


def open_database(url: str) -> Engine:
    """Connect to a database and upgrade its schema if necessary.

    * `url`: ``sqlite:///FILE`` or ``postgresql+psycopg://USER:PASSWORD@HOST/NAME``.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InputError(
            "the database URL cannot be read: write sqlite:///FILE or postgresql+psycopg://..."
        ) from None
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        require("psycopg", "serve")
        parsed = parsed.set(drivername="postgresql+psycopg")
    elif kind != "sqlite":
        raise InputError(f"the database must be SQLite or PostgreSQL, not {kind}")
    if kind == "postgresql":
        engine = create_engine(parsed, pool_pre_ping=True)
    else:
        # Each transaction opens the file: one that is damaged or moved is noticed at once, and one
        # that is put back is used again.
        engine = create_engine(parsed, poolclass=NullPool)
        event.listen(engine, "connect", _set_up_sqlite)
    try:
        _migrate(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        raise InputError(f"the database cannot be used: {reason}") from None
    return engine


def _set_up_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 10000")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # acknowledged changes survive a power failure
    cursor.close()


def _migrate(engine: Engine) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    folder = resources.files("labelweave.serve.state").joinpath("migrations")
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    with _alone(engine) as connection:
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise InputError(
                f"the database was written by another version of labelweave ({error})"
            ) from None


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """Connect for a migration: processes that start together migrate one after the other."""
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _MIGRATION_LOCK})
            yield connection
        return
    with _connect_and_lock(engine) as connection:
        yield connection
        connection.exec_driver_sql("COMMIT")  # without it, closing rolls back


def _connect_and_lock(engine: Engine) -> Connection:
    """Connect to a SQLite file and lock it for writing.

    SQLite's own waiting does not cover the change of a new file to write-ahead logging.
    """
    deadline = time.monotonic() + _MIGRATION_SECONDS
    while True:
        try:
            connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return connection
        except OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
