"""The database: connections, and the schema brought up to date."""

from __future__ import annotations

from importlib import resources
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from labelweave.exceptions import InputError, require

__all__ = ["open_database"]

_MIGRATION_LOCK = 7_236_518_204  # any number that no other program takes


def open_database(url: str) -> Engine:
    """Connect and bring the schema up to date.

    Parameters
    ----------
    url : str
        ``sqlite:///FILE`` or ``postgresql+psycopg://USER:PASSWORD@HOST/NAME``.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InputError(
            "the database URL cannot be read: give sqlite:///FILE or postgresql+psycopg://..."
        ) from None
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        require("psycopg", "serve")
        parsed = parsed.set(drivername="postgresql+psycopg")
    elif kind != "sqlite":
        raise InputError(f"the database must be SQLite or PostgreSQL, not {kind}")
    engine = create_engine(parsed, pool_pre_ping=kind == "postgresql")
    if kind == "sqlite":
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
    cursor.execute("PRAGMA synchronous = FULL")  # what was acknowledged outlives a power cut
    cursor.close()


def _migrate(engine: Engine) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    folder = resources.files("labelweave.serve").joinpath("migrations")
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    with engine.begin() as connection:
        _lock(connection)
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise InputError(
                f"the database was written by another version of labelweave ({error})"
            ) from None


def _lock(connection: Connection) -> None:
    """Of replicas that start together, one migrates and the others wait for it."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _MIGRATION_LOCK})
