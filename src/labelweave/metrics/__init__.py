"""Metrics for labels that may be unknown.

Every metric is a function of the true labels (1, 0 or NaN for unknown) and of predicted label sets
or scores. Unknown entries are ignored; each module says what this means for its metrics. `METRICS`
and `get_metric` find a metric by name, and `evaluate` scores a model by all of them.

The public names of each module are those in its ``__all__``.
"""

# ruff: noqa: F403
from labelweave.metrics.calibration_error import *
from labelweave.metrics.evaluation import *
from labelweave.metrics.labelwise import *
from labelweave.metrics.metric_catalog import *
from labelweave.metrics.overlap import *
from labelweave.metrics.ranking import *
from labelweave.metrics.scores import *
from labelweave.metrics.sets import *
from labelweave.metrics.sweep import *
from labelweave.metrics.top_k import *
