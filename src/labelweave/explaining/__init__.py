"""Which columns or words the labels of a model depend on, in general and in one row.

:func:`feature_importance` measures it on held-out rows for any model, :func:`native_importance`
returns what a model states itself (coefficients, gains of splits), and :func:`explain_row` returns
which columns or words speak for and against each label of one row. Columns are those of the
original table, whatever features a model makes of them.
"""

from labelweave.explaining.column_importance import feature_importance
from labelweave.explaining.native import native_importance
from labelweave.explaining.reference import reference_rows
from labelweave.explaining.results import FeatureImportance, RowExplanation
from labelweave.explaining.row_explanation import explain_row

__all__ = [
    "FeatureImportance",
    "RowExplanation",
    "explain_row",
    "feature_importance",
    "native_importance",
    "reference_rows",
]
