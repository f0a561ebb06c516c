"""Rules that turn probabilities into label sets.

Wherever the library has a parameter `threshold`, it accepts a :class:`Threshold` object, a number
or a short text. A label is predicted if its score is *at least* its threshold.

========================  ==================================================================
`threshold`               rule
========================  ==================================================================
``0.5`` (any number)      :class:`FixedThreshold`: this threshold for all labels
``"tuned"``               :class:`TunedThreshold`: the one threshold with the best example F1
``"tuned:f1_micro"``      the same for another metric of label sets
``"tuned:f1_micro:grid"`` the same, chosen among 0.1, 0.2, ... 0.9 as in much of the literature
``"per-label"``           :class:`PerLabelThreshold`: one per label, shrunk for rare labels
``"top-3"``               :class:`TopK`: the three best labels of each row
``"largest-drop"``        :class:`LargestDrop`: the labels above the largest drop in score
``"cardinality"``         :class:`CardinalityThreshold`: the number of labels that the model expects
``"cardinality:labels"``  the number of labels that the validation rows have
``"cardinality:2.5"``     2.5 labels per row
``"recall>=0.9"``         :class:`PromisedThreshold`: new rows have at least this recall; also
                          ``"precision>=0.8"`` and ``"fdr<=0.1"``, each with ``":per-label"``
                          and with a confidence (``":0.95"``; else 0.9)
========================  ==================================================================

Rules with `needs_validation` are fitted on rows that the model was not trained on; unknown entries
(NaN) of their labels are ignored.
"""

from labelweave.thresholds.parsing import PAPER_GRID, make_threshold
from labelweave.thresholds.promised_threshold import PromisedThreshold
from labelweave.thresholds.threshold_rules import (
    CardinalityThreshold,
    FixedThreshold,
    LargestDrop,
    PerLabelThreshold,
    Threshold,
    TopK,
    TunedThreshold,
)

__all__ = [
    "PAPER_GRID",
    "CardinalityThreshold",
    "FixedThreshold",
    "LargestDrop",
    "PerLabelThreshold",
    "PromisedThreshold",
    "Threshold",
    "TopK",
    "TunedThreshold",
    "make_threshold",
]
