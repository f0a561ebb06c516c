"""Images per CPU second through a frozen EfficientNet-lite, decoding included.

The files of miml-scenes are decoded, resized and encoded, without the cache of features, on one
thread; beside it the reference network of the package `efficientnet-lite-pytorch` on pixels that
are decoded already. Both use the weights of the extra `vision`. Run it with

    python benchmarks/image_encoding.py [--sizes 128 224] [--images 320]
"""

from __future__ import annotations

import argparse
import time

import torch

import labelweave as lw
from labelweave.nn.pretrained import pretrained_file
from labelweave.nn.resnet import read_weights

NETWORK = "efficientnet-lite0"
BATCH = 32


def reference(size: int) -> torch.nn.Module:
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name(NETWORK, image_size=size)
    network.load_state_dict(read_weights(pretrained_file(NETWORK)))
    return network.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 224])
    parser.add_argument("--images", type=int, default=320)
    options = parser.parse_args()
    torch.set_num_threads(1)
    paths = lw.load_dataset("miml-scenes").X.sources[: options.images]
    for size in options.sizes:
        encoder = lw.ImageEncoder(NETWORK, size=size, cache=False, batch_size=BATCH).fit()
        encoder.transform(paths[:BATCH])
        started = time.process_time()
        encoder.transform(lw.Images(paths, workers=0))
        ours = time.process_time() - started
        network = reference(size)
        pixels = torch.from_numpy(lw.Images(paths, size=size).pixels()).permute(0, 3, 1, 2)
        with torch.inference_mode():
            network(torch.zeros(BATCH, 3, size, size))
            started = time.process_time()
            for batch in pixels.split(BATCH):
                network((batch.float() - 127) / 128)
            theirs = time.process_time() - started
        n = len(paths)
        print(
            f"{size} px: {n / ours:.0f} images per CPU second with decoding; the package "
            f"{n / theirs:.0f} without",
            flush=True,
        )


if __name__ == "__main__":
    main()
