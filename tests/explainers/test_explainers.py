"""Other explainers: the contract of every line of the table, and what makes each comparison fair."""

import random

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from texplainer import Explanation, explainers
from texplainer.errors import InputError, Unsupported
from texplainer.explainers import EXPLAINERS

pytest.importorskip("shap")
pytest.importorskip("lime")
torch = pytest.importorskip("torch")
pytest.importorskip("captum")

X = np.random.default_rng(0).random((300, 4))
Y = (X @ [2.0, -1.0, 0.5, 0.0] + X[:, 0] * X[:, 1] > 0.6).astype(int)
UNSEEDED = tuple(name for name in EXPLAINERS if "unseeded" in name or name.endswith("_default"))
FAST = {name: {"samples": 200} for name in EXPLAINERS if name.startswith("lime")}
TREE_ONLY = ("shap_tree", "shap_tree_margin")
BOOSTERS_ONLY = ("shap_tree_path", "own_contributions", "woodelf", "treeig")
#: in no extra of ours; their own tests run where they are installed
OPTIONAL = {name: name.partition("_")[0] for name in EXPLAINERS if name.startswith(("shapiq", "lightshap"))}
OPTIONAL |= {"woodelf": "woodelf", "treeig": "treeig"}


@pytest.fixture(scope="module")
def mlp():
    return MLPClassifier((16, 16), max_iter=200, random_state=0, learning_rate_init=0.01).fit(X, Y)


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, Y)


def states():
    name, keys, *rest = np.random.get_state()
    return random.getstate(), name, keys.tobytes(), *rest, torch.random.get_rng_state().numpy().tobytes()


@pytest.mark.parametrize("name", EXPLAINERS)
def test_every_explainer_keeps_the_contract(name, mlp, forest):
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    if name in BOOSTERS_ONLY:
        model = pytest.importorskip("xgboost").XGBClassifier(n_estimators=5, max_depth=3).fit(X, Y)
    else:
        model = forest if name in TREE_ONLY else mlp
    before = states()
    explain = EXPLAINERS[name](model, X[:60], **FAST.get(name, {}))
    explanation = explain(X[:3])
    assert name in UNSEEDED or states() == before, "the global generators are untouched"
    assert isinstance(explanation, Explanation)
    assert explanation.values.shape == (3, 4) and np.isfinite(explanation.values).all()
    assert explanation.output_names == ("1",)
    assert np.isfinite(explanation.predictions).all() and np.isfinite(explanation.base_values)
    assert explanation.diagnostics["evaluations"].shape == (3,)
    if name not in UNSEEDED:
        alone = explain(X[2:3]).values
        assert alone == pytest.approx(explanation.values[2:3], rel=1e-5), "explained alike wherever it stands"


@pytest.mark.filterwarnings("ignore:.*converged.*")
@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_twin_is_exact(activation, classes):
    labels = Y if classes == 2 else Y + (X[:, 3] > 0.5)
    model = MLPClassifier((8, 8), activation=activation, max_iter=30, random_state=0).fit(X, labels)
    table = torch.tensor(X)
    assert explainers.torch_network(model, "probability")(table).detach().numpy() == pytest.approx(
        model.predict_proba(X), abs=1e-12
    )
    if classes == 2:
        p = model.predict_proba(X)[:, 1]
        assert explainers.torch_network(model, "log-odds")(table)[:, 1].detach().numpy() == pytest.approx(
            np.log(p / (1 - p)), abs=1e-9
        )


@pytest.mark.filterwarnings("ignore:.*converged.*")
def test_twins_of_regressors_and_scaled_pipelines():
    for scaler in (StandardScaler(), MinMaxScaler(), StandardScaler(with_mean=False)):
        model = make_pipeline(scaler, MLPRegressor(hidden_layer_sizes=(8,), max_iter=50, random_state=0)).fit(
            10 * X, X[:, 0]
        )
        ours = explainers.torch_network(model, "raw")(torch.tensor(10 * X)).detach().numpy()[:, 0]
        assert ours == pytest.approx(model.predict(10 * X), abs=1e-12)


def test_the_twin_draws_nothing(mlp):
    before = torch.random.get_rng_state()
    explainers.torch_network(mlp, "log-odds")
    assert torch.equal(before, torch.random.get_rng_state())


def test_deeplift_is_not_input_x_gradient(mlp):
    deeplift = explainers.deeplift(mlp, X)(X[:20]).values
    plain = explainers.input_x_gradient(mlp, X)(X[:20]).values
    assert np.abs(deeplift - plain).max() > 1e-3 * np.abs(plain).max()


@pytest.mark.parametrize("scale", ["log-odds", "probability"])
def test_integrated_gradients_and_deeplift_are_complete(mlp, scale):
    at_zero = torch.zeros(1, 4, dtype=torch.float64)
    start = explainers.torch_network(mlp, scale)(at_zero)[0, 1].item()
    for build in (explainers.integrated_gradients, explainers.deeplift):
        found = build(mlp, X, scale=scale)(X[:50])
        assert np.abs(found.values.sum(axis=1) - (found.predictions - start)).max() < 1e-3


def test_the_gradient_of_the_twin_is_the_model_s(mlp):
    h = 1e-6
    ours = explainers.gradient(mlp, X, scale="probability")(X[:5]).values
    for j in range(4):
        step = h * np.eye(4)[j]
        slope = (mlp.predict_proba(X[:5] + step) - mlp.predict_proba(X[:5] - step))[:, 1] / (2 * h)
        assert ours[:, j] == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("algorithm", ["exact", "kernel", "permutation", "auto"])
def test_shap_of_a_linear_model_is_closed_form(algorithm):
    model = LinearRegression().fit(X, X @ [3.0, -2.0, 1.0, 0.0])
    found = explainers.shap(model, X[:50], algorithm=algorithm)(X[:3])
    # phi_j = w_j (x_j - mean_j)
    assert found.values == pytest.approx((X[:3] - X[:50].mean(0)) * [3.0, -2.0, 1.0, 0.0], abs=1e-6)
    assert found.base_values + found.values.sum(1) == pytest.approx(found.predictions, abs=1e-6)


def test_kernel_shap_keeps_all_features():
    wide = np.random.default_rng(1).random((60, 14))
    model = LinearRegression().fit(wide, wide.sum(1))
    found = explainers.shap(model, wide[:20], algorithm="kernel")(wide[:1])
    assert (np.abs(found.values) > 1e-6).all()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "sklearn"])
@pytest.mark.parametrize("scale", ["probability", "log-odds"])
def test_tree_shap_adds_up(library, scale, forest):
    if library == "sklearn":
        model = forest
    else:
        module = pytest.importorskip(library)
        quiet = {"verbosity": -1} if library == "lightgbm" else {}
        kind = module.XGBClassifier if library == "xgboost" else module.LGBMClassifier
        model = kind(n_estimators=20, max_depth=3, **quiet).fit(X, Y)
    if library == "sklearn" and scale == "log-odds":
        pytest.skip("a forest's own raw score is its probability")
    for output in (0, 1):
        found = explainers.shap(model, X[:50], algorithm="tree", scale=scale, output=output)(X[:5])
        assert found.base_values + found.values.sum(1) == pytest.approx(found.predictions, abs=1e-4)


def test_a_regressor_has_no_labels_to_explain():
    model = LinearRegression().fit(X, X[:, 0])
    with pytest.raises(Unsupported, match="explains a class"):
        explainers.shap(model, X[:50], labels=True)


def test_shap_explains_hard_labels_on_demand(mlp):
    found = explainers.shap(mlp, X[:50], labels=True)(X[:5])
    assert set(found.predictions) <= {0.0, 1.0} and found.scale == "label"
    assert found.base_values + found.values.sum(1) == pytest.approx(found.predictions, abs=1e-9)


def test_lime_names_all_features_and_the_seed_decides():
    wide = np.random.default_rng(1).random((100, 14))
    model = LinearRegression().fit(wide, wide.sum(1))
    seeded = explainers.lime(model, wide, discretize=False, samples=300)
    assert (seeded(wide[:1]).values != 0).all()
    assert np.array_equal(seeded(wide[:2]).values, seeded(wide[:2]).values)
    free = explainers.lime(model, wide, discretize=False, samples=300, seed=None)
    assert not np.array_equal(free(wide[:1]).values, free(wide[:1]).values)


def test_misfits_are_kept_with_their_reason(forest):
    built = explainers.suite(forest, X[:50], ["deeplift", "constant", "shap_tree"])
    assert isinstance(built["deeplift"], explainers.Skipped) and "RandomForest" in built["deeplift"].reason
    with pytest.raises(Unsupported, match="is not a network"):
        built["deeplift"](X[:1])
    assert not isinstance(built["shap_tree"], explainers.Skipped)


def test_deeplift_refuses_functional_activations():
    class Functional(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

        def forward(self, rows):
            return self.two(torch.relu(self.one(rows)))

    with pytest.raises(Unsupported, match="does not register activations"):
        explainers.deeplift(Functional(), X[:20])
    assert explainers.gradient(Functional(), X[:20])(X[:2]).values.shape == (2, 4)


def test_a_torch_network_of_one_number_per_row():
    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))

        def forward(self, rows):
            return self.layers(rows)[:, 0]

    found = explainers.integrated_gradients(Flat(), X[:20])(X[:2])
    assert found.values.shape == (2, 4)


def test_a_function_of_the_user_s_own(mlp):
    explain = explainers.from_function(lambda table: np.asarray(table) * 2, mlp, X[:50], name="twice")
    assert np.array_equal(explain(X[:3]).values, 2 * X[:3])


def test_typos_and_undecided_outputs_are_named(mlp):
    with pytest.raises(InputError, match="did you mean 'deeplift'"):
        explainers.suite(mlp, X, ["deeplit"])
    three = RandomForestClassifier(5, random_state=0).fit(X, Y + (X[:, 3] > 0.5))
    with pytest.raises(InputError, match="3 outputs"):
        explainers.constant(three, X[:20])
    assert explainers.constant(three, X[:20], output=2)(X[:2]).output_names == ("2",)


# Other explainers that draw, and other explainers built again. -----------------------------------------------------------------


def test_smoothgrad_of_a_linear_network_is_its_gradient():
    model = MLPRegressor(hidden_layer_sizes=(4,), activation="identity", max_iter=200, random_state=0).fit(
        X, X @ [2.0, -1.0, 0.5, 0.0]
    )
    wide = X * [1.0, 10.0, 100.0, 1.0]  # noise is measured by each feature's own range
    found = explainers.smoothgrad(model, wide, samples=20)(wide[:3])
    exact = explainers.gradient(model, wide)(wide[:3])
    assert found.values == pytest.approx(exact.values, rel=1e-9)
    assert found.attribution == exact.attribution


def test_smoothgrad_averages_over_the_stated_noise(mlp):
    found = explainers.smoothgrad(mlp, X, samples=4000, noise=0.2)(X[:2]).values
    rng, width = np.random.default_rng(0), np.ptp(X, axis=0)
    gradient = explainers.gradient(mlp, X)
    for row, mean in zip(X[:2], found, strict=True):
        slopes = gradient(row + 0.2 * width * rng.normal(size=(4000, 4))).values
        bound = 5 * slopes.std(axis=0) * np.sqrt(2 / 4000)
        assert (np.abs(slopes.mean(axis=0) - mean) <= bound).all()


def test_gradient_shap_adds_up_on_a_linear_network():
    """One sample of a linear model: w (x - b) for some background row b, which adds up to f(x) - f(b)."""
    model = MLPRegressor(hidden_layer_sizes=(4,), activation="identity", max_iter=200, random_state=0).fit(
        X, X @ [2.0, -1.0, 0.5, 0.0]
    )
    found = explainers.gradient_shap(model, X[:1], samples=3)(X[1:4])
    way = found.predictions - model.predict(X[:1])
    assert found.values.sum(axis=1) == pytest.approx(way, rel=1e-9)


@pytest.mark.parametrize(
    "name", ["shap", "lime", "lime_continuous", "integrated_gradients_mean", "gradient_shap"]
)
def test_an_explainer_is_built_again_on_another_background_or_seed(name, mlp):
    options = FAST.get(name, {})
    explain = EXPLAINERS[name](mlp, X[:60], **options)
    here = explain(X[:2]).values
    assert explain.rebuilt()(X[:2]).values == pytest.approx(here, rel=1e-12)
    there = explain.rebuilt(background=X[60:120])(X[:2]).values
    assert there == pytest.approx(EXPLAINERS[name](mlp, X[60:120], **options)(X[:2]).values, rel=1e-12)
    assert not np.allclose(there, here)
    if explain.settings.get("seed") is not None and name != "shap":  # exact for four features
        assert not np.allclose(explain.rebuilt(seed=1)(X[:2]).values, here)


def test_what_an_explainer_answers_is_its_attribution(mlp, forest):
    from texplainer.metrics.evidence.explained import unit_of

    wanted = {"lime_continuous": "sd", "gradient": "slope", "smoothgrad": "slope", "saliency": "slope"}
    for name in (
        "shap",
        "lime",
        "lime_continuous",
        "integrated_gradients",
        "gradient_shap",
        "deeplift",
        *wanted,
    ):
        other = EXPLAINERS[name](mlp, X[:20], **FAST.get(name, {}))
        assert unit_of(other.attribution) == wanted.get(name, "share"), name


@pytest.mark.filterwarnings("ignore:.*converged.*")
def test_log_odds_of_several_classes_are_one_against_the_rest():
    model = MLPClassifier((8,), max_iter=50, random_state=0).fit(X, Y + (X[:, 3] > 0.5))
    p = model.predict_proba(X[:5])
    ours = explainers.torch_network(model, "log-odds")(torch.tensor(X[:5])).detach().numpy()
    assert ours == pytest.approx(np.log(p / (1 - p)), abs=1e-9)


def test_two_point_differences_are_per_sd_and_cost_2n():
    X = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 10.0, 0.1]
    seen = []

    def f(rows):
        seen.append(len(rows))
        return rows[:, 0] ** 3 + 2 * rows[:, 1]

    explainer = explainers.two_point(f, X)
    before = sum(seen)
    found = explainer(X[:5])
    sd = explainer.background.unit
    h = 0.25 * sd[0]
    cubed = ((X[:5, 0] + h) ** 3 - (X[:5, 0] - h) ** 3) / 0.5
    np.testing.assert_allclose(
        found.values, np.stack([cubed, 0 * cubed + 2 * sd[1], 0 * cubed], 1), atol=1e-9
    )
    assert sum(seen) - before == 5 * (2 * 3 + 1) and np.all(found.diagnostics.evaluations == 6)
    with pytest.raises(InputError, match="step=0"):
        explainers.two_point(f, X, step=0)
