"""`labelweave sign`: sign a model folder, or make the keys for it."""

from __future__ import annotations

import click

from labelweave.cli.options import output_options
from labelweave.cli.output import Output


@click.command("sign")
@click.argument("model", required=False)
@click.option("--key", type=click.Path(), metavar="FILE", help="The private key to sign with.")
@click.option(
    "--new-key",
    type=click.Path(),
    metavar="FILE",
    help="Make a key pair: FILE is the private key, FILE.pub the public one.",
)
@output_options
def command(
    model: str | None, key: str | None, new_key: str | None, as_json: bool, quiet: bool
) -> None:
    """Sign the model in folder MODEL with an Ed25519 key, or make such a key.

    The signature covers every file of the folder. `labelweave serve --trusted-keys FILE.pub` serves
    only folders that were signed and not changed since. Saving a model again removes its signature.
    """
    if (new_key is None) == (model is None):
        raise click.UsageError("Name the model to sign, or give --new-key FILE.")
    if (key is None) != (model is None):
        raise click.UsageError("A model is signed with --key FILE; --new-key takes no --key.")
    output = Output(as_json, quiet)

    from labelweave import persistence

    if new_key is not None:
        public = persistence.new_key(new_key)
        output.say(f"private key: {new_key} (keep it secret); public key: {public}")
        output.result({"key": new_key, "public_key": str(public)})
        return
    assert model is not None
    assert key is not None
    n_files = persistence.sign(model, key)
    output.say(f"{model} signed: {n_files} files")
    output.result({"model": model, "files": n_files})
