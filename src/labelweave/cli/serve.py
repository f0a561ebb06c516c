"""`labelweave serve`: models behind an HTTP address, with a page."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labelweave.cli.options import (
    check_reading_has_data,
    count_option,
    output_options,
    pop_reader_options,
    reader_options,
    trusted_option,
)
from labelweave.cli.output import Output
from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.serve.service import Service
    from labelweave.serve.settings import Settings

KEY_VARIABLE = "LABELWEAVE_API_KEY"


def _change_keys(database: str, add: str | None, revoke: str | None, output: Output) -> None:
    """Make or forget a key in the database, and say so."""
    from labelweave.serve.state.database import open_database
    from labelweave.serve.state.service_store import Store

    store = Store(open_database(database))
    if revoke is not None:
        store.revoke_key(revoke)
        output.say(f"the key {revoke!r} is no longer valid")
    key = None
    if add is not None:
        key = store.add_key(add)
        output.say(f"the key {add!r}, shown this once; only its hash is kept:")
        output.show(key)
    output.result({"added": add, "key": key, "revoked": revoke})


def _free_port(host: str) -> int:
    """One that nobody listens on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        return int(server.getsockname()[1])


def _make_service(
    folders: Mapping[str, Path],
    settings: Settings,
    review: tuple[str, ...],
    data: str | None,
    reading: Mapping[str, Any],
    preload: bool,
) -> Service:
    from labelweave.serve.label_relations import read_cooccurrence
    from labelweave.serve.review_queues import read_queues
    from labelweave.serve.service import Service

    return Service(
        folders,
        settings,
        read_queues(review),
        cooccurrence=None if data is None else read_cooccurrence(data, reading, folders.values()),
        preload=preload,
    )


@click.command("serve")
@click.argument("models", nargs=-1, metavar="[NAME=]MODEL...")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="0: any that is free.",
)
@click.option(
    "--database",
    default="sqlite:///labelweave-serve.sqlite",
    help="Where label changes, verdicts and hashes of keys are kept: a SQLite file, or "
    "postgresql://USER@HOST/NAME for several replicas.",
)
@click.option(
    "--review",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="List of `labelweave audit` (.csv, .jsonl) to review on the page; may be repeated.",
)
@click.option(
    "--data",
    metavar="DATA",
    help="Data set or file with labels; the page then shows which go together.",
)
@click.option("--add-key", metavar="NAME", help="Make an API key, print it, and end.")
@click.option("--revoke-key", metavar="NAME", help="Forget an API key, and end.")
@click.option(
    "--require-key", is_flag=True, help="Ask for a key on loopback too: behind a proxy, say."
)
@click.option("--preload", is_flag=True, help="Load the models now, not when first asked for.")
@click.option(
    "--allow-host", multiple=True, metavar="HOST", help="A host name to answer under, by a proxy."
)
@click.option(
    "--allow-origin", multiple=True, metavar="ORIGIN", help="Site whose pages may call (CORS)."
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    help="Requests per second of one client; 0: any. [default: any on loopback, else 100]",
)
@count_option("--max-batch", 256, "Rows to predict together, at most.")
@click.option(
    "--max-wait",
    type=click.FloatRange(0, 1000),
    default=2.0,
    help="Milliseconds to wait for more requests to predict together.",
)
@count_option("--max-queue", 1024, "Requests that may wait for a model; more are answered 429.")
@count_option("--max-rows", 1024, "Inputs of a request, at most.")
@count_option("--max-text", 100_000, "Characters of a text, at most.")
@count_option(
    "--max-explained-rows", 4096, "Rows to predict for the explanations of a request, at most."
)
@count_option("--max-body", 16, "Megabytes of a request, at most.")
@count_option("--max-connections", 512, "Open connections of one client, at most.")
@count_option("--max-pixels", 25_000_000, "Pixels of an image, at most.")
@count_option(
    "--max-pixels-in-flight", 25_000_000, "Pixels of all images at the same time; more wait."
)
@click.option(
    "--model-processes/--no-model-processes",
    default=None,
    help="Run each model in a process of its own: one that crashes takes no other with it. "
    "[default: with several models]",
)
@count_option(
    "--workers", 1, "Processes that answer, each with all models; they share the database."
)
@count_option("--threads", 1, "Threads of a prediction.")
@click.option("--no-access-log", is_flag=True, help="Do not log a line per request.")
@reader_options
@trusted_option
@click.option(
    "--trusted-keys",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Public keys: serve only folders that one of them signed (`labelweave sign`); may be "
    "repeated.",
)
@output_options
def command(
    models: tuple[str, ...],
    review: tuple[str, ...],
    add_key: str | None,
    revoke_key: str | None,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    rate: float | None,
    max_wait: float,
    max_body: int,
    data: str | None,
    trusted_keys: tuple[str, ...],
    preload: bool,
    workers: int,
    no_access_log: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Serve models over HTTP, with a page to try them on.

    Each MODEL is a folder of `labelweave train`, served under its name. The service listens on
    loopback, where reading is free; changes always need an API key, and so does everything when
    it listens elsewhere. Make one by --add-key NAME; a key in LABELWEAVE_API_KEY counts too.

    The options for reading files are about --data. Without them, a file of the same kind as the
    training data of the first model is read as those were.
    """
    from labelweave.serve.settings import Settings, is_loopback

    output = Output(as_json, quiet)
    reading = pop_reader_options(options)
    check_reading_has_data(reading, data)
    if rate is None:
        rate = 0.0 if is_loopback(options["host"]) else 100.0
    options["port"] = options["port"] or _free_port(options["host"])
    settings = Settings(
        allowed_hosts=allow_host,
        allowed_origins=allow_origin,
        rate=rate,
        burst=max(2 * rate, 1.0),
        max_wait=max_wait / 1000,
        max_body=max_body * 2**20,
        trusted_keys=trusted_keys or None,
        **options,
    )
    if add_key is not None or revoke_key is not None:
        _change_keys(settings.database, add_key, revoke_key, output)
        return
    if not models:
        raise InputError("there is no model to serve: name at least one folder")

    from labelweave.serve.app import run, run_workers
    from labelweave.serve.served_models import named_folders

    folders = named_folders(models)
    make_service = partial(_make_service, folders, settings, review, data, reading, preload)

    def welcome(address: str, key: str | None) -> None:
        output.show(f"serving {', '.join(folders)} at {address}")
        if key:
            output.say("the key in the address is valid until the service stops")
        output.result({"address": address, "models": list(folders), "key": key})
        output.stream.flush()

    how: dict[str, Any] = {
        "key": os.environ.get(KEY_VARIABLE),
        "access_log": not no_access_log,
        "on_start": welcome,
    }
    if workers > 1:
        run_workers(make_service, workers, **how)
    else:
        run(make_service(), **how)
