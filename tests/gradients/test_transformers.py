"""Each transformer's map equals its transform, and its pullback the transform's centred differences."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from texplainer.errors import Unsupported
from texplainer.gradients.transformers import TRANSFORMERS, chain, transformer

X = np.random.default_rng(0).normal(size=(80, 5)) * [1, 10, 0.1, 3, 1] + [0, 5, 1, -2, 0]
Y = (X[:, 0] + X[:, 3] > -2).astype(int)

FITTED = {
    "StandardScaler": [StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False)],
    "MinMaxScaler": [MinMaxScaler(), MinMaxScaler((-1, 1), clip=True)],
    "MaxAbsScaler": [MaxAbsScaler()],
    "RobustScaler": [
        RobustScaler(unit_variance=True),
        RobustScaler(with_centering=False),
        RobustScaler(with_scaling=False),
    ],
    "PowerTransformer": [PowerTransformer(), PowerTransformer(standardize=False)],
    "QuantileTransformer": [
        QuantileTransformer(n_quantiles=9),
        QuantileTransformer(n_quantiles=9, output_distribution="normal"),
    ],
    "SplineTransformer": [SplineTransformer(), SplineTransformer(4, 2, extrapolation="continue")],
    "PCA": [PCA(3), PCA(3, whiten=True)],
    "TruncatedSVD": [TruncatedSVD(3)],
    "PolynomialFeatures": [
        PolynomialFeatures(3),
        PolynomialFeatures((2, 3), interaction_only=True, include_bias=False),
    ],
    "SimpleImputer": [SimpleImputer()],
    "FunctionTransformer": [
        FunctionTransformer(),
        *map(FunctionTransformer, (np.exp, np.square, np.arcsinh, np.tanh)),
    ],
    "VarianceThreshold": [VarianceThreshold(0.5)],
    "SelectKBest": [SelectKBest(k=2)],
    "SelectFromModel": [SelectFromModel(LogisticRegression())],
    "RFE": [RFE(LogisticRegression(), n_features_to_select=2)],
    "Pipeline": [make_pipeline(StandardScaler(), PolynomialFeatures(2), PCA(4))],
}


def test_every_entry_of_the_table_is_tested():
    assert set(FITTED) == set(TRANSFORMERS)


@pytest.mark.parametrize("fitted", [f for many in FITTED.values() for f in many], ids=str)
def test_map_is_the_transform_and_pullback_its_derivative(fitted):
    fitted.fit(X[:60], Y[:60])
    rows = X[60:]  # some outside the fitted range: a clipped cell has slope 0
    values, pullback = transformer(fitted)(rows)
    np.testing.assert_allclose(values, fitted.transform(rows), rtol=1e-12, atol=1e-12)
    directions = np.random.default_rng([0, 2]).normal(
        size=(2, len(rows), values.shape[1])
    )  # two linear functions of the output
    found = pullback(directions)
    h = 1e-6 * X.std(axis=0)
    for j in range(X.shape[1]):
        move = np.eye(X.shape[1])[j] * h[j]
        slope = (fitted.transform(rows + move) - fitted.transform(rows - move)) / (2 * h[j])
        expected = np.einsum("kro,ro->kr", directions, slope)
        np.testing.assert_allclose(found[:, :, j], expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_a_missing_cell_is_filled_and_has_no_slope():
    rows = X[:3].copy()
    rows[1, 2] = np.nan
    fitted = SimpleImputer().fit(X)
    values, pullback = transformer(fitted)(rows)
    np.testing.assert_array_equal(values, fitted.transform(rows))
    assert pullback(np.ones((1, 3, 5)))[0, 1].tolist() == [1, 1, 0, 1, 1]


def test_chain_splits_a_pipeline_and_looks_into_nested_ones():
    inner = Pipeline([("poly", PolynomialFeatures(2)), ("model", LogisticRegression())])
    outer = Pipeline([("scale", StandardScaler()), ("skip", "passthrough"), ("none", None), ("rest", inner)])
    outer.fit(X, Y)
    into, last = chain(outer)
    assert type(last).__name__ == "LogisticRegression"
    np.testing.assert_allclose(into(X)[0], _before(outer, X), rtol=1e-12)
    plain = LogisticRegression().fit(X, Y)
    assert chain(plain)[1] is plain and chain(plain)[0](X)[0] is X


def _before(outer, rows):
    return outer.named_steps["rest"].named_steps["poly"].transform(outer.named_steps["scale"].transform(rows))


def test_unknown_transformers_and_subclasses_are_refused():
    class Custom(StandardScaler):
        def transform(self, X, copy=None):
            return super().transform(X) ** 2

    with pytest.raises(Unsupported, match="the derivative of the transformer Custom is not known"):
        transformer(Custom().fit(X))
    with pytest.raises(Unsupported, match="FunctionTransformer"):
        chain(make_pipeline(FunctionTransformer(np.sort), LogisticRegression()).fit(X[:, :1], Y))
