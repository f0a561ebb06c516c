"""From probabilities to label sets.

A rule is asked for by a :class:`Threshold` object or by a short spec, wherever the library
takes ``threshold=``. A label is predicted where its score is *at least* the cut.

========================  ==================================================================
spec                      rule
========================  ==================================================================
``0.5`` (any number)      :class:`FixedThreshold`: one cut, given
``"tuned"``               :class:`TunedThreshold`: the one cut with the best example F1
``"tuned:f1_micro"``      the same for another metric of label sets
``"tuned:f1_micro:grid"`` the same, chosen among 0.1, 0.2, ... 0.9 as in much of the literature
``"per-label"``           :class:`PerLabelThreshold`: one cut a label, held back for rare ones
``"top-3"``               :class:`TopK`: the three best labels of each row
``"largest-drop"``        :class:`LargestDrop`: a row's labels down to the largest fall
``"cardinality"``         :class:`CardinalityThreshold`: as many labels as the model expects
``"cardinality:labels"``  as many labels as the validation rows have
``"cardinality:2.5"``     2.5 labels a row
========================  ==================================================================

Rules with `needs_validation` are fitted on rows that the model was not trained on; unknown
entries (NaN) of their labels take no part.
"""

from labelweave.thresholds.rules import (
    CardinalityThreshold,
    FixedThreshold,
    LargestDrop,
    PerLabelThreshold,
    Threshold,
    TopK,
    TunedThreshold,
)
from labelweave.thresholds.specs import PAPER_GRID, make_threshold

__all__ = [
    "PAPER_GRID",
    "CardinalityThreshold",
    "FixedThreshold",
    "LargestDrop",
    "PerLabelThreshold",
    "Threshold",
    "TopK",
    "TunedThreshold",
    "make_threshold",
]
