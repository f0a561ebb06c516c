"""Label changes, verdicts, API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "label_changes",
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("model", sa.String(100), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("new_name", sa.Text),
        sa.Column("description", sa.Text),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("made_by", sa.String(100), nullable=False),
        sa.UniqueConstraint("model", "version", name="one_change_a_version"),
    )
    op.create_table(
        "verdicts",
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("queue", sa.String(100), nullable=False),
        sa.Column("row", sa.BigInteger, nullable=False),
        sa.Column("row_id", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("verdict", sa.String(10), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("made_by", sa.String(100), nullable=False),
        sa.UniqueConstraint("queue", "row", "row_id", "label", name="one_verdict_an_entry"),
    )
    op.create_index("verdicts_of_queue", "verdicts", ["queue"])
    op.create_table(
        "api_keys",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("api_keys")
    op.drop_table("verdicts")
    op.drop_table("label_changes")
