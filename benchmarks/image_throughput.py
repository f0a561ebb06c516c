"""Images per second in training: labelweave against a plain torch script, in one run.

Both train a ResNet-18 on the same random images (bytes in memory) by binary cross-entropy with
AdamW, on the same number of threads, and augment alike: random crop and resize, mirror images,
colour jitter, greyscale. The plain script is what tutorials show: a Dataset that changes one image
at a time by Pillow, a standard DataLoader with `--workers` processes, torch's own layers. The two
take turns, epoch by epoch, so that other work on the machine disturbs both alike; the best epoch
of each counts. `loading` is the share of a step in which labelweave waits for its batch. On a busy
machine `--workers 0` compares CPU seconds too, which then are all of this process. Run it with

    python benchmarks/image_throughput.py [--sizes 32 64] [--threads 2] [--images 512]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import nn
from torch.utils.data import DataLoader, Dataset

from labelweave.images import Images, ResNet
from labelweave.labels import as_labels
from labelweave.nn.batches import Batches
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.task import make_plan

N_LABELS = 20
AUGMENT = {
    "crop": 0.2,
    "flip": 0.5,
    "brightness": 0.4,
    "contrast": 0.4,
    "saturation": 0.4,
    "grey": 0.2,
}
_MEAN, _STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


class OneByOne(Dataset):
    """Images changed one at a time, as the usual transforms do it."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = Image.fromarray(self.images[row])
        side = image.size[0]
        share = np.sqrt(np.random.uniform(AUGMENT["crop"], 1))  # noqa: NPY002 (as scripts do it)
        tilt = np.exp(np.random.uniform(-1, 1) * np.log(4 / 3) / 2)  # noqa: NPY002
        wide, high = min(share * tilt, 1) * side, min(share / tilt, 1) * side
        left, top = (np.random.uniform(0, side - long) for long in (wide, high))  # noqa: NPY002
        box = (left, top, left + wide, top + high)
        image = image.resize((side, side), Image.Resampling.BILINEAR, box=box)
        if np.random.random() < AUGMENT["flip"]:  # noqa: NPY002
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if np.random.random() < 0.8:  # noqa: NPY002
            for enhancer in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
                image = enhancer(image).enhance(np.random.uniform(0.6, 1.4))  # noqa: NPY002
        if np.random.random() < AUGMENT["grey"]:  # noqa: NPY002
            image = image.convert("L").convert("RGB")
        pixels = (np.asarray(image) / 255 - _MEAN) / _STD
        x = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1), dtype=np.float32))
        return x, torch.from_numpy(self.labels[row])


class PlainBlock(nn.Module):
    """Two convolutions and a shortcut of torch's own layers, as torchvision has them."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = None
        if stride > 1 or n_in != n_out:
            self.downsample = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


def plain_resnet18(stem: str) -> nn.Sequential:
    """ResNet-18 with ImageNet's first layers, or with one 3 x 3 convolution in their place."""
    kernel, stride = (7, 2) if stem == "imagenet" else (3, 1)
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, kernel, stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
    ]
    if stem != "small":
        layers.append(nn.MaxPool2d(3, 2, padding=1))
    n_in = 64
    for n_out in (64, 128, 256, 512):
        layers += [PlainBlock(n_in, n_out, n_out // n_in), PlainBlock(n_out, n_out, 1)]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, N_LABELS))


class Plain:
    """The script that people write."""

    def __init__(
        self, images: np.ndarray, labels: np.ndarray, stem: str, options: argparse.Namespace
    ) -> None:
        self.network = plain_resnet18(stem)
        self.loader = DataLoader(
            OneByOne(images, labels),
            options.batch,
            shuffle=True,
            num_workers=options.workers,
            persistent_workers=options.workers > 0,  # their start is not part of an epoch
        )
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3)
        self.loss = nn.BCEWithLogitsLoss()

    def epoch(self) -> float:
        started = time.perf_counter()
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = self.loss(self.network(x), y)
            loss.backward()
            self.optimizer.step()
            loss.item()
        return time.perf_counter() - started


class Ours:
    """The parts of labelweave's training loop, to time waiting and computing separately."""

    def __init__(
        self, images: np.ndarray, labels: np.ndarray, stem: str, options: argparse.Namespace
    ) -> None:
        size = images.shape[1]
        encoder = ResNet(18, size=size, stem=stem, augment=AUGMENT)()
        self.network = nn.Sequential(encoder, nn.Linear(encoder.n_out, N_LABELS)).train()
        self.batches = Batches(
            Images(images, size=size), as_labels(labels), batch_size=options.batch
        )
        self.optimizer = make_plan(self.network.parameters(), n_steps=1, lr=1e-3).optimizer
        self.waited = 0.0

    def epoch(self) -> float:
        started = time.perf_counter()
        waiting = 0.0
        batches = self.batches.epoch(0)
        while True:
            asked = time.perf_counter()
            batch = next(batches, None)
            waiting += time.perf_counter() - asked
            if batch is None:
                break
            self.optimizer.zero_grad()
            loss = mean_loss(bce(self.network(batch.x), batch.y))
            loss.backward()
            self.optimizer.step()
            loss.item()
        elapsed = time.perf_counter() - started
        self.waited = waiting / elapsed
        return elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--stems", nargs="+", default=["small", "imagenet"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    random = np.random.default_rng(0)
    for size in options.sizes:
        images = random.integers(0, 256, (options.images, size, size, 3), dtype=np.uint8)
        labels = (random.random((options.images, N_LABELS)) < 0.1).astype(np.float32)
        for stem in options.stems:
            torch.manual_seed(0)
            runs: dict[str, Plain | Ours] = {
                "plain": Plain(images, labels, stem, options),
                "labelweave": Ours(images, labels, stem, options),
            }
            best = dict.fromkeys(runs, float("inf"))
            cpu = dict.fromkeys(runs, float("inf"))
            for _ in range(options.rounds):
                for name, run in runs.items():
                    started = time.process_time()
                    best[name] = min(best[name], run.epoch())
                    cpu[name] = min(cpu[name], time.process_time() - started)
            rates = {name: options.images / seconds for name, seconds in best.items()}
            print(
                f"{size} px, stem {stem}: plain {rates['plain']:.0f} images/s, labelweave "
                f"{rates['labelweave']:.0f} images/s, ratio "
                f"{rates['labelweave'] / rates['plain']:.2f}; loading "
                f"{runs['labelweave'].waited:.1%} of a step"  # type: ignore[union-attr]
                + (f"; CPU {cpu['plain'] / cpu['labelweave']:.2f}" if options.workers == 0 else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
