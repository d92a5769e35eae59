"""Which columns are categories: by dtype, by the model's encoders, by one-hot structure, by declaration."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from texplainer import TExplainer
from texplainer.categories.detect import learn_with_categories, onehot_groups
from texplainer.errors import BackgroundWarning, InputError
from texplainer.metrics.evidence.features import describe_features
from texplainer.metrics.evidence.perturbations import neighbourhood
from texplainer.models.libraries import encoded_columns
from texplainer.tables import onehot


def one_hot_table(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.normal(size=rows),
            "Saving accounts": random.choice(["little", "rich", "none"], rows),
            "flag": random.integers(0, 2, rows),
            "Purpose": random.choice(["car", "radio_tv", "repairs"], rows),
        }
    )
    return pd.get_dummies(frame, columns=["Saving accounts", "Purpose"])


# ---------------------------------------------------------------- one-hot structure


def test_named_one_hot_columns_are_found_and_shown_by_level():
    frame = one_hot_table()
    schema, rows, why = learn_with_categories(frame, None, None, None)
    assert schema.names == ("age", "flag", "Saving accounts", "Purpose")
    assert schema.levels[3] == ("car", "radio_tv", "repairs", "none of these")
    assert why["Purpose"] == "one-hot columns found in the background" and "flag" not in why
    back = schema.write(rows)
    pd.testing.assert_frame_equal(back.astype(float), frame.astype(float))
    np.testing.assert_array_equal(schema.read(frame), rows)


def test_unnamed_one_hot_columns_are_left_alone_with_a_word():
    array = one_hot_table().to_numpy(dtype=float)
    with pytest.warns(BackgroundWarning, match=r"'x2..x4', 'x5..x7'.*does not have column names"):
        schema, _, _ = learn_with_categories(array, None, None, None)
    assert schema.names == tuple(f"x{j}" for j in range(8))
    schema, rows, _ = learn_with_categories(array, None, {"kind": [2, 3, 4]}, None)
    np.testing.assert_array_equal(schema.wide(rows), array)
    assert schema.levels[2] == ("x2", "x3", "x4", "none of these")


def test_the_features_do_not_hang_on_the_sample():
    """Rare levels are absent from most samples; their columns belong to the group by their names."""
    random = np.random.default_rng(0)
    kind = random.choice(9, 5000, p=[0.4, 0.3, 0.2, 0.09, *[0.002] * 5])
    table = pd.DataFrame(np.eye(9)[kind], columns=[f"kind_{k}" for k in range(9)])
    found = set()
    for seed in range(30):
        sample = table.sample(200, random_state=seed)
        schema, _, _ = learn_with_categories(sample, None, None, None)
        found.add((schema.names, *schema.groups.values()))
        assert np.array_equal(schema.wide(schema.read(table)), table)  # rows of unseen levels can be read
    assert found == {(("kind",), tuple(range(9)))}


def test_dropped_levels_are_found_but_not_by_chance():
    random = np.random.default_rng(0)
    kind = random.integers(0, 4, 100)
    exclusive = {f"kind_{k}": (kind == k).astype(float) for k in (1, 2, 3)}
    rare = {"has_boat": np.eye(100)[3], "has_plane": np.eye(100)[50]}
    frame = pd.DataFrame(exclusive | rare | {"is_a": kind % 2.0, "is_b": (kind > 1) * 1.0})
    schema, rows, _ = learn_with_categories(frame, None, None, None)
    assert schema.names == ("kind", "has_boat", "has_plane", "is_a", "is_b")
    assert schema.levels[0] == ("1", "2", "3", "none of these")
    np.testing.assert_array_equal(schema.wide(rows), frame)


def test_detection_is_off_when_asked_and_for_a_handful_of_rows():
    frame = one_hot_table()
    assert learn_with_categories(frame.astype(float), None, (), None)[0].width == frame.shape[1]
    assert not onehot_groups(frame.columns, frame.to_numpy(dtype=float)[:10], True)
    explainer = TExplainer(lambda t: np.asarray(t, float).sum(axis=1), frame)
    assert "Saving accounts, Purpose (one-hot columns found in the background)" in repr(explainer)


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 5), min_size=1, max_size=4),
    rows=st.integers(40, 80),
    seed=st.integers(0, 2**32 - 1),
)
def test_folding_and_unfolding_are_inverse(sizes, rows, seed):
    random = np.random.default_rng(seed)
    parts, groups, at = [random.normal(size=(rows, 1))], {}, 1
    for g, size in enumerate(sizes):
        codes = np.concatenate([np.arange(size), random.integers(0, size, rows - size)])
        kept = (
            np.eye(size)[:, 1:] if g % 2 else np.eye(size)
        )  # every other group with its first level dropped
        parts.append(kept[random.permutation(codes)])
        groups[f"g{g}"] = tuple(range(at, at + kept.shape[1]))
        at += kept.shape[1]
    wide = np.hstack(parts)
    layout, labels = onehot.layout_of(groups, wide)
    narrow = layout.to_codes(wide, [""] * at)
    assert narrow.shape == (rows, 1 + len(sizes)) and labels == (0, *groups)
    np.testing.assert_array_equal(layout.to_cells(narrow), wide)
    for j, group in layout.groups.items():
        assert set(narrow[:, j]) <= set(range(len(group.patterns)))


def test_no_impossible_row_is_ever_given_to_the_model():
    frame = one_hot_table().astype(float)
    allowed = {tuple(r) for r in frame.iloc[:, 2:].to_numpy()}
    combos = {(a[:3], b[3:]) for a in allowed for b in allowed}

    def model(table):
        cells = table.iloc[:, 2:].to_numpy()
        assert all((tuple(r[:3]), tuple(r[3:])) in combos for r in cells)
        return cells @ np.arange(6.0) + table["age"].to_numpy() * cells[:, 0]

    for attribution in ("slope", "shapley", "variation", "gradient"):
        TExplainer(model, frame, attribution=attribution)(frame[:3])


def test_exact_engines_serve_one_hot_models():
    frame = one_hot_table(300).astype(float)
    logistic = LogisticRegression().fit(frame, frame["Purpose_car"] + frame["age"] > 0.3)
    exact = TExplainer(logistic, frame, attribution="gradient", smoothing=0)
    assert exact.engine.name == "closed-form"
    ladder = TExplainer(logistic, frame, attribution="gradient", engine="finite-difference", smoothing=0)
    np.testing.assert_allclose(exact(frame[:20]).values, ladder(frame[:20]).values, rtol=1e-6, atol=1e-9)
    assert np.all(exact(frame[:5])[:, "Purpose"].gradient == 0)


def test_standardised_dummies_fold_as_declared_groups():
    wide = one_hot_table(200).astype(float)
    scaled = pd.DataFrame(StandardScaler().fit_transform(wide), columns=wide.columns)
    linear = LinearRegression().fit(scaled, wide["Purpose_car"] * 3 + wide["age"])
    plain = LinearRegression().fit(wide, wide["Purpose_car"] * 3 + wide["age"])
    groups = {name: [c for c in wide if c.startswith(name)] for name in ("Purpose", "Saving accounts")}
    one = TExplainer(linear, scaled, categorical=groups, attribution="slope")(scaled[:10])
    other = TExplainer(plain, wide, categorical=groups, attribution="slope")(wide[:10])
    np.testing.assert_allclose(one.values, other.values, atol=1e-7)


# ---------------------------------------------------------------- dtypes and the model's own word


@pytest.mark.parametrize("make", (pd.DataFrame, pl.DataFrame), ids=("pandas", "polars"))
def test_text_and_booleans_are_categories_in_any_frame(make):
    frame = make({"n": [1.0, 2.0, 3.0] * 8, "t": ["a", "b", "b"] * 8, "b": [True, False, True] * 8})

    def model(table):
        return np.array([len(str(t)) + 2.0 * b for t, b in zip(table["t"], table["b"], strict=True)])

    explanation = TExplainer(model, frame, attribution="gradient")(frame[:3])
    assert set(explanation.categories) == {"t", "b"}
    np.testing.assert_allclose(explanation[:, "b"].values, 2.0)


def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "job": random.integers(0, 4, 120),
            "age": random.normal(size=120),
            "grade": random.integers(1, 4, 120),
        }
    )
    return frame, (frame["job"] + frame["age"] > 1.5).astype(int).to_numpy()


ENCODING = {
    "by name": lambda: make_column_transformer((OneHotEncoder(), ["job", "grade"]), remainder="passthrough"),
    "by position": lambda: make_column_transformer((OrdinalEncoder(), [0, 2]), remainder="passthrough"),
    "by slice": lambda: make_column_transformer((OrdinalEncoder(), slice(0, 3, 2)), ("passthrough", [1])),
    "by mask": lambda: make_column_transformer((OrdinalEncoder(), [True, False, True]), ("passthrough", [1])),
    "by dtype": lambda: make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_include="int")), remainder="passthrough"
    ),
    "after an imputer": lambda: make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["job", "grade"]),
        remainder=StandardScaler(),
    ),
}


@pytest.mark.parametrize("how", ENCODING)
def test_integer_columns_a_pipeline_encodes_are_categories(how):
    frame, y = mixed()
    model = make_pipeline(ENCODING[how](), LogisticRegression()).fit(frame, y)
    assert encoded_columns(model, tuple(frame.columns)) == ("job", "grade")
    explainer = TExplainer(model, frame)
    assert "job, grade (encoded by the model)" in repr(explainer)
    assert explainer(frame[:3]).categories["job"].levels == (0, 1, 2, 3)


def integer_coded(library: str, X: np.ndarray, y: np.ndarray):
    if library == "lightgbm":
        from lightgbm import LGBMClassifier

        small = {"min_child_samples": 5, "min_data_per_group": 5, "cat_smooth": 1.0}
        return LGBMClassifier(n_estimators=5, verbose=-1, **small).fit(X, y, categorical_feature=[0, 2])
    if library == "xgboost":
        from xgboost import XGBClassifier

        kinds = ["c", "q", "c"]
        return XGBClassifier(n_estimators=5, enable_categorical=True, feature_types=kinds).fit(X, y)
    if library == "catboost":
        from catboost import CatBoostClassifier

        rows = pd.DataFrame(X).astype({0: int, 2: int}).astype(object).to_numpy()
        model = CatBoostClassifier(5, cat_features=[0, 2], verbose=0, allow_writing_files=False)
        return model.fit(rows, y)
    return HistGradientBoostingClassifier(max_iter=5, categorical_features=[0, 2]).fit(X, y)


@pytest.mark.parametrize("library", ("lightgbm", "xgboost", "catboost", "sklearn"))
def test_integer_coded_columns_of_boosted_trees_are_categories(library):
    frame, y = mixed()
    array = frame.to_numpy(dtype=float)
    model = integer_coded(library, array, y)
    given_ = array if library != "catboost" else frame.astype(object).to_numpy()
    explanation = TExplainer(model, given_, feature_names=list(frame.columns))(given_[:4])
    assert list(explanation.categories) == ["job", "grade"]
    assert np.abs(explanation[:, "job"].values).max() > 0
    assert np.all(explanation[:, "job"].gradient == 0)


# ---------------------------------------------------------------- declarations


def test_declarations_by_name_by_position_and_by_word():
    frame, _ = mixed()
    model = lambda t: np.asarray(t, dtype=float)[:, 0] ** 2  # noqa: E731
    for declared in (["job"], [0], {"job": "nominal"}, "job"):
        assert list(TExplainer(model, frame, categorical=declared)(frame[:2]).categories) == ["job"]
    text = frame.assign(flag=frame["grade"] > 2)
    assert list(TExplainer(model, text)(text[:2]).categories) == ["flag"]
    assert not TExplainer(model, text, categorical={"flag": "numeric"})(text[:2]).categories


BAD = {
    "an unknown column": (["jop"], "'jop' is not in the table"),
    "an unknown word": ({"job": "ordered"}, "'job': 'ordered'; expected a list of columns or one of nominal"),
    "an empty group": ({"G": []}, "group 'G' is empty"),
    "an unknown member": ({"G": ["job", "jop"]}, "'jop' is not in the table"),
    "text as a number": ({"word": "numeric"}, "hold text or a category dtype, not numbers"),
    "a group named like a column": ({"age": ["job", "grade"]}, "'age' has the name of a column outside it"),
    "a column in two groups": ({"G": ["job", "grade"], "H": ["grade"]}, "'grade' is in two groups"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_declarations_say_what_is_wrong(name):
    frame = mixed()[0].assign(word=["a", "b"] * 60)
    declared, message = BAD[name]
    with pytest.raises(InputError, match=message):
        TExplainer(lambda t: np.zeros(len(t)), frame, categorical=declared)


# ---------------------------------------------------------------- hooks for the evaluation suite


def test_metrics_move_a_group_as_one_feature():
    frame = one_hot_table().astype(float).assign(job=np.arange(60) % 3)
    purpose = tuple(c for c in frame if c.startswith("Purpose"))
    schema, rows, _ = learn_with_categories(
        frame, None, {"Purpose": purpose, "Flag": ["flag"], "job": "nominal"}, None
    )
    assert schema.groups == {"Purpose": (5, 6, 7), "Flag": (1,)}
    wide = schema.wide(rows)
    levels = {j: len(own) for j, own in schema.inner.levels.items()}
    features = describe_features(schema.inner.names, wide, schema.groups, levels)
    assert features.names[-2:] == ("Purpose", "job") and not features.numeric[[1, 5, 6, 7, 8]].any()
    away = neighbourhood(wide[:5], lambda r: np.zeros(len(r), int), wide, features, flip_share=0.5).rows
    cells = away[..., 5:8].reshape(-1, 3)
    assert np.all(cells.sum(axis=1) == 1) and len(np.unique(cells, axis=0)) == 3
