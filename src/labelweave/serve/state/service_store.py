"""Reading and writing the label changes, review verdicts and API keys."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Engine, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from labelweave.exceptions import InputError
from labelweave.serve.state.database import API_KEYS, LABEL_CHANGES, VERDICTS

__all__ = ["MIN_KEY_LENGTH", "Change", "ConflictError", "Store", "key_hash"]

MIN_KEY_LENGTH = 20


def key_hash(key: str) -> str:
    """Return the SHA-256 of an API key; keys are random, so a hash without salt is safe."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class Change(NamedTuple):
    """One change of a model's labels, of the kind "add", "remove" or "rename"."""

    kind: str
    name: str
    new_name: str | None = None
    description: str | None = None


class ConflictError(Exception):
    """Another replica has changed the labels at the same time."""


class Store:
    """The state of the service in a database; every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def is_alive(self) -> bool:
        """Return True if a table can be read; raise the error of the database if it cannot."""
        with self.engine.connect() as connection:
            connection.execute(select(API_KEYS.c.name).limit(1)).all()
        return True

    # -- labels ------------------------------------------------------------------------

    def changes(self, model: str, after: int = 0) -> list[tuple[int, Change]]:
        """Return the changes of a model's labels after a version, in order."""
        table = LABEL_CHANGES.c
        query = (
            select(table.version, table.kind, table.name, table.new_name, table.description)
            .where(table.model == model, table.version > after)
            .order_by(table.version)
        )
        with self.engine.connect() as connection:
            return [(row[0], Change(*row[1:])) for row in connection.execute(query)]

    def versions(self) -> dict[str, int]:
        """Return the latest version of each model whose labels were ever changed."""
        table = LABEL_CHANGES.c
        query = select(table.model, func.max(table.version)).group_by(table.model)
        with self.engine.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def add_changes(self, model: str, after: int, changes: Sequence[Change], by: str) -> int:
        """Store changes that follow a version, all or none, and return the new version."""
        now = datetime.now(UTC)
        rows = [
            {"model": model, "version": after + k, "made_at": now, "made_by": by} | change._asdict()
            for k, change in enumerate(changes, start=1)
        ]
        try:
            with self.engine.begin() as connection:
                connection.execute(insert(LABEL_CHANGES), rows)
        except IntegrityError:
            raise ConflictError from None
        return after + len(rows)

    # -- reviews -----------------------------------------------------------------------

    def verdicts(self, queue: str) -> dict[tuple[int, str, str], str]:
        """Return the verdicts of a queue by row, id of the row and label."""
        table = VERDICTS.c
        query = select(table.row, table.row_id, table.label, table.verdict)
        with self.engine.connect() as connection:
            rows = connection.execute(query.where(table.queue == queue))
            return {(row, row_id, label): verdict for row, row_id, label, verdict in rows}

    def set_verdict(
        self, queue: str, entry: tuple[int, str, str], verdict: str | None, by: str
    ) -> None:
        """Store a verdict in place of the previous one; None withdraws it."""
        row, row_id, label = entry
        table = VERDICTS.c
        old = delete(VERDICTS).where(
            table.queue == queue,
            table.row == row,
            table.row_id == row_id,
            table.label == label,
        )
        new = {"queue": queue, "row": row, "row_id": row_id, "label": label, "made_by": by}
        for attempt in (1, 2):
            try:
                with self.engine.begin() as connection:
                    connection.execute(old)
                    if verdict is not None:
                        new |= {"verdict": verdict, "made_at": datetime.now(UTC)}
                        connection.execute(insert(VERDICTS).values(new))
                return
            except IntegrityError:  # two reviewers at the same time: the later verdict counts
                if attempt == 2:
                    raise

    # -- keys --------------------------------------------------------------------------

    def key_hashes(self) -> dict[str, str]:
        """Return the hashes of the keys by name."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(API_KEYS.c.name, API_KEYS.c.hash))
            return {row.name: row.hash for row in rows}

    def add_key(self, name: str, key: str | None = None) -> str:
        """Store the hash of a key, and return the key; a random one is generated by default."""
        if not name or len(name) > 100 or not name.isprintable():
            raise InputError("the name of a key must have 1 to 100 printable characters")
        key = key or secrets.token_urlsafe(32)
        if len(key) < MIN_KEY_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
            raise InputError(
                f"a key must have at least {MIN_KEY_LENGTH} ASCII characters and no blanks"
            )
        row = {"name": name, "hash": key_hash(key), "made_at": datetime.now(UTC)}
        try:
            with self.engine.begin() as connection:
                connection.execute(insert(API_KEYS), [row])
        except IntegrityError:
            raise InputError(f"there already is a key {name!r}: revoke it first") from None
        return key

    def revoke_key(self, name: str) -> None:
        """Delete a key."""
        with self.engine.begin() as connection:
            query = delete(API_KEYS).where(API_KEYS.c.name == name)
            n_deleted = connection.execute(query).rowcount
        if not n_deleted:
            raise InputError(f"there is no key {name!r}")
