"""The HTTP service: several models at one address, and a web page to try them on.

``labelweave serve MODEL...`` starts it. :func:`labelweave.serve.app.create_app` returns the same
application for use with another ASGI server.
"""

from importlib.util import find_spec

from labelweave.exceptions import require

# Name the missing extra at once. They are not imported here: the process of a model needs none.
for _module in ("fastapi", "uvicorn", "sqlalchemy", "alembic", "prometheus_client"):
    if find_spec(_module) is None:
        require(_module, "serve")
