"""Labels of the rows to predict that are known already, from a CSV file."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.capabilities import capabilities
from labelweave.data import Dataset
from labelweave.exceptions import DataFileError, InputError

__all__ = ["KnownLabelsFile"]


class KnownLabelsFile:
    """What is known of the labels of the rows of a file, in the order of its rows.

    Parameters
    ----------
    path : str
        A CSV file with a header: one column per label of the model (some may be left out); 1, 0, or
        nothing where the label is not known.
    model : a fitted estimator
    """

    def __init__(self, path: str, model: Any) -> None:
        if not capabilities(model).known_labels:
            raise InputError(
                f"--known: {type(model).__name__} does not predict a label from others; chains, "
                "C-Tran and LaMP do"
            )
        self.path = path
        self.model = model
        self.table = _read(path, [str(name) for name in model.label_names_])

    def predict(self, batch: Dataset, first: int, rule: Any) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities and label sets of a batch that starts at row `first` of the input."""
        rows = self.table.iloc[first : first + len(batch)]
        if len(rows) < len(batch):
            self.check_end(first + len(batch))
        probabilities = self.model.predict_proba(batch.X, known=rows)
        chosen = rule.apply(probabilities)
        places = [list(self.model.label_names_).index(name) for name in rows.columns]
        given = rows.to_numpy()
        chosen[:, places] = np.where(np.isnan(given), chosen[:, places], np.nan_to_num(given))
        return probabilities, chosen

    def check_end(self, n_rows: int) -> None:
        """Raise if the file has more or fewer rows than the input, of which `n_rows` are read."""
        if len(self.table) != n_rows:
            more = "at least " if len(self.table) < n_rows else ""
            raise DataFileError(
                f"the file has {len(self.table):,} rows, but the input {more}{n_rows:,}: "
                "there must be one row of known labels for each",
                path=self.path,
            )


def _read(path: str, names: list[str]) -> Any:
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, skip_blank_lines=False)
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except (ValueError, OSError) as error:
        raise DataFileError(f"this is no CSV file: {error}", path=path) from None
    if strange := [name for name in table.columns if name not in names]:
        raise DataFileError(
            f"column {strange[0]!r} is no label of the model, which has {', '.join(names[:5])}"
            f"{', ...' if len(names) > 5 else ''}",
            path=path,
        )
    values = table.apply(lambda column: column.str.strip())
    wrong = ~values.isin(["0", "1", ""]).to_numpy()
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise DataFileError(
            f"{values.columns[column]!r} is {values.iat[row, column]!r}: known labels are 1 or 0, "
            "and nothing where they are not known",
            path=path,
            line=row + 2,
        )
    return values.replace("", np.nan).astype(np.float32)
