"""Each metric against values worked out by hand: a linear model, a quadratic, and a 2-feature case."""

import numpy as np
import pytest

from texplainer.metrics.evidence import perturbations
from texplainer.metrics.evidence.features import describe_features
from texplainer.metrics.scores import accuracy, agreement, complexity, faithfulness, stability

# The 2-feature case: one row, two neighbours.
X = np.array([[2.0, 4.0]])
NEAR = np.array([[[2.2, 4.0], [2.0, 4.8]]])
E = np.array([[1.0, -2.0]])
NEAR_E = np.array([[[1.3, -1.2], [1.0, -2.0]]])
BOTH = np.array([[True, True]])
ONE = np.array([[True, False]])


def test_ris_by_hand():
    # neighbour 1: e changes by (-0.3/1, -0.8/-2) = (-0.3, 0.4): norm 0.5; x by (-0.2/2, 0): 0.1; ratio 5.
    # neighbour 2: e does not change: 0.
    scores = stability.relative_input_stability(E, NEAR_E, X, NEAR, BOTH)
    assert scores["max"] == pytest.approx([5.0])
    assert scores["mean"] == pytest.approx([2.5])


def test_ris_leaves_out_absent_neighbours():
    near = np.where(ONE[..., None], NEAR, np.nan)
    scores = stability.relative_input_stability(E, NEAR_E, X, near, ONE)
    assert scores["mean"] == pytest.approx([5.0])
    none = stability.relative_input_stability(E, NEAR_E, X, near, np.zeros((1, 2), bool))
    assert np.isnan(none["max"]).all()


def test_ris_openxai_by_hand():
    # ‖e - e'‖/‖e‖ = sqrt(0.09 + 0.64)/sqrt(5); ‖x - x'‖/‖x‖ = 0.2/sqrt(20).
    scores = stability.relative_input_stability(E, NEAR_E, X, NEAR, BOTH, convention="openxai")
    assert scores["max"] == pytest.approx([np.sqrt(0.73 / 5) / (0.2 / np.sqrt(20))])


def test_ros_by_hand():
    # p = (0.2, 0.8) -> (0.25, 0.75): relative (-0.25, 0.0625), norm 0.25769...; numerator 0.5.
    p, near_p = np.array([[0.2, 0.8]]), np.array([[[0.25, 0.75], [0.2, 0.8]]])
    scores = stability.relative_output_stability(E, NEAR_E, p, near_p, ONE)
    assert scores["max"] == pytest.approx([0.5 / np.hypot(0.25, 0.0625)])


def test_ros_floors_an_output_that_does_not_move():
    p = np.array([[0.2, 0.8]])
    scores = stability.relative_output_stability(E, NEAR_E, p, np.repeat(p[:, None], 2, 1), ONE)
    assert scores["max"] == pytest.approx([0.5 / stability.EPS])


def test_rrs_by_hand():
    # hidden (1, 0) -> (1.1, 0): relative (-0.1, 0/eps = 0): norm 0.1.
    hidden, near = np.array([[1.0, 0.0]]), np.array([[[1.1, 0.0], [1.0, 0.0]]])
    assert stability.relative_input_stability(E, NEAR_E, hidden, near, ONE)["max"] == pytest.approx([5.0])


def test_clipping_keeps_the_sign():
    clipped = stability.clip_from_zero(np.array([-1e-7, 0.0, 1e-7, -3.0, 2.0]))
    assert clipped.tolist() == [-1e-5, 1e-5, 1e-5, -3.0, 2.0]


def test_zero_explanations_have_no_stability():
    zero = np.zeros((1, 2))
    near = np.zeros((1, 2, 2))
    assert np.isnan(stability.relative_input_stability(zero, near, X, NEAR, BOTH)["max"])
    assert np.isnan(stability.normwise_stability(zero, near, X, NEAR, BOTH, np.ones(2))["max"])
    assert np.isnan(stability.max_sensitivity(zero, near, BOTH)["max"])


def test_normwise_by_hand():
    # ‖e - e'‖/‖e‖ = sqrt(0.73/5); the step in SDs (2, 1): (0.1, 0), root mean square 0.1/sqrt(2).
    scores = stability.normwise_stability(E, NEAR_E, X, NEAR, BOTH, np.array([2.0, 1.0]))
    assert scores["max"] == pytest.approx([np.sqrt(0.73 / 5) / (0.1 / np.sqrt(2))])


def test_normwise_of_a_quadratic():
    # f = ‖x‖²/2: e = x, e - e' = x - x', so with SD 1 the score is sqrt(2) / ‖x‖ for every step.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 2))
    near = x[:, None] + rng.normal(size=(5, 3, 2))
    scores = stability.normwise_stability(x, near, x, near, np.ones((5, 3), bool), np.ones(2))
    assert scores["p95"] == pytest.approx(np.sqrt(2) / np.linalg.norm(x, axis=1))


def test_lipschitz_and_sensitivity_by_hand():
    # 1: sqrt(0.73)/0.2; 2: 0/0.8.   relative to ‖e‖ = sqrt(5): sqrt(0.73/5) and 0.
    assert stability.local_lipschitz(E, NEAR_E, X, NEAR, BOTH) == pytest.approx([np.sqrt(0.73) / 0.2])
    scores = stability.max_sensitivity(E, NEAR_E, BOTH)
    assert scores["max"] == pytest.approx([np.sqrt(0.73 / 5)])
    assert scores["mean"] == pytest.approx([np.sqrt(0.73 / 5) / 2])


def test_lipschitz_of_a_quadratic_gradient():
    # f = x·diag(1, 3)·x / 2: e = (x1, 3 x2); a step along feature 2 alone stretches by exactly 3.
    x = np.array([[1.0, 1.0]])
    near = np.array([[[1.5, 1.0], [1.0, 1.5]]])
    scale = np.array([1.0, 3.0])
    assert stability.local_lipschitz(x * scale, near * scale, x, near, BOTH) == pytest.approx([3.0])


def test_res_by_hand():
    # runs (0, 0) and (2, 0): mean (1, 0), both at distance 1; standard deviation 1.
    scores = stability.run_stability(np.array([[[0.0, 0.0]], [[2.0, 0.0]]]))
    assert scores["max"] == pytest.approx([1.0])
    assert scores["deviation"] == pytest.approx([1.0])


def test_res_of_equal_runs_is_exactly_zero():
    runs = np.repeat(np.random.default_rng(0).normal(size=(1, 4, 3)), 7, axis=0)
    assert (stability.run_stability(runs)["max"] == 0.0).all()


def test_cai_by_hand():
    # row 0's only classmate is row 1: cosine of (1, 0) and (1, 1) = 1/sqrt(2); row 2 is alone in its class.
    values = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.1, 0.0]])
    scores = stability.class_agreement(values, rows, np.array([0, 0, 1]), np.ones(2))
    assert scores[:2] == pytest.approx([2**-0.5, 2**-0.5])
    assert np.isnan(scores[2])


# A linear model f = 1 + 3 x1 + 2 x2 + x3 at x = (1, 1, 1), masked to zero.
W = np.array([3.0, 2.0, 1.0])
ROW = np.ones((1, 3))
OWNER = np.arange(3)
TIES = np.array([[0.1, 0.2, 0.3]])
ZERO = np.zeros((1, 1, 3))


def linear(rows):
    return 1 + rows @ W


def removal(values):
    return {"values": values, "rows": ROW, "predict": linear, "fills": ZERO, "owner": OWNER}


def gaps(values, **more):
    return {**removal(values), "prediction": linear(ROW), "ties": TIES, **more}


def test_pgi_of_a_linear_model():
    # without x1: 3; without x1, x2: 5; without all: 6.
    scores = faithfulness.prediction_gap_important(**gaps(W[None], k=(1, 2, 3)))
    assert [scores[k][0] for k in "123"] == pytest.approx([3.0, 5.0, 6.0])


def test_pgi_ranks_by_size_not_sign():
    scores = faithfulness.prediction_gap_important(**gaps(np.array([[-9.0, 2.0, 1.0]]), k=(1,)))
    assert scores["1"] == pytest.approx([3.0])


def test_pgu_of_a_linear_model():
    # without x3: 1; without x3, x2: 3.
    scores = faithfulness.prediction_gap_unimportant(**gaps(W[None], k=(1, 2)))
    assert [scores["1"][0], scores["2"][0]] == pytest.approx([1.0, 3.0])


def test_kept_convention_by_hand():
    # keep x1 only: f = 4, gap 3, score 1 - 3 = -2; the order is by signed value.
    scores = faithfulness.prediction_gap_kept(**gaps(W[None], k=(1,)))
    assert scores["1"] == pytest.approx([-2.0])
    signed = faithfulness.prediction_gap_kept(**gaps(np.array([[-9.0, 2.0, 1.0]]), k=(1,)))
    assert signed["1"] == pytest.approx([1 - 4.0])  # keeps x2: f = 3, gap 4


def test_pgi_area_by_hand():
    # gaps 3, 5, 6 at k = 1, 2, 3: area (3+5)/2 + (5+6)/2 = 9.5 over width 2.
    assert faithfulness.prediction_gap_area(**gaps(W[None], k=(3,))) == pytest.approx([4.75])


def test_pgi_averages_the_draws_of_a_mask():
    # x1 -> 0 and x1 -> 2: gaps 3 and 3, mean 3; x1 -> 1 and 2: 0 and 3, mean 1.5.
    fills = np.array([[[1.0, 0, 0]], [[2.0, 0, 0]]])
    scores = faithfulness.prediction_gap_important(**{**gaps(W[None], k=(1,)), "fills": fills})
    assert scores["1"] == pytest.approx([1.5])


def test_deletion_and_insertion_by_hand():
    # deletion: 7, 4, 2, 1 at 0, 1/3, 2/3, 1: area (5.5 + 3 + 1.5)/3 = 10/3.
    # insertion: 1, 4, 6, 7: (2.5 + 5 + 6.5)/3 = 14/3.
    up = {"ties": TIES, "direction": np.ones(1), "top": 0.0}
    assert faithfulness.deletion(**removal(W[None]), **up) == pytest.approx([10 / 3])
    assert faithfulness.insertion(**removal(W[None]), **up) == pytest.approx([14 / 3])


def test_deletion_of_the_other_class_is_read_the_other_way_round():
    # direction -1: most supportive of "not f" first, that is x3, x2, x1: f = 7, 6, 4, 1; area (6.5+5+2.5)/3.
    down = {"ties": TIES, "direction": -np.ones(1), "top": 10.0}
    assert faithfulness.deletion(**removal(W[None]), **down) == pytest.approx([10 - 14 / 3])


def test_faithfulness_correlation_of_a_linear_model_is_one():
    subsets = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]], bool)[:, None, :]
    more = {"prediction": linear(ROW), "subsets": subsets}
    assert faithfulness.faithfulness_correlation(**removal(W[None]), **more) == pytest.approx([1.0])
    assert faithfulness.faithfulness_correlation(**removal(-W[None]), **more) == pytest.approx([-1.0])
    for flat in (np.zeros((1, 3)), np.full((1, 3), 0.1)):
        assert faithfulness.faithfulness_correlation(**removal(flat), **more) == pytest.approx([0.0])


def test_monotonicity_by_hand():
    # single effects 3, 2, 1: same order 1, reversed -1, flat 0.
    more = {"prediction": linear(ROW)}
    assert faithfulness.monotonicity(**removal(W[None]), **more) == pytest.approx([1.0])
    assert faithfulness.monotonicity(**removal(W[None, ::-1]), **more) == pytest.approx([-1.0])
    assert faithfulness.monotonicity(**removal(np.ones((1, 3))), **more) == pytest.approx([0.0])


def test_infidelity_by_hand():
    # I = (1, 0), (0, 2) at x = 0 of f = 3 x1 + 2 x2: responses 3, 4. e = (3, 1): I·e = 3, 2; squares 0, 4.
    expected, response = np.array([[3.0, 2.0]]), np.array([[3.0, 4.0]])
    assert faithfulness.infidelity(expected, response, convention="plain") == pytest.approx([2.0])
    assert faithfulness.infidelity(expected, response) == pytest.approx([2.0 / 12.5])
    # best factor (9 + 8)/(9 + 4) = 17/13: errors 3*17/13 - 3, 2*17/13 - 4.
    rescaled = ((51 / 13 - 3) ** 2 + (34 / 13 - 4) ** 2) / 2
    assert faithfulness.infidelity(expected, response, convention="rescaled") == pytest.approx([rescaled])
    assert faithfulness.infidelity(expected, response, convention="scale-free") == pytest.approx(
        [rescaled / 12.5]
    )
    assert faithfulness.infidelity(0 * expected, response) == pytest.approx([1.0])
    # a second row where the model is flat: the error 13/2 is divided by the mean power (12.5 + 0)/2.
    rows = faithfulness.infidelity(np.vstack([expected, expected]), np.vstack([response, 0 * response]))
    assert rows == pytest.approx([2.0 / 6.25, 6.5 / 6.25])


def test_infidelity_of_a_quadratic_gradient():
    # f = x²/2 at x = 1, I = ±h: f(x) - f(x - I) = I - I²/2, I·e = I: error h⁴/4, power h² + h⁴/4.
    h = 0.1
    step = np.array([[h, -h]])
    scores = faithfulness.infidelity(step, step - step**2 / 2)
    assert scores == pytest.approx([(h**4 / 4) / (h**2 + h**4 / 4)])


def test_lap_by_hand():
    # f = 7, base 1, contributions 3 + 2 + 1: residual 0; without the last: residual 1.
    values = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 0.0]])
    scores = accuracy.local_accuracy(np.array([7.0, 7.0]), np.array([1.0, 1.0]), values)
    assert scores["mean"].tolist() == [1.0, 0.0]
    assert scores["median"] == pytest.approx([0.0, 1.0])


def test_truth_by_hand():
    # (3, 4) against (3, 0): error 4/3, cosine 9/15.
    values, truth = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[3.0, 0.0], [1.0, 0.0]])
    assert accuracy.truth_error(values, truth) == pytest.approx([4 / 3, 1.0])
    assert accuracy.truth_cosine(values, truth) == pytest.approx([0.6, 0.0])


def test_complexity_by_hand():
    # equal shares of 4: entropy ln 4, Gini 0, 4 features; a single one: 0, 3/4, 1; zeros: undefined.
    values = np.array([[1.0, -1.0, 1.0, 1.0], [0.0, 0.0, -5.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert complexity.complexity(values)[:2] == pytest.approx([np.log(4), 0.0])
    assert complexity.sparseness(values)[:2] == pytest.approx([0.0, 0.75])
    assert complexity.effective_complexity(values)[:2].tolist() == [4, 1]
    for metric in (complexity.complexity, complexity.sparseness, complexity.effective_complexity):
        assert np.isnan(metric(values)[2])


def test_agreement_by_hand():
    a, b = np.array([[4.0, -3.0, 2.0, 1.0]]), np.array([[4.0, 2.0, 3.0, 0.5]])
    ties = np.zeros((1, 4))
    # top 2: {1, 2} and {1, 3}: one in common, at the same place, same sign.
    for metric in (agreement.feature_agreement, agreement.rank_agreement, agreement.sign_agreement):
        assert metric(a, b, ties, 2) == pytest.approx([0.5])
    # top 3: {1, 2, 3} both; places agree for feature 1 only; signs differ for feature 2.
    assert agreement.feature_agreement(a, b, ties, 3) == pytest.approx([1.0])
    assert agreement.rank_agreement(a, b, ties, 3) == pytest.approx([1 / 3])
    assert agreement.sign_agreement(a, b, ties, 3) == pytest.approx([2 / 3])
    assert agreement.signed_rank_agreement(a, b, ties, 3) == pytest.approx([1 / 3])
    # ranks 4321 and 4231: 1 - 6*2/(4*15) = 0.8; one of six pairs discordant: (5 - 1)/6.
    assert agreement.spearman(a, b) == pytest.approx([0.8])
    assert agreement.kendall(a, b) == pytest.approx([4 / 6])


def test_mask_means_by_hand():
    # columns: one number, a one-hot group of three, a category coded 0, 1, 2.
    background = np.array([[0.0, 1, 0, 0, 2], [2.0, 0, 1, 0, 0], [4.0, 0, 1, 0, 2]])
    features = describe_features("abcde", background, {"g": (1, 2, 3)}, {4: 3})
    fill = perturbations.fill_mean(background, background, features, 0.1, 0)
    assert fill.tolist() == [[[2.0, 0, 1, 0, 2.0]]]


def test_a_removed_group_goes_as_one():
    rows = np.array([[1.0, 1.0, 0.0, 5.0]])
    features = describe_features("abcd", rows, {"g": (1, 2)})
    removed = np.array([[False, True, False]])
    gone = perturbations.apply(rows, np.full((1, 1, 4), 9.0), removed, features.owner)
    assert gone.tolist() == [[[1.0, 9.0, 9.0, 5.0]]]
