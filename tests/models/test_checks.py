"""The model's answer to the user's own table is compared with its answer to the rows explained."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import texplainer as tx


@pytest.mark.parametrize(("missing", "dtype"), [(np.nan, "str"), (np.nan, object), (None, object)])
def test_nulls_of_an_arrow_table_are_the_missing_values_of_the_background(
    missing: object, dtype: object
) -> None:
    """An encoder takes None for an unknown category where it was fitted on NaN; runs read their rows as Arrow."""
    pa = pytest.importorskip("pyarrow")
    kind = pd.Series(["a", "b", missing] * 20, dtype=dtype)
    X = pd.DataFrame({"size": np.arange(60.0), "kind": kind})
    encoder = OneHotEncoder(handle_unknown="ignore")
    encode = make_column_transformer((StandardScaler(), ["size"]), (encoder, ["kind"]))
    model = make_pipeline(encode, LinearRegression()).fit(X, X["size"] + 5.0 * kind.isna())
    explainer = tx.TExplainer(model, X)
    np.testing.assert_array_equal(explainer(pa.Table.from_pandas(X)).values, explainer(X).values)
