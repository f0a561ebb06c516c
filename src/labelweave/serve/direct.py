"""Routes without FastAPI's handling of requests, for the addresses that carry the load."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

__all__ = ["DirectRoute"]


class DirectRoute(NamedTuple):
    """Of an address with one ``{model}`` in it, answered from the bytes of a request.

    Attributes
    ----------
    path : str
        Such as ``"/v1/models/{model}/predict"``.
    answer : callable
        From the model's name, the content type and the body to the bytes of a JSON answer.

    Examples
    --------
    >>> route = DirectRoute("/v1/models/{model}/predict", lambda *_: None)
    >>> route.model_of("/v1/models/yeast/predict")
    'yeast'
    >>> route.model_of("/v1/models/yeast/labels"), route.model_of("/v1/models/a/b/predict")
    (None, None)
    """

    path: str
    answer: Callable[[str, bytes, bytes], Awaitable[bytes]]

    def model_of(self, path: str) -> str | None:
        """The model's name in an address; None if the address is another one."""
        before, _, after = self.path.partition("{model}")
        if not (path.startswith(before) and path.endswith(after)):
            return None
        name = path[len(before) : -len(after)]
        return None if "/" in name else name
