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


def check_contents(wheel: Path, source: Path) -> None:
    """The wheel is the package and nothing else; the source has what builds and tests need."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = ROOT / "src" / "labelweave"
    files = [path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    wanted = {path.relative_to(package.parent).as_posix() for path in files}
    assert "labelweave/py.typed" in wanted
    assert names == wanted, f"the wheel differs from src/: {sorted(names ^ wanted)[:5]}"
    with tarfile.open(source) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    for needed in ("README.md", "CHANGELOG.md", "LICENSE", "constraints.txt", "tests/conftest.py"):
        assert needed in held, f"{needed} is not in the source distribution"


def main(folder: str) -> None:
    (wheel,) = Path(folder).glob("*.whl")
    (source,) = Path(folder).glob("*.tar.gz")
    check_contents(wheel, source)
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
