"""What can be set of the service."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from labelweave.exceptions import InputError

__all__ = ["Settings", "is_loopback"]

MEGABYTE = 2**20


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Settings:
    """Address, limits and safety; the defaults are those of ``labelweave serve``.

    Parameters
    ----------
    host, port
        Where the service listens. Beyond loopback every request needs a key.
    database : str
        URL of the state: a SQLite file, or ``postgresql+psycopg://...`` for several replicas.
    require_key : bool
        Ask for a key on loopback too, for reading as well: behind a proxy, say.
    allowed_hosts : tuple of str
        Host names that a request without a key may use, beside those of loopback. This keeps
        web pages of other sites from asking the service through a name of theirs.
    allowed_origins : tuple of str
        Origins whose pages may call the API (CORS); none by default.
    max_body, max_bytes_in_flight : int
        Bytes of one request, and of all that are being answered.
    max_rows, max_text, max_pixels : int
        Inputs of a request, characters of a text, pixels of an image.
    max_batch, max_wait, max_queue
        Rows predicted together, seconds to wait for more of them, requests that may wait.
    rate, burst : float
        Requests a second and at once of one client; a rate of 0 does not limit.
    body_timeout : float
        Seconds in which a request must have arrived.
    poll : float
        Seconds between two looks at what other replicas have changed.
    threads : int
        Threads of one prediction.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    database: str = "sqlite:///labelweave-serve.sqlite"
    require_key: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body: int = 16 * MEGABYTE
    max_bytes_in_flight: int = 256 * MEGABYTE
    max_rows: int = 1024
    max_text: int = 100_000
    max_pixels: int = 25_000_000
    max_batch: int = 256
    max_wait: float = 0.002
    max_queue: int = 1024
    rate: float = 0.0
    burst: float = 100.0
    body_timeout: float = 30.0
    poll: float = 2.0
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("max_body", "max_rows", "max_text", "max_pixels", "max_batch", "max_queue"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.max_wait < 0 or self.rate < 0:
            raise InputError("max_wait and rate cannot be negative")

    @property
    def key_for_reading(self) -> bool:
        """Whether a request that changes nothing needs a key too."""
        return self.require_key or not is_loopback(self.host)
