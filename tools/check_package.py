"""Install a built wheel in an empty environment and try it: `python tools/check_package.py dist`.

Core dependencies are taken from where pip takes them. Nothing optional is installed: each optional
part must fail with a sentence that names its extra.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

TRY = """
import labelweave as lw
from labelweave.cli.main import main
from labelweave.export import export_onnx
from labelweave.nn.callbacks import TensorBoardLogger
from sklearn.datasets import make_multilabel_classification

X, Y = make_multilabel_classification(n_samples=120, n_classes=4, random_state=0)
model = lw.MLP(epochs=3, random_state=0).fit(X, Y)
model.save("model")
assert lw.load("model").predict_proba(X).shape == (120, 4)
texts = ["deep sea", "hot sand"] * 10
optional = {
    "text": lambda: lw.SentenceEmbedder().fit(texts).transform(texts),
    "neighbors": lambda: lw.MLkNN(neighbors="faiss").fit(X, Y),
    "report": lambda: lw.report(model, (X, Y), "report.html"),
    "formats": lambda: lw.read_dataset("table.parquet"),
    "export": lambda: export_onnx(model, "model.onnx"),
    "tune": lambda: main(["tune", "none.csv", "-m", "br"], standalone_mode=False),
    "track": lambda: lw.MLP(epochs=1, callbacks=[TensorBoardLogger("runs")]).fit(X, Y),
    "distributed": lambda: lw.MLP(epochs=1, precision="bf16-mixed").fit(X, Y),
}
open("table.parquet", "wb").write(b"PAR1" + bytes(20) + b"PAR1")
for extra, use in optional.items():
    try:
        use()
    except Exception as error:
        told = str(error)
        assert f"labelweave[{extra}]" in told, f"{extra}: {type(error).__name__}: {told}"
        print(f"{extra}: {told}")
    else:
        raise SystemExit(f"{extra} works without its packages?")
"""


def main(folder: str) -> None:
    (wheel,) = Path(folder).glob("*.whl")
    (source,) = Path(folder).glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "py.typed",
        "data/catalog.toml",
        "report/style.css",
        "bench/suites/vectors.toml",
    ):
        assert f"labelweave/{needed}" in names, f"{needed} is not in the wheel"
    assert not any(name.startswith(("tests/", "docs/")) for name in names)
    with tarfile.open(source) as packed:
        assert any(name.endswith("README.md") for name in packed.getnames())
    with tempfile.TemporaryDirectory() as home:
        venv.create(Path(home) / "env", with_pip=True)
        python = Path(home) / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        constraints = Path(__file__).parents[1] / "constraints.txt"
        install = [python, "-m", "pip", "install", "-q", "-c", constraints, wheel.resolve()]
        subprocess.run(install, check=True)
        subprocess.run([python, "-c", TRY], check=True, cwd=home)
        subprocess.run([python, "-m", "labelweave", "--help"], check=True, cwd=home)
    print(f"{wheel.name} and {source.name} are as they should be")


if __name__ == "__main__":
    main(sys.argv[1])
