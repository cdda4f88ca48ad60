import subprocess
import sys
import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from numpy.testing import assert_allclose, assert_array_equal
from paper.rivals import ExponentiatedGradientClassifier
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from synthetic import made, people

from fairmatch import Coupling, FTMBoostingClassifier
from fairmatch.exceptions import CouplingError, InputError
from fairmatch.learning.path import FairnessPath
from fairmatch.measures import mean_parity_gap

X, Y, GROUP = people(400)


def fairlearn_itself(base, inputs, eps):
    algorithm = ExponentiatedGradient(base, DemographicParity(difference_bound=eps), eps=eps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        algorithm.fit(inputs, Y, sensitive_features=GROUP)
    return algorithm._pmf_predict(inputs)


@pytest.mark.parametrize("base", [LogisticRegression(), DecisionTreeClassifier(max_depth=2)])
@pytest.mark.parametrize("at_prediction", [False, True])
def test_scores_are_the_acceptance_probabilities_of_fairlearns_random_classifier(
    base, at_prediction
):
    model = ExponentiatedGradientClassifier(
        base, eps=0.05, sensitive_at_prediction=at_prediction, encoder=None
    ).fit(X, Y, sensitive_features=GROUP)
    inputs = np.column_stack([X, GROUP]) if at_prediction else X
    expected = fairlearn_itself(base, inputs, 0.05)
    assert_allclose(model.predict_proba(X, sensitive_features=GROUP), expected, atol=1e-12)
    assert model.predictor_weights_.sum() == pytest.approx(1.0)
    assert len(model.predictors_) == len(model.predictor_weights_) > 1


def people_with_holes():
    """The table of everyone, with a category, a text column and missing values."""
    frame = pd.DataFrame(X[:, :2], columns=["wage", "debt"])
    frame["job"] = pd.Categorical(np.where(X[:, 2] > 0.3, "cook", "nurse"))
    frame["town"] = np.array(["A", "B", "C"])[np.arange(len(X)) % 3]
    frame.loc[::7, "wage"] = np.nan
    frame.loc[::11, "job"] = None
    return frame


LIGHTGBM = lgb.LGBMClassifier(n_estimators=10, num_leaves=6, verbose=-1, n_jobs=1)


def test_lightgbm_sees_categories_and_missing_values_as_they_are():
    frame = people_with_holes()
    model = ExponentiatedGradientClassifier(LIGHTGBM, eps=0.05, encoder="columns")
    model.fit(frame, Y, sensitive_features=GROUP)
    inputs = frame.assign(town=frame.town.astype("category"), group=GROUP.astype(float))
    expected = fairlearn_itself(LIGHTGBM, inputs, 0.05)
    scores = model.predict_proba(frame, sensitive_features=GROUP)
    assert_allclose(scores, expected, atol=1e-12)
    assert len(model.predictors_) > 1
    # A part of the rows, where some levels are absent, is read as in the whole.
    part = model.predict_proba(frame[:2], sensitive_features=GROUP[:2])
    assert_array_equal(part, scores[:2])
    unseen, missing = (
        model.predict_proba(frame.assign(town=town), sensitive_features=GROUP)
        for town in ("D", None)
    )
    assert_array_equal(unseen, missing)


def test_a_bound_that_does_not_bind_leaves_the_learner_on_equal_terms():
    """Without a constraint it decides as boosted trees with weight 0 do."""
    frame = people_with_holes()
    free = ExponentiatedGradientClassifier(LIGHTGBM, eps=1.0, encoder="columns")
    free.fit(frame, Y, sensitive_features=GROUP)
    plain = made(FTMBoostingClassifier, fairness_weight=0.0, n_estimators=10, num_leaves=6)
    plain.fit(frame, Y, sensitive_features=GROUP)
    assert_array_equal(*(m.predict(frame, sensitive_features=GROUP) for m in (free, plain)))


def test_a_curve_over_the_bounds():
    frame, bounds = people_with_holes(), [0.2, 0.02]
    base = ExponentiatedGradientClassifier(LIGHTGBM, encoder="columns")
    models = [
        clone(base).set_params(eps=eps).fit(frame, Y, sensitive_features=GROUP) for eps in bounds
    ]
    curve = FairnessPath(np.array(bounds), models).curve(frame, Y, sensitive_features=GROUP)
    assert curve.fairness_weight.tolist() == bounds
    assert curve.mean_parity_gap[1] < curve.mean_parity_gap[0]


def test_logistic_regression_is_the_base_unless_told_otherwise():
    default, explicit = (
        ExponentiatedGradientClassifier(base, max_iter=5).fit(X, Y, sensitive_features=GROUP)
        for base in (None, LogisticRegression())
    )
    assert_array_equal(
        default.predict_proba(X, sensitive_features=GROUP),
        explicit.predict_proba(X, sensitive_features=GROUP),
    )


def test_the_allowed_violation_bounds_the_mean_gap_of_the_scores():
    gaps = []
    for eps in (0.2, 0.01):
        model = ExponentiatedGradientClassifier(eps=eps).fit(X, Y, sensitive_features=GROUP)
        scores = model.predict_proba(X, sensitive_features=GROUP)[:, 1]
        gaps.append(mean_parity_gap(None, scores, sensitive_features=GROUP))
        # Each group is within eps of all rows, up to the gap left by the algorithm.
        assert gaps[-1] <= 2.0 * eps + 0.02
    assert gaps[1] < gaps[0]


def test_what_it_cannot_use_is_refused():
    model = ExponentiatedGradientClassifier()
    with pytest.raises(InputError, match="cannot use sample_weight"):
        model.fit(X, Y, sensitive_features=GROUP, sample_weight=np.ones(len(Y)))
    pairs = Coupling([0], [1], [1.0], len(Y), (0, 1))
    with pytest.raises(CouplingError, match="does not match people"):
        model.fit(X, Y, sensitive_features=GROUP, coupling=pairs)
    with pytest.raises(InputError, match="eps must be a number in"):
        model.set_params(eps=0.0).fit(X, Y, sensitive_features=GROUP)


def test_a_bad_encoder_is_told_all_that_is_accepted():
    told = "encoder must be 'table', 'columns', None or a transformer, got 'onehot'. Pass one"
    with pytest.raises(InputError, match=told):
        ExponentiatedGradientClassifier(encoder="onehot").fit(X, Y, sensitive_features=GROUP)


BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])
sys.meta_path.insert(0, Block())
"""


def run_without(blocked, code):
    script = BLOCK.format(blocked=blocked) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def test_it_needs_no_torch_and_cannot_be_saved():
    result = run_without(
        {"torch", "safetensors"},
        "from paper.rivals.reductions import ExponentiatedGradientClassifier as EG\n"
        "from fairmatch.exceptions import InputError\n"
        "X = [[0.0], [1.0], [2.0], [3.0]] * 5\n"
        "y, groups = [0, 0, 1, 1] * 5, [0, 1, 1, 1] * 5\n"
        "model = EG(max_iter=2).fit(X, y, sensitive_features=groups)\n"
        "model.predict(X, sensitive_features=groups)\n"
        "try: model.save('nowhere')\n"
        "except InputError as error: print(error)\n",
    )
    assert result.returncode == 0, result.stderr
    assert "cannot be written without pickling" in result.stdout


def test_missing_extras_are_named_and_the_rest_works():
    result = run_without(
        {"torch", "fairlearn"},
        "import fairmatch\n"
        "from fairmatch.measures import mean_parity_gap\n"
        "from fairmatch.exceptions import MissingExtraError\n"
        "print(mean_parity_gap(None, [0, 1], sensitive_features=[0, 1]))\n"
        "print(len(fairmatch.fair_matching([0.1, 0.2], [0, 1])))\n"
        "print(len(fairmatch.OptimalTransportMatcher().match([[0.0], [1.0]], [0, 1])))\n"
        "for name in ('FTMClassifier', 'load'):\n"
        "    try: getattr(fairmatch, name)\n"
        "    except MissingExtraError as error: print(error)\n",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "1.0",
        "1",
        "1",
        "fairmatch.FTMClassifier needs torch: pip install 'fairmatch[train]'.",
    ]


def test_a_group_that_is_ignored_is_learned_from_and_not_compared():
    generator = np.random.default_rng(0)
    group = np.repeat(["a", "b", "few"], [200, 200, 60])
    x = generator.normal(size=460) + 2.0 * (group == "few")
    y = (x + 0.3 * generator.normal(size=460) > 0.0).astype(int)
    few = group == "few"
    rates = []
    for small in ("error", ("ignore", 100)):
        model = ExponentiatedGradientClassifier(eps=0.01, encoder=None, small_groups=small)
        model.fit(x[:, None], y, sensitive_features=group)
        scores = model.predict_proba(x[:, None], sensitive_features=group)[:, 1]
        assert mean_parity_gap(y[~few], scores[~few], sensitive_features=group[~few]) < 0.05
        rates.append(scores[few].mean() - scores[~few].mean())
    assert abs(rates[0]) < 0.05  # compared, so brought to the others
    assert rates[1] > 0.3  # ignored, so as it is
