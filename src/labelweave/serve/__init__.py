"""The HTTP service: several models at one address, and a web page to try them on.

``labelweave serve MODEL...`` starts it. :func:`labelweave.serve.app.create_app` returns the same
application for use with another ASGI server.
"""

from labelweave.exceptions import require

# Name the missing extra at once: no module of this package works without these.
for _module in ("fastapi", "uvicorn", "sqlalchemy", "alembic", "prometheus_client"):
    require(_module, "serve")
