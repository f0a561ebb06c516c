"""The settings of the service."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from labelweave.exceptions import InputError

__all__ = ["Settings", "is_loopback"]

MEGABYTE = 2**20


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only.

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
    """Address, limits and access rules; the defaults are those of ``labelweave serve``."""

    # host, port: The address to listen on. If it is not a loopback address, every request needs a
    # key.
    host: str = "127.0.0.1"
    port: int = 8000
    # URL of the database: a SQLite file, or ``postgresql+psycopg://...`` for several replicas
    database: str = "sqlite:///labelweave-serve.sqlite"
    # Require a key on loopback too, even to read; meant for a service behind a proxy
    require_key: bool = False
    # Host names, besides those of loopback, that a request without a key may name. This stops pages
    # of other web sites that point a domain of theirs at the service (DNS rebinding).
    allowed_hosts: tuple[str, ...] = ()
    # Origins whose pages may call the API (CORS); none by default
    allowed_origins: tuple[str, ...] = ()
    # max_body, max_bytes_in_flight: Bytes of one request, and of all requests that are being
    # answered
    max_body: int = 16 * MEGABYTE
    max_bytes_in_flight: int = 256 * MEGABYTE
    # max_header, header_timeout: Bytes of a header, and seconds within which it must have arrived
    max_header: int = 64 * 1024
    header_timeout: float = 10.0
    # max_connections, max_total_connections: Open connections of one client, and of all
    max_connections: int = 512
    max_total_connections: int = 2048
    # max_rows, max_text: Inputs per request, characters per text
    max_rows: int = 1024
    max_text: int = 100_000
    # Rows that the model predicts for the explanations of one request
    max_explained_rows: int = 4096
    # max_pixels, max_pixels_in_flight: Pixels of one image, and of all images that are decoded or
    # predicted at the same time; more wait
    max_pixels: int = 25_000_000
    max_pixels_in_flight: int = 25_000_000
    # max_batch, max_wait, max_queue: Rows per batch, seconds to wait for a batch to fill, requests
    # that may be waiting
    max_batch: int = 256
    max_wait: float = 0.002
    max_queue: int = 1024
    # rate, burst: Requests per second and at once of one client; a rate of 0 means no limit
    rate: float = 0.0
    burst: float = 100.0
    body_timeout: float = 30.0  # Seconds within which the body of a request must have been received
    poll: float = 2.0  # Seconds between two checks for changes that other replicas have made
    # Seconds until a model that has failed is loaded again; twice as many after each failure
    restart_delay: float = 0.5
    threads: int = 1  # Threads of one prediction
    # Each model in a process of its own, so that one that crashes takes no other with it; None:
    # if there are several models
    model_processes: bool | None = None
    # Encoders besides MiniLM, and patterns of words, that models may use
    trusted: tuple[str, ...] = ()
    # Files of public keys: only folders that one of these keys signed are served; None: any folder
    trusted_keys: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in vars(self):
            if name.startswith("max_") and name != "max_wait" and getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.max_pixels_in_flight < self.max_pixels:
            raise InputError(
                f"max_pixels_in_flight must be at least max_pixels ({self.max_pixels:,}), not "
                f"{self.max_pixels_in_flight:,}"
            )
        if self.max_wait < 0 or self.rate < 0:
            raise InputError("max_wait and rate cannot be negative")

    @property
    def key_for_reading(self) -> bool:
        """Whether requests that change nothing need a key too."""
        return self.require_key or not is_loopback(self.host)
