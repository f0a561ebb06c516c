"""Training histories sorted into plots."""

import numpy as np
import pandas as pd

from labelweave.reporting.model_sections.learning_curves import history_panels


def test_history_of_two_stages():
    history = pd.DataFrame(
        {
            "stage": ["pretraining", "pretraining", "probe"],
            "epoch": [1, 2, 1],
            "loss": [3.0, 2.0, 1.0],
            "contrast": [3.0, 2.0, np.nan],
            "bce": [np.nan, np.nan, 1.0],
            "val_map": [np.nan, np.nan, 0.5],
            "test_map": [np.nan, 0.1, 0.4],
            "lr": [0.1, 0.1, 0.01],
            "seconds": [1.0, 1.0, 1.0],
        }
    )
    panels = {panel.title: panel.curves for panel in history_panels(history)}
    assert list(panels) == [
        "loss",
        "terms of the loss",
        "validation scores",
        "test scores",
        "learning rate",
    ]
    epochs, values = panels["validation scores"]["val_map"]
    assert (epochs.tolist(), values.tolist()) == ([3], [0.5])  # counted on from the first stage
    assert history_panels(history.iloc[:0]) == []
