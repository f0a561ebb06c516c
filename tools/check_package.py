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

ROOT = Path(__file__).parents[1]
TRY = """
import labelweave as lw
from sklearn.datasets import make_multilabel_classification

X, Y = make_multilabel_classification(n_samples=120, n_classes=4, random_state=0)
lw.MLP(epochs=3, random_state=0).fit(X, Y).save("model")
assert lw.load("model").predict_proba(X).shape == (120, 4)
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
        install = ["pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel.resolve()]
        optional_parts = ROOT / "tests" / "optional_parts.py"
        for words in (
            ["-m", *install],
            ["-c", TRY],
            ["-m", "labelweave", "--help"],
            ["-m", "labelweave", "methods"],
            [optional_parts],
        ):
            subprocess.run([python, *words], check=True, cwd=home)
    print(f"{wheel.name} and {source.name} are as they should be")


if __name__ == "__main__":
    main(sys.argv[1])
