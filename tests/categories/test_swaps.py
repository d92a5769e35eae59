"""Laws of category swaps, a slow twin, and what happens to levels nobody has seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from texplainer import Explanation, TExplainer
from texplainer.errors import InputError, UndefinedRowsWarning

ATTRIBUTIONS = ("slope", "variation", "gradient")
COLOURS, SIZES = ["blue", "grey", "red"], ["l", "m", "s", "xl"]
COLOUR = {"blue": -1.0, "grey": 0.25, "red": 2.0}
SIZE = {"l": 0.5, "m": 0.0, "s": -1.5, "xl": 3.0}


def table(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.normal(size=rows),
            "colour": random.choice(COLOURS, rows, p=[0.5, 0.3, 0.2]),
            "income": random.uniform(-1, 1, rows),
            "size": random.choice(SIZES, rows),
        }
    )


def additive(frame: pd.DataFrame) -> np.ndarray:
    return (
        2 * frame["age"].to_numpy()
        - frame["income"].to_numpy()
        + frame["colour"].map(COLOUR).to_numpy(dtype=float)
        + frame["size"].map(SIZE).to_numpy(dtype=float)
    )


def tangled(frame: pd.DataFrame) -> np.ndarray:
    """Interactions between a number and a category, and between two categories."""
    colour = frame["colour"].map(COLOUR).to_numpy(dtype=float)
    size = frame["size"].map(SIZE).to_numpy(dtype=float)
    return np.tanh(frame["age"].to_numpy() * colour) + 0.3 * colour * size - frame["income"].to_numpy() ** 2


# ---------------------------------------------------------------- the slow, obvious twin


def twin(model, background: pd.DataFrame, row: pd.Series, name: str, attribution: str) -> float:
    """Section by section what `swaps` says of one nominal feature and one row."""
    here = float(model(row.to_frame().T.infer_objects())[0])
    there, share = {}, {}
    for level in sorted(set(background[name])):
        moved = row.copy()
        moved[name] = level
        there[level] = float(model(moved.to_frame().T.infer_objects())[0])
        share[level] = float((background[name] == level).mean())
    mean = sum(share[c] * there[c] for c in share)
    effect = np.sqrt(sum(share[c] * (there[c] - here) ** 2 for c in share))
    return effect if attribution == "variation" else here - mean


@pytest.mark.parametrize("attribution", ATTRIBUTIONS)
def test_swaps_equal_the_slow_twin(attribution):
    background, rows = table(40), table(3, seed=1)
    explanation = TExplainer(tangled, background, attribution=attribution)(rows)
    for i in range(len(rows)):
        for name in ("colour", "size"):
            expected = twin(tangled, background, rows.iloc[i], name, attribution)
            assert explanation[i, name].values == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_level_effects_are_kept_and_sliced_and_saved(tmp_path):
    background, rows = table(40), table(6, seed=1)
    explanation = TExplainer(tangled, background)(rows)
    colour = explanation.categories["colour"]
    assert colour.levels == tuple(COLOURS) and colour.effects.shape == (6, 3, 1)
    np.testing.assert_allclose(colour.frequencies, [(background["colour"] == c).mean() for c in COLOURS])
    here = tangled(rows)
    for c, level in enumerate(COLOURS):
        np.testing.assert_allclose(
            colour.effects[:, c, 0], tangled(rows.assign(colour=level)) - here, atol=1e-15
        )
    part = explanation[2:4, ["colour"]]
    np.testing.assert_array_equal(part.categories["colour"].effects, colour.effects[2:4])
    explanation.save(tmp_path / "e.npz")
    back = Explanation.load(tmp_path / "e.npz").categories["size"]
    np.testing.assert_array_equal(back.effects, explanation.categories["size"].effects)
    assert list(explanation.data[0]) == rows.iloc[0].tolist()


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("attribution", ("slope", "shapley", "variation", "gradient"))
def test_an_unused_category_gets_exactly_zero(attribution):
    random = np.random.default_rng(0)
    frame = table(200).assign(noise=random.choice(["p", "q", "r"], 200))
    y = (additive(frame) > 0).astype(int)
    encode = make_column_transformer(
        (OneHotEncoder(), ["colour", "size"]), ("passthrough", ["age", "income"])
    )  # drops "noise"
    network = MLPClassifier((16,), max_iter=60, random_state=0, tol=1e-2).fit(encode.fit_transform(frame), y)
    model = make_pipeline(encode, network)
    explanation = TExplainer(model, frame, attribution=attribution)(frame[:2])
    assert explanation.feature_names[4] == "noise"
    assert np.all(explanation[:, "noise"].values == 0)
    assert np.all(np.abs(explanation[:, "colour"].values) > 0)


def test_a_difference_within_the_model_s_rounding_is_no_effect():
    def model(frame):  # matrix products round a row by its place in the batch
        return 1.0 + frame["age"].to_numpy() ** 2 + np.finfo(float).eps * (np.arange(len(frame)) % 3)

    assert np.all(TExplainer(model, table())(table(5))[:, ["colour", "size"]].values == 0)


@settings(max_examples=3, deadline=None)
@given(order=st.permutations(COLOURS), names=st.permutations(["p", "b", "zz"]), seed=st.integers(0, 99))
@pytest.mark.parametrize("attribution", ("slope", "shapley", "variation", "gradient"))
def test_relabelling_and_reordering_levels_change_nothing(attribution, order, names, seed):
    background, rows = table(30, seed), table(5, seed + 1)
    expected = TExplainer(tangled, background, attribution=attribution)(rows).values
    turned = pd.CategoricalDtype(list(order))
    reordered = TExplainer(
        lambda t: tangled(t.astype({"colour": object})),
        background.astype({"colour": turned}),
        attribution=attribution,
    )
    np.testing.assert_allclose(
        reordered(rows.astype({"colour": turned})).values, expected, rtol=1e-9, atol=1e-12
    )
    new = dict(zip(COLOURS, names, strict=True))
    old = {v: k for k, v in new.items()}
    relabelled = TExplainer(
        lambda t: tangled(t.assign(colour=t["colour"].map(old))),
        background.assign(colour=background["colour"].map(new)),
        attribution=attribution,
    )
    np.testing.assert_allclose(
        relabelled(rows.assign(colour=rows["colour"].map(new))).values, expected, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("attribution", ("slope", "shapley", "variation", "gradient"))
def test_one_hot_and_native_encodings_of_one_model_agree(attribution):
    frame = table(200)[["age", "income", "colour", "size"]]  # the order get_dummies leaves them in
    y = (tangled(frame) > 0).astype(int)
    wide = pd.get_dummies(frame, columns=["colour", "size"], dtype=float)
    logistic = LogisticRegression().fit(wide, y)
    encode = make_column_transformer(
        ("passthrough", ["age", "income"]), (OneHotEncoder(sparse_output=False), ["colour", "size"])
    ).fit(frame)
    native = make_pipeline(encode, LogisticRegression().fit(encode.transform(frame), y))
    one = TExplainer(logistic, wide, attribution=attribution, smoothing=0)(wide[:20])
    other = TExplainer(native, frame, attribution=attribution, smoothing=0)(frame[:20])
    assert one.feature_names == tuple(frame.columns) and one.values.shape == (20, 4)
    for name in frame.columns:
        np.testing.assert_allclose(one[:, name].values, other[:, name].values, rtol=1e-6, atol=1e-7)
    assert list(one[:, "colour"].data) == frame["colour"][:20].tolist()


@pytest.mark.parametrize("attribution", ("gradient", "shapley"))
@pytest.mark.parametrize("declare", ({"flag": ["flag"]}, ["flag"], {"flag": "nominal"}), ids=str)
def test_a_binary_column_in_a_linear_model_gets_what_its_coefficient_says(attribution, declare):
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"x": random.normal(size=80), "flag": (random.random(80) < 0.3).astype(int)})
    linear = LinearRegression().fit(frame, 3 * frame["x"] - 1.7 * frame["flag"])
    as_number = TExplainer(linear, frame, attribution=attribution, categorical=())(frame).values
    as_category = TExplainer(linear, frame, attribution=attribution, categorical=declare)(frame).values
    if declare == {"flag": "nominal"} and attribution == "gradient":
        # without an order there is no direction: each row's own level against the average one
        as_number[:, 1] *= frame["flag"] - frame["flag"].mean()
    np.testing.assert_allclose(as_category, as_number, rtol=1e-9, atol=1e-12)


def test_local_is_the_coefficient_times_the_spread_of_a_binary_column():
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"x": random.normal(size=80), "flag": random.random(80) < 0.3})
    linear = LinearRegression().fit(frame, 3 * frame["x"] - 1.7 * frame["flag"])
    explainer = TExplainer(linear, frame, attribution="slope")
    assert "flag (detected by dtype)" in repr(explainer)
    np.testing.assert_allclose(explainer(frame)[:, "flag"].values, -1.7 * frame["flag"].std(ddof=0))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 999))
def test_swap_contributions_of_an_additive_model_add_up(seed):
    background, rows = table(50, seed), table(7, seed + 1)
    explanation = TExplainer(additive, background, attribution="shapley")(rows)
    np.testing.assert_allclose(
        explanation.values.sum(axis=1), additive(rows) - additive(background).mean(), atol=1e-9
    )
    np.testing.assert_allclose(explanation.diagnostics.completeness, 0, atol=1e-9)


@pytest.mark.parametrize("batch_rows", (1, 7, 50))
def test_chunks_change_no_bit(batch_rows):
    background, rows = table(30), table(3, seed=1)
    whole = TExplainer(tangled, background)(rows)
    parts = TExplainer(tangled, background, batch_rows=batch_rows)(rows)
    np.testing.assert_array_equal(whole.values, parts.values)


# ---------------------------------------------------------------- order, and other features beside


def ordered(rows: int = 50) -> pd.DataFrame:
    random = np.random.default_rng(0)
    grade = pd.Categorical.from_codes(
        random.integers(0, 4, rows), ["low", "mid", "high", "top"], ordered=True
    )
    return pd.DataFrame({"x": random.normal(size=rows), "grade": grade})


def test_ordered_levels_use_their_neighbours():
    frame, worth = ordered(), np.array([0.0, 1.0, 4.0, 9.0])
    explanation = TExplainer(
        lambda t: t["x"].to_numpy() + worth[t["grade"].cat.codes], frame, attribution="gradient"
    )(frame)
    slope = np.array([1.0, 2.0, 4.0, 5.0])  # (1-0)/1, (4-0)/2, (9-1)/2, (9-4)/1
    np.testing.assert_allclose(explanation[:, "grade"].values, slope[frame["grade"].cat.codes])
    share = TExplainer(
        lambda t: worth[t["grade"].cat.codes],
        frame,
        attribution="slope",
        categorical={"grade": "nominal"},
    )(frame)
    np.testing.assert_allclose(
        share[:, "grade"].values, worth[frame["grade"].cat.codes] - worth[frame["grade"].cat.codes].mean()
    )


def test_numbered_levels_keep_their_distances():
    frame = pd.DataFrame({"x": np.linspace(0, 1, 40), "rooms": np.tile([1, 2, 5, 9], 10)})
    explainer = TExplainer(
        lambda t: 3.0 * np.asarray(t)[:, 1],
        frame,
        categorical={"rooms": "ordinal"},
        attribution="gradient",
    )
    np.testing.assert_allclose(explainer(frame)[:, "rooms"].values, 3.0)


# ---------------------------------------------------------------- unseen, absent and missing levels


def test_a_level_the_background_never_saw_is_explained_if_the_model_takes_it():
    worth = {**COLOUR, "green": 100.0}
    model = lambda t: t["age"].to_numpy() + t["colour"].map(worth).to_numpy(dtype=float)  # noqa: E731
    explainer = TExplainer(model, table())
    rows = table(3).assign(colour=["red", "green", "blue"])
    explanation = explainer(rows)
    np.testing.assert_allclose(explanation.predictions, model(rows))
    mean = table()["colour"].map(COLOUR).mean()
    assert explanation[1, "colour"].values == pytest.approx(100.0 - mean)
    assert explanation.data[1, explanation.feature_names.index("colour")] == "green"


def test_a_level_never_seen_is_explained_beside_one_hot_columns():
    background = pd.get_dummies(table().assign(town=["A", "B"] * (len(table()) // 2)), columns=["colour"])
    town = {"A": 1.0, "B": 2.0, "C": 5.0}
    model = lambda t: t["age"].to_numpy() + t["town"].map(town).to_numpy(dtype=float)  # noqa: E731
    rows = background[:2].assign(town=["C", "A"])
    explanation = TExplainer(model, background)(rows)
    np.testing.assert_allclose(explanation.predictions, model(rows))
    assert explanation[:, "town"].data.ravel().tolist() == ["C", "A"]


@pytest.mark.parametrize("attribution", ("slope", "shapley", "variation"))
def test_a_number_never_seen_among_codes_is_explained_of_trees(attribution):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120), "code": rng.integers(0, 4, size=120)})
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(frame, frame["x"] * frame["code"])
    rows = frame[:3].assign(code=[1, 7, 2])
    found = TExplainer(model, frame, categorical=["code"], attribution=attribution)(rows)
    np.testing.assert_allclose(found.predictions, model.predict(rows))
    assert np.isfinite(found.values).all()
    if attribution == "shapley":
        np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, found.predictions)


@pytest.mark.parametrize("members", (1, 3))
def test_a_level_never_seen_is_a_missing_value_to_histogram_boosting(members):
    rng = np.random.default_rng(1)
    shares = rng.permutation(np.repeat([*"pqrs"], [140, 50, 25, 25]))
    frame = pd.DataFrame({"x": rng.normal(size=240), "town": pd.Categorical(shares)})
    y = frame["x"] * frame["town"].cat.codes + 3 * (frame["town"] == "p")
    one = HistGradientBoostingRegressor(max_iter=5, categorical_features="from_dtype")
    model = one if members == 1 else VotingRegressor([(str(i), one) for i in range(members)])
    model.fit(frame, y)
    towns = pd.Categorical(["p", "elsewhere", None, "elsewhere"], [*"pqrs", "elsewhere"])
    rows = frame[:4].assign(town=towns)
    explainer = TExplainer(model, frame)
    assert explainer.engine.name == "tree"
    found = explainer(rows, attribution="shapley")
    np.testing.assert_allclose(found.predictions, model.predict(rows))
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, found.predictions)


@pytest.mark.parametrize("levels", (["low", "mid", "high", "top"], [10, 20, 30, 40]), ids=("text", "numbers"))
def test_the_order_of_levels_and_those_never_used_mean_nothing_to_histogram_boosting(levels):
    rng = np.random.default_rng(2)
    codes = rng.choice([0, 2, 3], size=200)
    frame, worth = pd.DataFrame({"x": rng.normal(size=200)}), np.array([1.0, 5.0, -2.0, 3.0])
    found = []
    for order in (levels, levels[::-1], sorted(levels), levels[2:] + levels[:1]):
        drawn = pd.Categorical(np.array(levels)[codes], categories=order)
        table = frame.assign(kind=drawn)
        model = HistGradientBoostingRegressor(max_iter=8, categorical_features="from_dtype")
        model.fit(table, frame["x"] * worth[codes])
        explainer = TExplainer(model, table, attribution="shapley")
        assert explainer.engine.name == "tree"
        found.append(explainer(table[:20]).values)
    for values in found[1:]:
        np.testing.assert_allclose(values, found[0], atol=1e-12)


def test_a_level_the_model_does_not_take_makes_its_row_undefined_alone():
    def model(t: pd.DataFrame) -> np.ndarray:
        return t["age"].to_numpy() + np.array([COLOUR[c] for c in t["colour"]])

    rows = table(3).assign(colour=["red", "green", "blue"])
    with pytest.warns(UndefinedRowsWarning, match=r"1 of 3 rows are undefined; row 1"):
        explanation = TExplainer(model, table())(rows)
    assert list(explanation.diagnostics.stability == "undefined") == [False, True, False]


def test_impossible_rows_are_refused_with_their_cells_and_a_remedy():
    wide = pd.get_dummies(table(), dtype=float)
    explainer = TExplainer(lambda t: np.asarray(t).sum(axis=1), wide)
    with pytest.raises(
        InputError, match=r"row 0: the one-hot columns .*a combination that does not occur in the background"
    ):
        explainer(wide[:2].assign(colour_red=1.0, colour_blue=1.0))


def test_a_level_absent_from_the_background_is_compared_with_those_present():
    kinds = pd.CategoricalDtype(["a", "b", "new"])
    background = pd.DataFrame(
        {"x": np.linspace(0, 1, 20), "kind": pd.Categorical(["a", "b"] * 10, dtype=kinds)}
    )
    worth = {"a": 1.0, "b": 3.0, "new": 10.0}
    model = lambda t: t["x"].to_numpy() + t["kind"].astype(object).map(worth).to_numpy(dtype=float)  # noqa: E731
    row = pd.DataFrame({"x": [0.5], "kind": pd.Categorical(["new"], dtype=kinds)})
    for attribution in ("slope", "gradient"):
        explanation = TExplainer(model, background, attribution=attribution)(row)
        assert explanation[0, "kind"].values == pytest.approx(8.0)
    assert explanation.categories["kind"].levels == ("a", "b")  # never swapped in where the data has none


def test_a_missing_level_is_a_level_of_its_own():
    frame = table(40)
    frame.loc[:9, "colour"] = None
    model = lambda t: t["colour"].map(COLOUR).fillna(7.0).to_numpy(dtype=float) + t["age"].to_numpy()  # noqa: E731
    explanation = TExplainer(model, frame, attribution="slope")(frame)
    assert explanation.categories["colour"].levels == (*COLOURS, None)
    assert explanation.categories["colour"].frequencies[-1] == 0.25
    worth = frame["colour"].map(COLOUR).fillna(7.0).to_numpy(dtype=float)
    np.testing.assert_allclose(explanation[:, "colour"].values, worth - worth.mean(), atol=1e-9)


@pytest.mark.parametrize("mark", (None, np.nan), ids=str)
def test_missing_levels_reach_an_encoder_as_they_came(mark):
    frame = table(80)
    frame["colour"] = np.where(np.arange(80) < 20, mark, frame["colour"].astype(object))
    frame["colour"] = frame["colour"].astype(object)
    model = make_pipeline(
        make_column_transformer(("passthrough", ["age", "income"]), (OneHotEncoder(), ["colour", "size"])),
        LogisticRegression(),
    ).fit(frame, np.arange(80) % 2)
    assert np.isfinite(TExplainer(model, frame)(frame[:30]).values).all()


def test_a_missing_level_the_model_refuses_leaves_the_other_rows_explained():
    frame = table(200)
    model = make_pipeline(
        make_column_transformer(("passthrough", ["age", "income"]), (OneHotEncoder(), ["colour", "size"])),
        LogisticRegression(),
    ).fit(frame, additive(frame) > 0)
    rows = table(3, seed=5).assign(colour=["red", None, "blue"])
    with pytest.warns(UndefinedRowsWarning, match="'colour' is nan and the model does not accept missing"):
        explanation = TExplainer(model, frame)(rows)
    assert list(explanation.diagnostics.stability == "undefined") == [False, True, False]
    assert np.isfinite(explanation.values[[0, 2]]).all()


def test_several_outputs_and_the_predicted_class():
    frame = table(150)
    three = np.digitize(additive(frame), [-1, 2])
    model = make_pipeline(
        make_column_transformer(("passthrough", ["age", "income"]), (OneHotEncoder(), ["colour", "size"])),
        LogisticRegression(),
    ).fit(frame, three)
    every = TExplainer(model, frame)(frame[:10])
    own = TExplainer(model, frame, output="predicted")(frame[:10])
    assert every.values.shape == (10, 4, 3) and every.categories["size"].effects.shape == (10, 4, 3)
    pick = own.diagnostics.predicted_class
    np.testing.assert_array_equal(own.values, every.values[np.arange(10), :, pick])
    effects = every.categories["size"].effects[np.arange(10), :, pick]
    np.testing.assert_array_equal(own.categories["size"].effects[:, :, 0], effects)
