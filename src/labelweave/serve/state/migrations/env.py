"""How alembic runs the migrations: on the connection of its configuration."""

from alembic import context

from labelweave.serve.state.database import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,  # SQLite cannot alter a column in place
)
with context.begin_transaction():
    context.run_migrations()
