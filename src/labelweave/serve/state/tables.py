"""The tables."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

__all__ = ["API_KEYS", "LABEL_CHANGES", "METADATA", "VERDICTS"]

METADATA = MetaData()
_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up INTEGER alone

# The log of each model's labels. `version` counts from 1 within a model: of two replicas that
# write the same one, the second is refused by the constraint.
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
