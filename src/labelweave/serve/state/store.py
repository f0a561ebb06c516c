"""Reading and writing the state."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Engine, delete, func, insert, select, text
from sqlalchemy.exc import IntegrityError

from labelweave.exceptions import InputError
from labelweave.serve.gate import key_hash
from labelweave.serve.state.tables import API_KEYS, LABEL_CHANGES, VERDICTS

__all__ = ["Change", "ConflictError", "Store"]

LEAST_KEY = 20  # characters


class Change(NamedTuple):
    """One change of a model's labels: "add", "remove" or "rename"."""

    kind: str
    name: str
    new_name: str | None = None
    description: str | None = None


class ConflictError(Exception):
    """Another replica has changed the labels in between."""


class Store:
    """The state behind a database engine; every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def is_alive(self) -> bool:
        """Whether the database answers."""
        with self.engine.connect() as connection:
            return connection.execute(text("SELECT 1")).scalar() == 1

    # -- labels ------------------------------------------------------------------------

    def changes(self, model: str, after: int = 0) -> list[tuple[int, Change]]:
        """Changes of a model's labels after a version, in order."""
        table = LABEL_CHANGES.c
        query = (
            select(table.version, table.kind, table.name, table.new_name, table.description)
            .where(table.model == model, table.version > after)
            .order_by(table.version)
        )
        with self.engine.connect() as connection:
            return [(row[0], Change(*row[1:])) for row in connection.execute(query)]

    def versions(self) -> dict[str, int]:
        """The last version of each model that was ever changed."""
        table = LABEL_CHANGES.c
        query = select(table.model, func.max(table.version)).group_by(table.model)
        with self.engine.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def add_changes(self, model: str, after: int, changes: Sequence[Change], by: str) -> int:
        """Write changes that follow a version, all or none, and return the new version."""
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
        """Verdicts of a queue by row, name of the row and label."""
        table = VERDICTS.c
        query = select(table.row, table.row_id, table.label, table.verdict)
        with self.engine.connect() as connection:
            found = connection.execute(query.where(table.queue == queue))
            return {(row, row_id, label): verdict for row, row_id, label, verdict in found}

    def set_verdict(
        self, queue: str, entry: tuple[int, str, str], verdict: str | None, by: str
    ) -> None:
        """Keep a verdict in place of the one before; None takes it back."""
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
                        more = {"verdict": verdict, "made_at": datetime.now(UTC)}
                        connection.execute(insert(VERDICTS).values(new | more))
                return
            except IntegrityError:  # two reviewers at the same moment: the later one counts
                if attempt == 2:
                    raise

    # -- keys --------------------------------------------------------------------------

    def key_hashes(self) -> dict[str, str]:
        """Hash of each key, by its name."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(API_KEYS.c.name, API_KEYS.c.hash))
            return {row.name: row.hash for row in rows}

    def add_key(self, name: str, key: str | None = None) -> str:
        """Make a key, or keep the hash of the one given; the key itself is not kept."""
        if not name or len(name) > 100 or not name.isprintable():
            raise InputError("the name of a key is 1 to 100 printable characters")
        key = key or secrets.token_urlsafe(32)
        if len(key) < LEAST_KEY or not key.isascii() or not key.isprintable() or " " in key:
            raise InputError(f"a key is at least {LEAST_KEY} ASCII characters without blanks")
        row = {"name": name, "hash": key_hash(key), "made_at": datetime.now(UTC)}
        try:
            with self.engine.begin() as connection:
                connection.execute(insert(API_KEYS), [row])
        except IntegrityError:
            raise InputError(f"there is a key {name!r} already: revoke it first") from None
        return key

    def revoke_key(self, name: str) -> None:
        """Forget a key."""
        with self.engine.begin() as connection:
            gone = connection.execute(delete(API_KEYS).where(API_KEYS.c.name == name)).rowcount
        if not gone:
            raise InputError(f"there is no key {name!r}")
