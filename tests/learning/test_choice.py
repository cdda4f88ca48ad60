import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from synthetic import QUICK, made, people

from fairmatch import Coupling, FTMClassifier, OptimalTransportMatcher
from fairmatch.exceptions import (
    ConstantModelWarning,
    CouplingError,
    GapNotReachedWarning,
    GroupError,
    InputError,
    LabelError,
    SmallGroupWarning,
)
from fairmatch.learning.choice import Bound
from fairmatch.learning.reading import stratified_split
from fairmatch.measures import demographic_parity_gap, matched_parity_gap
from fairmatch.measures.registry import applicable
from fairmatch.people.groups import read_groups
from fairmatch.people.outcome import PROBABILITY

WEIGHTS = (0.0, 0.5, 2.0)
SETTINGS = {**QUICK, "epochs": 12, "learning_rate": 0.02, "fairness_weight": WEIGHTS}


@pytest.fixture(scope="module")
def rows():
    return people(400)


@pytest.fixture(scope="module")
def fitted(rows):
    X, y, group = rows
    return made(FTMClassifier, max_gap=0.2, **SETTINGS).fit(X, y, sensitive_features=group)


def held_out(y, group):
    return stratified_split(y, read_groups(group), 0.2, SETTINGS["random_state"])[1]


def test_the_curve_is_measured_on_the_rows_held_out(rows, fitted):
    X, y, group = rows
    out = held_out(y, group)
    for position, model in enumerate(fitted.path_.models):
        line = fitted.validation_curve_.iloc[position]
        scores = model.predict_proba(X[out], sensitive_features=group[out])[:, 1]
        assert line.fairness_weight == WEIGHTS[position] == model.fairness_weight
        assert line.accuracy == np.mean((scores >= 0.5) == y[out])
        gap = demographic_parity_gap(None, scores, sensitive_features=group[out])
        assert line.demographic_parity_gap == gap


def test_the_most_accurate_model_within_the_gap_is_kept(rows, fitted):
    X, _, group = rows
    curve = fitted.validation_curve_
    within = curve[curve.demographic_parity_gap <= 0.2]
    assert 0 < len(within) < len(WEIGHTS)
    assert fitted.fairness_weight_ == within.fairness_weight[within.accuracy.idxmax()]
    chosen = fitted.path_.models[WEIGHTS.index(fitted.fairness_weight_)]
    assert_array_equal(
        fitted.predict_proba(X, sensitive_features=group),
        chosen.predict_proba(X, sensitive_features=group),
    )


@pytest.mark.parametrize(
    ("gaps", "accuracy", "position"),
    [
        ([0.3, 0.1, 0.05], [0.9, 0.8, 0.7], 1),
        ([0.3, 0.2, 0.05], [0.9, 0.7, 0.8], 2),
        ([0.1, 0.3, 0.05], [0.8, 0.9, 0.8], 0),
    ],
)
def test_the_choice(gaps, accuracy, position):
    columns = {"demographic_parity_gap": gaps, "accuracy": accuracy, "acceptance_rate": 0.5}
    curve = pd.DataFrame(columns)
    assert Bound(0.2, "demographic_parity_gap").best(curve) == position


def test_a_fit_without_max_gap_forgets_the_path(rows):
    X, y, group = rows
    model = made(FTMClassifier, max_gap=1.0, **{**SETTINGS, "epochs": 1})
    model.fit(X, y, sensitive_features=group)
    assert hasattr(model, "path_")
    model.set_params(max_gap=None, fairness_weight=1.0).fit(X, y, sensitive_features=group)
    assert not hasattr(model, "path_")


def test_a_gap_out_of_reach_warns_of_the_smallest(rows):
    X, y, group = rows
    model = made(FTMClassifier, max_gap=0.0, gap_measure="mean_parity_gap", **SETTINGS)
    with pytest.warns(GapNotReachedWarning) as caught:
        model.fit(X, y, sensitive_features=group)
    curve = model.validation_curve_
    deciding = curve[curve.acceptance_rate.between(0.0, 1.0, inclusive="neither")]
    assert 0 < len(deciding) < len(curve)  # the others accept nobody, with a gap near 0
    assert f"{deciding.mean_parity_gap.min():.4g}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert model.fairness_weight_ == WEIGHTS[deciding.mean_parity_gap.idxmin()]


@pytest.mark.parametrize(("label", "whom"), [(0, "nobody"), (1, "everybody")])
def test_a_model_that_decides_nothing_is_told(rows, label, whom):
    X, y, group = rows
    y = np.where(np.arange(len(y)) % 5 == 0, y, label)  # most people have the same label
    model = made(FTMClassifier, max_gap=0.05, **{**SETTINGS, "fairness_weight": [1000.0]})
    with pytest.warns(ConstantModelWarning, match=f"accepts {whom} among") as caught:
        model.fit(X, y, sensitive_features=group)
    assert caught[0].filename == __file__
    assert model.validation_curve_.acceptance_rate[0] == label


@pytest.mark.parametrize("transport", ["marginal", "joint"])
def test_the_matched_gap_is_measured_on_a_matching_of_the_held_out_rows(rows, transport):
    X, y, group = rows
    model = made(
        FTMClassifier,
        transport,
        max_gap=1.0,
        gap_measure="matched_parity_gap",
        **{**SETTINGS, "epochs": 1},
    ).fit(X, y, sensitive_features=group)
    out = held_out(y, group)
    encoded = model.encoder_.transform(X[out])
    matcher = OptimalTransportMatcher(100.0 if transport == "joint" else 0.0)
    coupling = matcher.match(encoded, group[out], y[out])
    scores = model.path_.models[0].predict_proba(X[out], sensitive_features=group[out])[:, 1]
    gap = matched_parity_gap(None, scores, sensitive_features=group[out], coupling=coupling)
    assert model.validation_curve_.matched_parity_gap[0] == pytest.approx(gap, rel=1e-2)


@pytest.mark.parametrize("measure", applicable(PROBABILITY))
def test_any_gap_by_name(rows, measure):
    X, y, group = rows
    settings = {**SETTINGS, "epochs": 1}
    model = made(FTMClassifier, max_gap=1.0, gap_measure=measure, **settings)
    model.fit(X, y, sensitive_features=group)
    assert (model.validation_curve_[measure] <= 1.0).all()


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_the_split_is_stratified(rows, share):
    _, y, group = rows
    train, out = stratified_split(y, read_groups(group), share, 0)
    assert_array_equal(np.sort(np.concatenate([train, out])), np.arange(400))
    for label in (0, 1):
        for code in (0, 1):
            stratum = (y == label) & (group == code)
            assert stratum[out].sum() == round(share * stratum.sum())


def test_one_class_in_a_group_leaves_the_gaps_of_error_rates_open(rows):
    X, y, group = rows
    y = np.where(group == 0, 0, y)
    settings = {**SETTINGS, "epochs": 1}
    model = made(FTMClassifier, max_gap=1.0, **settings).fit(X, y, sensitive_features=group)
    assert model.validation_curve_.true_positive_gap.isna().all()
    assert model.validation_curve_.false_positive_gap.notna().all()
    model.set_params(gap_measure="true_positive_gap")
    with pytest.raises(LabelError, match="no rows of one of the classes"):
        model.fit(X, y, sensitive_features=group)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gap_measure": "parity"}, "bounded here; choose one of demographic_parity_gap"),
        ({"max_gap": -0.1}, "max_gap must be a number in"),
        ({"max_gap": float("nan")}, "max_gap must be a number in"),
        ({"validation_size": 1.0}, "validation_size must be a number in"),
        ({"fairness_weight": []}, "list of numbers"),
        ({"fairness_weight": [-1.0]}, "fairness_weight must be a number in"),
        ({"transport": "sideways"}, "'marginal', 'joint' or a matcher"),
        ({"transport": 3}, "an object that has a match method"),
    ],
    ids=str,
)
def test_bad_settings(rows, settings, message):
    X, y, group = rows
    model = made(FTMClassifier, max_gap=0.1, **SETTINGS).set_params(**settings)
    with pytest.raises(InputError, match=message):
        model.fit(X, y, sensitive_features=group)


def test_a_ready_coupling_does_not_fit_the_rows_left():
    X, y, group = people(20)
    pairs = Coupling(np.flatnonzero(group == 0)[:1], np.flatnonzero(group)[:1], [1.0], 20, (0, 1))
    with pytest.raises(CouplingError, match="Leave one of the two out"):
        made(FTMClassifier, max_gap=0.1, **SETTINGS).fit(
            X, y, sensitive_features=group, coupling=pairs
        )


def test_a_group_too_small_to_be_split():
    X, y, group = people(50)
    group = np.arange(50) < 2
    with pytest.raises(GroupError, match="leaves no rows of group True, which has 2"):
        made(FTMClassifier, max_gap=0.1, **SETTINGS).fit(X, y, sensitive_features=group)


def test_lists_are_rows_too(rows):
    X, y, group = (values[:80].tolist() for values in rows)
    model = made(FTMClassifier, max_gap=1.0, **{**SETTINGS, "epochs": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, sensitive_features=group, sample_weight=[1.0] * 80)
    assert len(model.path_) == 3


@pytest.mark.parametrize(
    ("rates", "chosen"),
    [
        ([0.2, 0.06, 0.004, 0.0], 1),  # 0.004 is nearly nobody beside 0.2
        ([0.004, 0.003, 0.002, 0.0], 2),  # where few are accepted by all, few are enough
        ([0.8, 0.9, 0.999, 1.0], 1),
    ],
)
def test_models_that_decide_are_preferred(rates, chosen):
    curve = pd.DataFrame(
        {
            "fairness_weight": [0.0, 1.0, 2.0, 3.0],
            "accuracy": [0.90, 0.80, 0.82, 0.81],
            "acceptance_rate": rates,
            "demographic_parity_gap": [0.2, 0.01, 0.01, 0.0],
        }
    )
    assert Bound(0.05, "demographic_parity_gap").best(curve) == chosen


def test_a_model_that_decides_next_to_nothing_is_told():
    curve = pd.DataFrame(
        {
            "fairness_weight": [0.0, 1.0],
            "accuracy": [0.9, 0.8],
            "acceptance_rate": [0.2, 0.001],
            "demographic_parity_gap": [0.2, 0.0],
        }
    )
    with pytest.warns(ConstantModelWarning, match=r"accepts nearly nobody among.*\(0\.10%\)"):
        assert Bound(0.05, "demographic_parity_gap").best(curve) == 1


def test_a_limit_out_of_reach_does_not_favour_a_model_that_decides_nothing():
    """A constant model has the smallest confidence limit of all."""
    curve = pd.DataFrame(
        {
            "fairness_weight": [0.0, 1.0, 2.0],
            "accuracy": [0.9, 0.8, 0.7],
            "acceptance_rate": [0.3, 0.25, 0.0],
            "demographic_parity_gap": [0.2, 0.03, 0.0],
            "demographic_parity_gap_limit": [0.3, 0.15, 0.08],
        }
    )
    bound = Bound(0.05, "demographic_parity_gap", 0.95)
    with pytest.warns(GapNotReachedWarning, match=r"upper limit .* has 0\.15, at .* 1\. Hold out"):
        assert bound.best(curve) == 1
    alone = curve.iloc[2:].reset_index(drop=True)
    with (
        pytest.warns(GapNotReachedWarning, match=r"has 0\.08"),
        pytest.warns(ConstantModelWarning, match="Every model of the path"),
    ):
        assert bound.best(alone) == 0


@pytest.mark.parametrize(
    ("criterion", "few"), [("demographic_parity", False), ("equal_opportunity", True)]
)
def test_groups_are_small_where_few_of_their_rows_are_compared(criterion, few):
    generator = np.random.default_rng(0)
    X, group = generator.normal(size=(4000, 2)), np.arange(4000) % 2
    y = generator.permutation(4000) < 160  # 16 positives of each group are held out
    model = made(FTMClassifier, max_gap=0.1, criterion=criterion, **SETTINGS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y.astype(int), sensitive_features=group)
    assert any(issubclass(w.category, SmallGroupWarning) for w in caught) == few


@pytest.mark.parametrize("max_gap", [None, 0.2])
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("y", "y has 300 samples, sensitive_features has 400"),
        ("group", "y has 400 samples, sensitive_features has 300"),
        ("weight", "sample_weight has 300 rows where 400 were expected"),
        ("X", "300 rows"),
    ],
)
def test_columns_of_other_lengths_are_told_with_and_without_a_bound(rows, max_gap, column, message):
    X, y, group = rows
    columns = {"X": X, "y": y, "group": group, "weight": np.ones(len(y))}
    columns[column] = columns[column][:300]
    model = made(FTMClassifier, max_gap=max_gap, **{**SETTINGS, "fairness_weight": 1.0})
    with pytest.raises(InputError, match=message):
        model.fit(
            columns["X"],
            columns["y"],
            sensitive_features=columns["group"],
            sample_weight=columns["weight"],
        )


@pytest.mark.parametrize("max_gap", [None, 0.2])
def test_missing_labels_in_words_are_told_with_and_without_a_bound(rows, max_gap):
    X, y, group = rows
    words = np.where(y == 1, "yes", "no").astype(object)
    words[7] = np.nan
    with pytest.raises(LabelError, match=r"contains NaN\. y must hold one of two classes"):
        made(FTMClassifier, max_gap=max_gap, **{**SETTINGS, "fairness_weight": 1.0}).fit(
            X, words, sensitive_features=group
        )


@pytest.mark.parametrize(
    ("weight", "gaps", "told"),
    [
        (
            "fairness_weight",
            [0.3, 0.2, 0.1],
            "No fairness weight reached.* at weight 1. Try larger",
        ),
        ("fairness_weight", [0.3, 0.1, 0.2], "at weight 0.5. Larger ones, up to 1, were tried"),
        ("strength", [0.3, 0.2, 0.1], "No strength reached.* at strength 1, the largest there is"),
    ],
)
def test_the_advice_for_a_gap_out_of_reach_fits_what_was_tried(weight, gaps, told):
    columns = {"fairness_weight": [0.0, 0.5, 1.0], "accuracy": 0.9, "acceptance_rate": 0.5}
    curve = pd.DataFrame({**columns, "demographic_parity_gap": gaps})
    with pytest.warns(GapNotReachedWarning, match=told) as caught:
        Bound(0.05, "demographic_parity_gap", weight_name=weight).best(curve)
    assert ("Try larger weights" in str(caught[0].message)) == told.endswith("larger")


def test_a_number_is_for_a_regressor(rows):
    X, y, group = rows
    for target, told in (
        (
            np.arange(len(y)) % 50,
            "Numbers are predicted by a regressor, such as FTMBoostingRegressor",
        ),
        (np.arange(len(y)) % 3, "Join classes until two are left"),
    ):
        with pytest.raises(LabelError, match=told):
            made(FTMClassifier, max_gap=0.1, **SETTINGS).fit(X, target, sensitive_features=group)
