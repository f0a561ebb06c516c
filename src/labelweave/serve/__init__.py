"""The HTTP service: several models behind one address, and a page to try them on.

``labelweave serve MODEL...`` starts it; :func:`labelweave.serve.app.create_app` makes the same
application for a server of your own.
"""

from labelweave.exceptions import require

for _module in ("fastapi", "uvicorn", "sqlalchemy", "alembic", "prometheus_client"):
    require(_module, "serve")  # nothing below works without them: say so at once
