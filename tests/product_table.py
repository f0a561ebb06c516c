"""A small table of products (texts, numbers, categories, yes/no, dates, blanks) with two labels."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def product_table(n_rows=60):
    """Return the columns, and labels one of which depends on the title and one on the price."""
    rng = np.random.default_rng(0)
    nouns = rng.choice(["lamp", "chair", "desk"], n_rows)
    frame = pd.DataFrame(
        {
            "title": [f"the {COLORS[i % 3]} {noun} {i}" for i, noun in enumerate(nouns)],
            "price": rng.uniform(1, 99, n_rows).round(2),
            "brand": rng.choice(["acme", "bolt", "core"], n_rows),
            "new": rng.choice(["yes", "no"], n_rows),
            "added": pd.date_range("2024-01-01", periods=n_rows).strftime("%Y-%m-%d"),
        }
    )
    labels = pd.DataFrame(
        {
            "light": (nouns == "lamp").astype(int),
            "cheap": (frame["price"] < 50).astype(int),
        }
    )
    frame.loc[::7, "price"] = np.nan
    frame.loc[3::9, "brand"] = np.nan
    return frame, labels


COLORS = ["red old", "blue", "green wooden"]


def product_columns(text=None):
    """Return a column transformer of the table, for pipelines."""
    return make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["price"]),
        (OneHotEncoder(handle_unknown="ignore"), ["brand", "new"]),
        (text or TfidfVectorizer(), "title"),
    )
