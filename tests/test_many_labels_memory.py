"""With many labels nothing of the size rows x labels is made, from training to the report."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import labelweave as lw
from labelweave.data import Dataset


def peak():
    # Of this program alone: getrusage would count the process that started it too.
    (line,) = [one for one in open("/proc/self/status") if one.startswith("VmHWM")]
    return int(line.split()[1]) / 1024

rng = np.random.default_rng(0)
n_rows, n_labels, n_words = 30_000, 20_000, 5_000
labels = rng.integers(n_labels, size=(n_rows, 2))
rows = np.repeat(np.arange(n_rows), 2)
Y = sp.csr_array((np.ones(2 * n_rows), (rows, labels.ravel())), shape=(n_rows, n_labels))
Y.data[:] = 1
more = rng.integers(n_words, size=(n_rows, 2))
words = np.hstack([labels % n_words, (7 * labels + 1) % n_words, more])
X = sp.csr_array(
    (np.ones(words.size), (np.repeat(np.arange(n_rows), words.shape[1]), words.ravel())),
    shape=(n_rows, n_words),
)
Y = lw.as_labels(Y, names=[f"l{j}" for j in range(n_labels)])
train, test = Dataset(X[:5000], Y[:5000]), Dataset(X[5000:], Y[5000:])
model = lw.LabelTree(1, random_state=0).fit(train.X, train.Y)
top = model.predict_top_k(test.X)
assert sp.issparse(top) and top.nnz <= 50 * len(test)
assert lw.evaluate(model, test)["precision@5"] > 0
folder = Path(tempfile.mkdtemp())
model.save(folder / "model")
model = lw.load(folder / "model")
page = lw.report(model, test, folder / "report.html").read_text()
assert "Labels by frequency" in page and "are left out" in page
print(peak())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_training_to_report_of_twenty_thousand_labels():
    # It takes about 420 MB; one byte for each of 25,000 x 20,000 entries would be 500 MB more.
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 700
