"""Mean scores of labels of similar frequency."""

import numpy as np

from labelweave.reporting.model_sections.label_scores import binned_means


def test_bins_leave_undefined_scores_out():
    x, y = binned_means(np.array([5, 1, 3, 0]), np.array([0.5, np.nan, 0.1, 0.9]), n_bins=8)
    assert x.tolist() == [3, 5]
    assert y.tolist() == [0.1, 0.5]
