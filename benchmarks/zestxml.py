"""ZestXML's scores of all pairs of documents and labels, against the same loops compiled from C.

The peer does what a compiled implementation does: for a document it adds up the rows of the map
that the document's words name, in a dense array, and for each label the products with its
features. Both score the same pairs on one thread, in turns; the ratio is of CPU seconds, ours over
the peer's, and scores must agree. It needs a C compiler. Run it with

    python benchmarks/zestxml.py
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelweave.unseen.zestxml_pairs import bilinear_scores

SOURCE = r"""
#include <string.h>
void scores(int n_documents, int n_labels, int width,
            const int *xp, const int *xi, const float *xv,
            const int *wp, const int *wi, const float *wv,
            const int *zp, const int *zi, const float *zv, float *scratch, float *out) {
  for (int d = 0; d < n_documents; d++) {
    memset(scratch, 0, sizeof(float) * width);
    for (int a = xp[d]; a < xp[d + 1]; a++)
      for (int b = wp[xi[a]]; b < wp[xi[a] + 1]; b++) scratch[wi[b]] += xv[a] * wv[b];
    for (int l = 0; l < n_labels; l++) {
      float sum = 0;
      for (int c = zp[l]; c < zp[l + 1]; c++) sum += zv[c] * scratch[zi[c]];
      out[(long)d * n_labels + l] = sum;
    }
  }
}
"""


def compiled() -> Callable[..., np.ndarray]:
    folder = Path(tempfile.mkdtemp())
    (folder / "scores.c").write_text(SOURCE)
    command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "scores.c", "-o", "scores.so"]
    subprocess.run(command, cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "scores.so")).scores

    def pointers(matrix: sp.csr_array) -> list[ctypes.c_void_p]:
        parts = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data
        kept.extend(parts)
        return [ctypes.c_void_p(part.ctypes.data) for part in parts]

    kept: list[np.ndarray] = []  # so that what is pointed at stays

    def run(documents: sp.csr_array, weights: sp.csr_array, labels: sp.csr_array) -> np.ndarray:
        scratch = np.empty(labels.shape[1], np.float32)
        out = np.empty((documents.shape[0], labels.shape[0]), np.float32)
        arrays = [*pointers(documents), *pointers(weights), *pointers(labels)]
        ends = [ctypes.c_void_p(array.ctypes.data) for array in (scratch, out)]
        function(documents.shape[0], labels.shape[0], labels.shape[1], *arrays, *ends)
        kept.clear()
        return out

    return run


def random_rows(rng: np.random.Generator, shape: tuple[int, int], each: int) -> sp.csr_array:
    """So many entries a row, of features that are common or rare as words are."""
    popular = np.minimum(rng.zipf(1.3, (shape[0], each)) - 1, shape[1] * 100) % shape[1]
    rows = np.repeat(np.arange(shape[0]), each)
    values = rng.random(popular.size, dtype=np.float32)
    matrix = sp.csr_array((values, (rows, popular.ravel())), shape=shape)
    matrix.sum_duplicates()
    return matrix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--labels", type=int, nargs="+", default=[500, 2000, 20_000])
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    peer = compiled()
    rng = np.random.default_rng(0)
    documents = random_rows(rng, (options.documents, options.words), 60)
    for n_labels in options.labels:
        width = options.words + n_labels // 2  # half of the labels are seen
        weights = random_rows(rng, (options.words, width), 40)
        labels = random_rows(rng, (n_labels, width), 6)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(options.rounds):
            scores = []
            for times, function in ((ours, bilinear_scores), (theirs, peer)):
                started = time.process_time()
                scores.append(function(documents, weights, labels))
                times.append(time.process_time() - started)
            np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-4)
        pairs = options.documents * n_labels
        our_time, their_time = statistics.median(ours), statistics.median(theirs)
        print(
            f"{options.documents} documents, {n_labels} labels: "
            f"ours {our_time / pairs * 1e9:.1f} ns per pair, "
            f"compiled {their_time / pairs * 1e9:.1f}; ratio {our_time / their_time:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
